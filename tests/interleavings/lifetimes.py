"""Scenarios of readers beside each other, of expiry, of restored data, and of keys that are used again."""

from typing import Final

from msgspec.structs import replace

from .clients import ACKNOWLEDGE, LIST, READ, REVOKE, cancel, damage, grant, restore, start, wait
from .desk import Actor
from .scenario import AGE_S, POLICY, Scenario, client, timer, worker
from .workers import BEAT, How, give_back, publish, retrieve

AGED: Final = Actor("clock", (wait(AGE_S), wait(AGE_S)))

SHORT_LIVED: Final = replace(POLICY, lifetime_s=3.0)

STORED: Final = replace(POLICY, kept_bytes=10**6)
"""A small package keeps its data until its tombstone goes, as on AWS."""

QUIET: Final = replace(POLICY, task_timeout_s=1.0, retention_s=9 * AGE_S)
"""After 601 s without a report, chunks are sent again. The package is kept for much longer than this."""

READERS: Final = [
    Scenario(
        f"two readers, and one acknowledges{ending}",
        (
            client("one", start(2), READ, ACKNOWLEDGE), client("two", READ, READ),
            worker("worker", retrieve(2), publish()), timer("timer"),
        ),
        before, policy=policy,
    )
    for ending, before, policy in (
        ("", ("one", "worker", "worker", "one"), POLICY),
        (" while results come", ("one", "worker"), POLICY),
        (" a package that keeps its data", ("one", "worker", "worker", "one"), STORED),
    )
]  # fmt: skip

REUSES: Final = [
    Scenario(
        f"a key is used again while {what}",
        (
            client("client", start(2), ACKNOWLEDGE, start(2), READ), *others, AGED,
            worker("worker", retrieve(2), publish()), timer("first", 2),
        ),
        ("client", "worker", "worker", "client", "first", "clock"), policy=policy,
    )
    for what, others, policy in (
        ("two timers forget its package", (timer("timer"),), POLICY),
        ("another reader looks", (client("reader", READ, READ),), POLICY),
        ("another client starts it", (client("other", start(2), READ),), POLICY),
        ("another client acknowledges", (client("other", ACKNOWLEDGE),), POLICY),
        ("another client cancels", (client("other", cancel()),), POLICY),
        ("a worker uploads a result", (worker("uploader", retrieve(), publish(How(blobs=True))),), POLICY),
        ("a package goes that kept its data", (timer("timer"),), STORED),
    )
]  # fmt: skip

EXPIRIES: Final = [
    Scenario(
        "a package runs too long while its last results come",
        (
            client("client", start(2), READ), worker("worker", retrieve(2), publish(How(1)), publish()),
            timer("timer"), Actor("clock", (wait(3.5),)),
        ),
        ("client", "worker"), policy=SHORT_LIVED,
    ),
    Scenario(
        "a package runs too long while it is cancelled",
        (
            client("client", start(2), cancel()), worker("worker", retrieve(2), BEAT), timer("timer"),
            Actor("clock", (wait(3.5),)),
        ),
        ("client", "worker"), policy=SHORT_LIVED,
    ),
    *(
        Scenario(
            f"a package expires while {what}",
            (
                client("client", start(2), READ, *deeds), worker("worker", retrieve(2), publish(How(blobs=True))),
                AGED, timer("timer"), *others,
            ),
            ("client", "worker", "worker"), policy=policy,
        )
        for what, deeds, others, policy in (
            ("its client reads", (READ,), (), POLICY),
            ("its client acknowledges", (ACKNOWLEDGE,), (), POLICY),
            ("its client cancels", (cancel(),), (), POLICY),
            ("its client starts it again", (start(2), READ), (), POLICY),
            ("two timers look", (), (timer("second"),), POLICY),
            ("two timers look, and it keeps its data", (), (timer("second"),), STORED),
            ("a newer master's timer looks", (), (timer("newer", schema=2),), POLICY),
        )
    ),
]  # fmt: skip

RESTORES: Final = [
    Scenario(
        f"the data is restored while {what}",
        (
            client("client", start(2), *deeds), worker("worker", retrieve(2), publish(How(1)), publish()), *others,
            Actor("operator", (restore("packages", "accounts", "queue", "blobs"),)),
        ),
        ("client", "worker"),
    )
    for what, deeds, others in (
        ("a worker publishes", (), (timer("timer"),)),
        ("its client cancels", (cancel(),), ()),
        ("its client acknowledges", (ACKNOWLEDGE,), ()),
        ("another worker comes", (), (worker("second", retrieve(2), publish()),)),
        ("another package starts", (), (client("other", start(2), key="other"),)),
        ("an operator grants and revokes", (), (Actor("second", (grant(1000), REVOKE)),)),
    )
]  # fmt: skip

PARTIAL: Final = [
    Scenario(
        f"a backup without the queue is restored while {what}",
        (
            client("client", start(2), READ), worker("worker", retrieve(2), publish(How(1)), publish()), *others,
            Actor("operator", (restore("packages", "accounts"),)),
        ),
        ("client", "worker"), policy=QUIET, turn_s=60.0,
    )
    for what, others in (
        ("a worker publishes", (timer("timer"),)),
        ("another worker gives back", (worker("second", retrieve(2), give_back()),)),
        ("the package is cancelled", (client("other", cancel()),)),
        ("another package starts", (client("other", start(2), key="other"),)),
    )
]  # fmt: skip

DAMAGES: Final = [
    Scenario(
        f"the head of a package is damaged while {what}",
        (
            client("one", start(2), *deeds), client("two", start(2), READ, account=account, key="other"),
            worker("worker", retrieve(4), publish(How(1)), publish()), Actor("disk", (damage(),)), *others,
        ),
        ("one", "two", "worker"), policy=SHORT_LIVED,
    )
    for what, account, deeds, others in (
        ("a worker publishes", "a2", (READ,), ()),
        ("a worker of the same account's packages publishes", "a1", (), (timer("timer"),)),
        ("a worker beats", "a2", (), (worker("second", retrieve(2), BEAT, publish()),)),
        ("it is cancelled and listed", "a2", (cancel(), LIST), ()),
        ("it is acknowledged", "a2", (ACKNOWLEDGE,), (timer("timer"),)),
        ("its lease ends", "a2", (), (timer("timer"), Actor("clock", (wait(2.5),)))),
    )
]  # fmt: skip

LIFETIMES: Final = READERS + REUSES + EXPIRIES + RESTORES + PARTIAL + DAMAGES
