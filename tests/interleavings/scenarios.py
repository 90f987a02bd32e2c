"""All scenarios, and those that need more than two things at the same time, or a special start."""

from typing import Final

from msgspec.structs import replace

from .clients import ACKNOWLEDGE, LIST, READ, REVOKE, cancel, grant, start, wait
from .desk import Actor
from .lifetimes import LIFETIMES
from .pairs import pairs
from .scenario import POLICY, Scenario, client, timer, worker
from .workers import BEAT, TASK_US, How, give_back, publish, retrieve

ONE_OPEN: Final = replace(POLICY, open_packages=1, open_small_packages=1)

CLOSINGS: Final = [
    Scenario(
        f"a lease is closed before every result of it arrived: {how}",
        (
            client("client", start(3, chunksize=3), READ), worker("worker", retrieve(), *deeds),
            worker("second", retrieve(), publish()), timer("timer"),
        ),
        ("client", "worker"),
    )
    for how, deeds in {
        "the last publication leaves one out": (publish(How(skips=1)),),
        "the rest was given back": (publish(How(1, closes=False, skips=1)), give_back(1)),
        "one task of three is given back": (give_back(1),),
        "nothing arrived": (publish(How(skips=3)),),
    }.items()
]  # fmt: skip

SCHEMAS: Final = [
    Scenario(
        f"two releases fold a package while {what}",
        (
            client("client", start(2), READ), Actor("worker", (retrieve(2), publish(How(1)), publish()), schema=old),
            timer("newer", schema=2), *others,
        ),
        ("client", "worker"),
    )
    for what, old, others in (
        ("an older master takes results", 1, ()),
        ("a newer master takes results", 2, (timer("timer"),)),
        ("its client acknowledges at an older master", 2, (client("other", ACKNOWLEDGE),)),
        ("its client cancels at an older master", 2, (client("other", cancel()),)),
        ("a worker gives back to an older master", 1, (worker("second", retrieve(), give_back()),)),
        ("a second worker comes to an older master", 2, (worker("second", retrieve(), publish()),)),
        ("a lease ends", 1, (Actor("clock", (wait(2.5),)), timer("timer"))),
    )
]  # fmt: skip

ACCOUNTS: Final = [
    Scenario(
        f"two accounts: {what}",
        (
            client("one", start(2), *deeds), client("two", start(2), READ, account="a2"),
            worker("worker", retrieve(4), publish(How(1)), publish()), *others,
        ),
        ("one", "two", "worker"),
    )
    for what, deeds, others in (
        ("one worker serves both", (READ,), ()),
        ("one is cancelled", (cancel(),), (timer("timer"),)),
        ("one is revoked", (), (Actor("operator", (REVOKE,)),)),
        ("one acknowledges", (READ, ACKNOWLEDGE), ()),
        ("another worker fetches", (), (worker("second", retrieve(2), publish()),)),
        ("a busy worker fetches besides", (), (worker("second", retrieve(), retrieve(besides=True), publish()),)),
        ("three accounts", (), (client("three", start(1), READ, account="a3"),)),
    )
]  # fmt: skip

QUOTAS: Final = [
    Scenario(
        f"the quota covers one task: {what}",
        (
            client("client", start(3), READ), worker("worker", retrieve(3), publish(How(1)), publish()), *others,
        ),
        ("client", "worker"), quota_us=quota_us, short=True,
    )
    for what, quota_us, others in (
        ("the package fails", 3 * TASK_US, (timer("timer"),)),
        ("an operator grants more", 3 * TASK_US, (Actor("operator", (grant(10**6),)), timer("timer"))),
        ("another package waits", 9 * TASK_US, (client("other", start(2), READ, key="other"), timer("timer"))),
        ("the other package ends", 9 * TASK_US, (client("other", start(2), cancel(), key="other"),)),
        ("an operator takes it", 9 * TASK_US, (Actor("operator", (grant(-(10**6)),)), timer("timer"))),
        ("a worker comes for what is left", 9 * TASK_US, (worker("second", retrieve(2), publish()),)),
    )
]  # fmt: skip

