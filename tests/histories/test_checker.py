"""Each kind of violation is found in a history into which it was planted, and none in a correct one."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import pytest

from histories.checker import RULES, violations
from histories.history import Answered, Begun, Call, Event, Recorder, calls, read

Plant = Callable[["Story"], object]

BODY = {"idempotency_key": "k", "n": 4, "data": {"type": "range", "start": 10, "step": 1}}
DURATIONS_US = [100, 200, 300, 400]
CHARGE_US = sum(DURATIONS_US)


def value(request: Any, index: int) -> Any:
    return request["data"]["start"] + index * request["data"]["step"]


def result(index: int, outcome: str = "ok") -> list[Any]:
    return [index, outcome, DURATIONS_US[index], index + 10]


def status(state: str, cursor: int, results: Iterable[int] = (), **more: Any) -> dict[str, Any]:
    """Return a status after which all tasks up to a cursor of 2 a task are done."""
    done = cursor // 2
    progress = {"tasks": 4, "done": done, "errors": 0, "charged_us": sum(DURATIONS_US[:done])}
    return {
        "package_id": "p", "state": state, "cursor": cursor, "progress": progress, "more": False,
        "results": [result(index) for index in results],
    } | more  # fmt: skip


class Story:
    """A correct history, one call after the other: two clients of an account, an operator, and a stranger."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        made = {"account_id": "a", "name": "ann", "role": "user", "granted_us": 5_000, "spent_us": 0}
        request = {"name": "ann", "idempotency_key": "c", "quota_us": 5_000}
        self.add("create_account", request, {"account": made}, "admin")
        self.start = self.add("start_tasks", BODY, {"package_id": "p"})
        self.half = self.wait(0, status("running", 4, [0, 1]))
        self.listed = self.add("list_packages", {}, {"packages": [self.summary("running", 2)]})
        self.end = self.wait(4, status("completed", 8, [2, 3], settled=True))
        self.again = self.wait(0, status("completed", 8, [0, 1, 2, 3], settled=True))
        self.hello = self.balance(CHARGE_US)

    def add(self, route: str, request: Any, reply: Any, account: str = "ann", status: int | None = 200) -> Call:
        at_ns = 10 * len(self.calls)
        end = (None, None, None) if status is None else (at_ns + 5, status, deepcopy(reply))
        self.calls.append(Call("c", account, route, deepcopy(request), at_ns, *end))
        return self.calls[-1]

    def refuse(self, route: str, request: Any, status: int, code: str, account: str = "ann") -> Call:
        reply = {"code": code, "message": "", "retryable": status in {429, 500, 503}}
        return self.add(route, request, reply, account, status)

    def wait(self, cursor: int, said: dict[str, Any], account: str = "ann") -> Call:
        request = {"packages": [{"package_id": "p", "cursor": cursor}]}
        return self.add("await_tasks", request, {"packages": [said]}, account)

    def summary(self, state: str, done: int, package_id: str = "p") -> dict[str, Any]:
        progress = {"tasks": 4, "done": done, "charged_us": sum(DURATIONS_US[:done])}
        return {"package_id": package_id, "state": state, "progress": progress}

    def balance(self, spent_us: int, granted_us: int = 5_000) -> Call:
        return self.add("hello", {}, {"account_id": "a", "granted_us": granted_us, "spent_us": spent_us})

    def cancel(self, said: dict[str, Any] | None = None, **request: Any) -> Call:
        reply = {"state": "completed", "cancelled": [], "charged_us": CHARGE_US} | (said or {})
        return self.add("cancel_tasks", {"package_id": "p"} | request, reply)

    def found(self) -> set[str]:
        return {violation.rule for violation in violations(self.calls, value)}


def said(call: Call) -> Any:
    """The status of the first package in an answer."""
    return call.reply["packages"][0]


def end_in_cancel(story: Story, **changed: Any) -> None:
    """Let the package be cancelled after two results."""
    story.calls = story.calls[:4]
    progress = {"tasks": 4, "done": 4, "charged_us": 300}
    cancelled = story.cancel({"state": "cancelled", "cancelled": [[2, 4]], "charged_us": 300})
    cancelled.reply.update(changed)
    story.wait(4, status("cancelled", 6, settled=True, progress=progress, reason="cancelled"))


