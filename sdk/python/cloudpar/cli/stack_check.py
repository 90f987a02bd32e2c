"""Checks whether a deployment on AWS works, as far as its operator's machine can see."""

import http.client
from collections.abc import Iterator
from contextlib import suppress

from cloudpar._client.configuration import configure
from cloudpar._formatting.quantity import quantity
from cloudpar.deployment import machine_image, settings, stack
from cloudpar.deployment.administration import Administration
from cloudpar.deployment.aws import Aws
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import CloudparError

from . import status
from .clock_check import check_clock, date_of
from .finding import Finding


def check_stack(name: str, region: str | None) -> Iterator[Finding]:
    """Check the stack, its master and its workers, with AWS credentials. This starts no worker."""
    try:
        aws = Aws(region)
        there = stack.get(aws, name)
    except CloudparError as error:
        yield Finding("stack", "bad", str(error))
        return
    fix = there.advice(aws.region)
    reason, advice = f" ({there.reason})" if there.reason else "", f": {fix}" if fix else ""
    yield Finding("stack", "bad" if fix else "ok", f"{name} in {aws.region}: {there.state}{reason}{advice}")
    if fix:
        return
    for what, check in (("settings", _settings), ("master", _master), ("workers", _workers)):
        try:
            yield from check(aws, there)
        except CloudparError as error:
            yield Finding(what, "bad", str(error))


def _settings(aws: Aws, there: stack.Stack) -> Iterator[Finding]:
    kept = settings.kept(stack.template(aws, there.name))
    if kept is None:
        text = "an earlier release made the stack, which kept none: name them all by `cloudpar deploy --config FILE`"
        yield Finding("settings", "missing", text)
        return
    said = ", ".join(f"{name}={value}" for name, value in sorted(kept.items()))
    yield Finding("settings", "ok", said or "all have their defaults")


def _master(aws: Aws, there: stack.Stack) -> Iterator[Finding]:
    master = Administration(aws, there)
    who = master.call(routes.HELLO, Hello())
    yield Finding("master", "ok", f"release {who.release} answers at the account function of {there.name}")
    try:
        date_of(master.endpoint)
        yield Finding("endpoint", "ok", f"{master.endpoint} answers this machine")
    except (OSError, http.client.HTTPException) as error:
        text = f"{master.endpoint} does not answer this machine ({error}): see networks, proxies and firewalls between"
        yield Finding("endpoint", "bad", text)
    yield from check_clock(master.endpoint)
    with suppress(CloudparError):  # `doctor` without --stack reports a profile file that cannot be read
        found = configure(None, None)
        if found is None or found.endpoint.rstrip("/") != master.endpoint:
            use = f"use {found.endpoint}" if found else "start pools on this machine, since no master is configured"
            text = f"programs here {use}: `cloudpar deploy --activate` has them use this deployment"
            yield Finding("profile", "missing", text)
        else:
            yield Finding("profile", "ok", "programs here use this deployment")


def _workers(aws: Aws, there: stack.Stack) -> Iterator[Finding]:
    found = status.take(aws, there.name)
    fleet, queue = found.fleet, found.queue
    if fleet is not None and fleet.reason:
        yield Finding("workers", "bad", f"the newest launch failed; AWS says: {fleet.reason}")
    elif fleet is not None:
        starting = f", {fleet.starting} starting" if fleet.starting else ""
        yield Finding("workers", "ok", f"{quantity(fleet.running, 'instance')}{starting}; at most {fleet.maximum}")
    if old := machine_image.advice(found.image_days, found.stack, found.region):
        yield Finding("machine image", "note", old)
    if queue is not None and queue.lost:
        text = f"{quantity(queue.lost, 'chunk')} lost with their workers: see lost-chunks in docs/runbook.md"
        yield Finding("lost chunks", "bad", text)