LOSSES: Final = [
    Scenario(
        f"leases end: {what}",
        (
            client("client", start(2, chunksize=2), READ), worker("worker", *[retrieve()] * losses, publish()),
            *others, Actor("clock", (wait(2.5),) * (losses + 1)),
        ),
        ("client", *("worker", "clock") * losses),
    )
    for what, losses, others in (
        ("the worker was too slow", 1, (worker("second", retrieve(), publish()),)),
        ("the last of four workers publishes", 3, (timer("timer"),)),
        ("the chunk is lost", 4, (timer("timer"), timer("other timer"))),
        ("the chunk is lost and cancelled", 4, (timer("timer"), client("other", cancel([(0, 1)])))),
        ("a late worker gives back", 2, (worker("second", retrieve(), give_back()),)),
        ("a worker beats at the end of its lease", 1, (worker("second", retrieve(), BEAT, publish()),)),
    )
]  # fmt: skip

CLOSED: Final = [
    Scenario(
        f"a closed package opens when {what}",
        (
            client("client", start(2), READ), client("other", start(2), READ, key="other"),
            worker("worker", retrieve(), publish()), *others,
        ),
        ("client", "other"), policy=ONE_OPEN,
    )
    for what, others in (
        ("the open one ends", (worker("second", retrieve(), publish()),)),
        ("the open one is cancelled", (client("canceller", cancel()),)),
        ("it is cancelled itself", (client("canceller", cancel(), key="other"),)),
        ("executors idle", (worker("second", retrieve(), retrieve(), retrieve(), publish()),)),
        ("it is listed", (client("lister", LIST, READ), timer("timer"))),
    )
]  # fmt: skip

CROWDS: Final = [
    Scenario(
        f"at the same time: {what}",
        (
            client("client", start(2 + returns)),
            worker("one", retrieve(), publish()), worker("two", retrieve(), publish()), *others,
        ),
        ("client", "one", "two", *("three",) * returns), deviations=3,
    )
    for what, returns, others in (
        ("three publications", 1, (worker("three", retrieve(), publish()),)),
        ("two publications and a give-back", 1, (worker("three", retrieve(), give_back()),)),
        ("two publications and a cancel", 0, (client("other", cancel()),)),
        ("two publications and an acknowledgement", 0, (client("other", ACKNOWLEDGE),)),
        ("two publications and a revocation", 0, (Actor("operator", (REVOKE,)),)),
        ("two publications and a read", 0, (client("reader", READ),)),
    )
]  # fmt: skip
"""Few requests, and many switches between them."""

PAUSING: Final = replace(POLICY, fold_pause_s=1.0, many_workers=1)

LATE_FOLDS: Final = [
    Scenario(
        f"publications wait for the next fold: {what}",
        (
            client("client", start(4, chunksize=1), READ), worker("one", retrieve(2), publish(How(1)), publish()),
            worker("two", retrieve(), publish()), *others,
        ),
        ("client", "one", "one", "two"), policy=PAUSING,
    )
    for what, others in (
        ("the timer folds", (timer("timer"), Actor("clock", (wait(6.0),)))),
        ("a reader folds", (client("reader", READ, READ), Actor("clock", (wait(1.5),)))),
        ("an idle worker comes", (worker("idle", retrieve(), publish()),)),
        ("tasks are given back", (worker("three", retrieve(), give_back()),)),
        ("a client cancels", (client("other", cancel()),)),
        ("a client acknowledges", (client("other", ACKNOWLEDGE),)),
        ("an operator revokes", (Actor("operator", (REVOKE,)),)),
        ("a lease ends", (Actor("clock", (wait(2.5),)), timer("timer"))),
        ("the worker dies with its master", (Actor("mortal", (retrieve(), publish()), mortal=True),)),
    )
]  # fmt: skip

SPECIAL: Final = CROWDS + LATE_FOLDS + CLOSINGS + LIFETIMES + SCHEMAS + ACCOUNTS + QUOTAS + LOSSES + CLOSED
SCENARIOS: Final = SPECIAL + pairs()

STATES: Final = 10_000_000
"""How many different states the full form explores at least, in all scenarios together."""