def test_a_correct_history_has_no_violation() -> None:
    story = Story()
    story.refuse("start_tasks", BODY | {"n": 5}, 409, "idempotency_conflict")
    story.add("start_tasks", BODY, None, status=None)
    story.cancel()
    story.refuse("await_tasks", {"packages": [{"package_id": "p"}]}, 503, "unavailable")
    story.add("acknowledge", {"package_ids": ["p"]}, {})
    story.wait(8, status("expired", 8, settled=True))
    story.add("list_packages", {}, {"packages": []})
    assert violations(story.calls, value) == []


def test_a_cancelled_package_has_no_violation() -> None:
    story = Story()
    end_in_cancel(story)
    assert violations(story.calls, value) == []


def test_overlapping_calls_may_take_effect_in_any_order() -> None:
    story = Story()
    early = story.wait(0, status("running", 4, [0, 1]))
    story.calls[-1] = Call(*_fields(early, began_ns=story.end.began_ns))
    story.calls.append(Call(*_fields(story.hello, began_ns=0, spent_us=0)))
    assert violations(story.calls, value) == []


def _fields(call: Call, began_ns: int, **reply: Any) -> tuple[Any, ...]:
    changed = call.reply | reply
    return call.client, call.account, call.route, call.request, began_ns, call.ended_ns, call.status, changed


def other_start(story: Story, package_id: str = "q", **body: Any) -> Call:
    return story.add("start_tasks", BODY | body, {"package_id": package_id})


def lose_account(story: Story) -> None:
    story.add("await_tasks", {"packages": [{"package_id": "p"}]}, {"packages": [], "missing": {"p": "?"}})


PLANTED: dict[str, tuple[str, Plant]] = {
    "a lost result": ("none missing", lambda s: [said(call)["results"].pop() for call in (s.end, s.again)]),
    "a result that one read lacks": ("one position a result", lambda s: said(s.again)["results"].pop(1)),
    "a result after its position": ("one position a result", lambda s: said(s.end)["results"].append(result(0))),
    "a result twice in a reply": ("one position a result", lambda s: said(s.again)["results"].append(result(0))),
    "another result later": ("one result a task", lambda s: said(s.again)["results"][0].__setitem__(2, 101)),
    "an index outside": ("one result a task", lambda s: said(s.end)["results"][0].__setitem__(0, 4)),
    "the value of another task": (
        "right value",
        lambda s: [said(call)["results"][-1].__setitem__(3, 12) for call in (s.end, s.again)],
    ),
    "a backwards cursor": ("cursors rise", lambda s: s.wait(8, status("completed", 6, settled=True))),
    "another order": ("one order", lambda s: said(s.again)["results"].reverse()),
    "a result after the end": (
        "nothing after the end",
        lambda s: s.wait(8, status("completed", 10, settled=True) | {"results": [[9, "ok", 1, 19]]}),
    ),
    "a success with an error": ("none missing", lambda s: said(s.end)["results"][0].__setitem__(1, "error")),
    "too few done": ("progress counts results", lambda s: said(s.half)["progress"].update(done=1)),
    "a package without end": ("everything ends", lambda s: [s.calls.pop() for _ in range(3)]),
    "another result of a cancelled task": (
        "cancelled tasks have no result", lambda s: s.cancel({"cancelled": [[3, 4]]}, ranges=[[3, 4]])
    ),
    "tasks cancelled without a request": (
        "cancelled tasks have no result", lambda s: said(s.half).update(cancelled=[[2, 3]])
    ),
    "a result of a task of a cancelled package": (
        "cancelled tasks have no result", lambda s: end_in_cancel(s, cancelled=[[1, 4]])
    ),
    "a package that runs again": ("never back", lambda s: s.wait(8, status("running", 8))),
    "two ends": ("one end", lambda s: s.wait(8, status("failed", 8, reason="expired"))),
    "fewer tasks done": ("counters rise", lambda s: s.wait(8, status("completed", 6, settled=True))),
    "a cancelled package that runs": ("cancel is final", lambda s: s.cancel({"state": "running"})),
    "a package that survives its acknowledgement": (
        "acknowledge deletes",
        lambda s: [s.add("acknowledge", {"package_ids": ["p"]}, {}), s.wait(8, status("completed", 8, settled=True))],
    ),
    "an end without a request": ("no end without cause", lambda s: s.wait(8, status("expired", 8))),
    "an effect of a refused cancel": (
        "no end without cause",
        lambda s: [
            s.calls.pop(), s.calls.pop(), s.calls.pop(),
            s.refuse("cancel_tasks", {"package_id": "p"}, 404, "not_found", "bob"),
            s.wait(4, status("cancelled", 4, reason="cancelled", settled=True)),
        ],
    ),
    "a charge that vanishes": ("charge is final", lambda s: said(s.again)["progress"].update(charged_us=0)),
    "a charge after the settlement": ("charge is final", lambda s: said(s.again)["progress"].update(charged_us=9_999)),
    "a settlement that is taken back": ("charge is final", lambda s: s.wait(8, status("completed", 8))),
    "a second charge": (
        "charge is the sum",
        lambda s: [said(call)["progress"].update(charged_us=CHARGE_US + 100) for call in (s.end, s.again)],
    ),
    "work that is not charged": (
        "charge is the sum",
        lambda s: [said(call)["progress"].update(charged_us=CHARGE_US - 100) for call in (s.end, s.again)],
    ),
    "more than the quota": ("quota is a wall", lambda s: s.balance(5_001)),
    "a grant that vanishes": ("grants are kept", lambda s: s.balance(CHARGE_US, granted_us=4_000)),
    "a grant that counts twice": (
        "grants are kept",
        lambda s: [
            s.add("grant_quota", {"account_id": "a", "idempotency_key": "g", "quota_us": 7}, None, "admin", None),
            s.balance(CHARGE_US, granted_us=5_014),
        ],
    ),
    "a settlement that vanishes": ("spent is the charges", lambda s: s.balance(CHARGE_US - 100)),
    "a settlement that counts twice": ("spent is the charges", lambda s: s.balance(2 * CHARGE_US)),
    "a start without quota": (
        "nothing starts without quota",
        lambda s: [s.balance(CHARGE_US, granted_us=CHARGE_US), other_start(s, idempotency_key="l")],
    ),
    "two packages of a key": ("one package a key", other_start),
    "a package of two keys": ("one package a key", lambda s: other_start(s, "p", idempotency_key="l")),
    "another body of a key": ("one body a key", lambda s: other_start(s, "p", n=5)),
    "a conflict with nothing": (
        "one body a key", lambda s: s.refuse("start_tasks", BODY, 409, "idempotency_conflict")
    ),
    "a package that is forgotten": ("never forgotten", lose_account),
    "a cancel that does not find its package": (
        "never forgotten", lambda s: s.refuse("cancel_tasks", {"package_id": "p"}, 404, "not_found")
    ),
    "a package that a list lacks": ("listed", lambda s: s.listed.reply["packages"].clear()),
    "an effect of a refused start": (
        "none without a start",
        lambda s: [
            s.refuse("start_tasks", BODY | {"idempotency_key": "l"}, 402, "quota_exhausted"),
            s.add("list_packages", {}, {"packages": [s.summary("completed", 4), s.summary("running", 0, "q")]}),
        ],
    ),
    "a package that a stranger sees": ("private", lambda s: s.wait(0, status("completed", 8, range(4)), "bob")),
    "an unknown error": ("documented", lambda s: s.refuse("hello", {}, 418, "teapot")),
    "an error with the wrong status": ("documented", lambda s: s.refuse("hello", {}, 400, "not_found")),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_violation_is_found(kind: str) -> None:
    rule, plant = PLANTED[kind]
    story = Story()
    plant(story)
    assert rule in story.found()


def test_each_rule_finds_a_planted_violation() -> None:
    assert len({rule for rule, _ in PLANTED.values()}) == len(RULES)


def test_a_record_is_read_back_as_calls(tmp_path: Any) -> None:
    """The client was killed during its second request."""
    events: list[Event] = [
        Begun("c", 0, 1, "ann", "hello", {}), Answered("c", 0, 2, 200, {"role": "user"}),
        Begun("c", 1, 3, "ann", "start_tasks", BODY),
    ]  # fmt: skip
    recorder = Recorder(tmp_path / "c.jsonl")
    for event in events:
        recorder.add(event)
    recorder.fault("kill the client")
    recorder.close()
    hello, start = calls(read(tmp_path))
    assert (hello.status, hello.reply, hello.before(start)) == (200, {"role": "user"}, True)
    assert (start.ended_ns, start.request, start.refused) == (None, BODY, False)
