"""The whole system of one seed, from its first package until all packages are forgotten."""

import tempfile
from itertools import count
from pathlib import Path

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_worker.core import stimuli as on
from support.checks import Broken, hold
from support.ids import CountedIds
from support.memory.stores import Data, over

from .agents import Agent
from .books import Books
from .clients import Client, Operator
from .fate import Fate, draw
from .masters import Master
from .network import Network
from .schedule import Schedule
from .work import Work

DAY_US = 86_400_000_000
CALM_US = 600_000_000
"""Within this time after the last fault all work must be done. A package that is not makes no progress any more."""

SLACK_US = 300_000
"""The interval between publications near the end of a quota, with the time that a publication and its answer travel."""

LATE_FAULTS = 3
"""In one of this many runs masters also die while packages only grow old."""

FOLDER = Path(tempfile.gettempdir()) / "cloudpar-simulation"


class System:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.schedule = Schedule(seed)
        self._seed = seed
        random = self.random = self.schedule.random
        self.fate = draw(random)
        self.tick_us = 2_000_000
        self.ids = CountedIds()
        self.data = Data()
        self.data.letters.looks = seed % 2 == 0
        self.policy = Policy(
            lease_s=random.choice([3.0, 6.0]), first_window=random.choice([1, 2, 8]),
            chunk_target_us=random.choice([50_000, 200_000, 2_000_000]), largest_window=random.choice([4, 400]),
            slice_us=random.choice([50_000, 1_000_000, 30_000_000]), kept_bytes=random.choice([0, 10_000]),
            task_timeout_s=random.choice([1.0, 3600.0]), fleet_memory_s=random.choice([10.0, 60.0]),
        )  # fmt: skip
        self.stores = over(self.data, FOLDER, self.schedule, self.ids)
        self.books = Books(self)
        self.network = Network(self)
        self.work = Work(random)
        self.masters = [Master(self, f"m{number}", FOLDER) for number in range(random.randint(1, 3))]
        self.data.letters.withdraws = len(self.masters) == 1
        self._agents: list[Agent] = []
        self._numbers = count(1)
        self._old = False
        self._hired = 0
        self._granted_us: dict[str, int] = {}
        accounts = [self._account(f"a{number}") for number in range(random.randint(1, 2))]
        self._clients = [
            Client(self, f"c{number}", random.choice(accounts), random.choice([1, 2, 10, 40]))
            for number in range(random.randint(1, 4))
        ]
        Operator(self, accounts)
        for _ in range(random.randint(1, 4)):
            self._hire()
        if self.fate.mishap_us:
            self.schedule.spawn(self._mishaps)

    def chance(self, probability: float) -> bool:
        """Draw whether something of this probability happens."""
        return probability > 0.0 and self.random.random() < probability

    def _account(self, name: str) -> str:
        granted_us = self.random.choice([10**12, 10**12, self.random.randrange(10_000, 5_000_000)])
        self.stores.accounts.create(AccountRecord(name, name, hash_token(name), "active", granted_us, 0, 0, 0.0))
        self._granted_us[name] = granted_us
        return name

    def _hire(self) -> None:
        if not self._old:
            agent = Agent(self, f"w{next(self._numbers)}", self.random.randint(1, 3))
            self._agents.append(agent)
            self._hired += agent.executors

    def vanish(self, name: str) -> None:
        """Let a worker vanish, and another one come."""
        for agent in self._agents:
            if agent.name == name and not agent.gone:
                agent.vanish()
                self.schedule.after(self.random.randrange(5_000_000), self._hire)

    def _mishaps(self) -> None:
        """Let larger faults happen than those of single calls."""
        random = self.random
        while self.fate.until_us:
            self.schedule.sleep(self.schedule.about(self.fate.mishap_us))
            agent, master = random.choice(self._agents), random.choice(self.masters)
            match random.randrange(5):
                case 0:
                    self.vanish(agent.name)
                case 1:
                    agent.hear(on.DrainRequested())
                    self.schedule.after(random.randrange(5_000_000), self._hire)
                case 2:
                    caller = random.choice([agent.name, random.choice(self._clients).name])
                    self.books.say(f"{caller} and {master.name} lose each other")
                    self.network.cut(caller, master.name, random.randrange(20_000_000))
                case 3:
                    master.clock.ahead_s = random.uniform(-10.0, 10.0)
                    self.books.say(f"the clock of {master.name} is {master.clock.ahead_s:+.1f} s ahead")
                case _:
                    master.die()

    def run(self) -> None:
        """Run until all packages are forgotten.

        Raises:
            Broken: A check has failed.
        """
        while self.schedule.now_us < self.fate.until_us:
            self.schedule.step()
        self._calm()
        calm_until_us = self.schedule.now_us + CALM_US
        while not self._is_done():
            hold(self.schedule.now_us < calm_until_us, "no progress:", *self._unfinished())
            now_us = self.schedule.now_us
            while self.schedule.now_us < now_us + 1_000_000:
                self.schedule.step()
        self._check_books()
        self._grow_old()

    def _calm(self) -> None:
        self.books.say("all faults end")
        self.fate = Fate(quiet=self.fate.quiet)
        for master in self.masters:
            master.clock.ahead_s = 0.0
        if all(agent.gone for agent in self._agents):
            self._hire()

    def _unfinished(self) -> list[str]:
        return [
            f"{head.package_id} {head.life.state} done={head.tasks.done}/{head.tasks.count} "
            f"open={head.tasks.open} settled={head.life.settled}"
            for head in self.books.heads.values()
            if not head.life.settled
        ] or [f"messages {self.data.letters.there}"]

    def _is_done(self) -> bool:
        if self.work_lasts():
            self._agents = [agent for agent in self._agents if not agent.gone]
            if not self._agents:
                self._hire()
        settled = all(head.life.settled for head in self.books.heads.values())
        return settled and not self.data.letters.there and all(client.finished for client in self._clients)

    def work_lasts(self) -> bool:
        return not all(head.life.ended for head in self.books.heads.values()) or bool(self.data.letters.there)

    def _check_books(self) -> None:
        """Check that all work is charged, and that nothing is reserved."""
        books = self.books
        for account in self.stores.accounts.list():
            theirs = [head for head in books.heads.values() if head.account_id == account.account_id]
            unsettled = [head.package_id for head in theirs if head.package_id not in books.charged]
            hold(not unsettled, "nothing was ever charged of", *unsettled)
            charged_us = sum(books.charged[head.package_id] for head in theirs)
            hold((account.spent_us, account.reserved_us) == (charged_us, 0), "the books of", account, charged_us)
            if self.fate.quiet:
                used_us = sum(head.quota.used_us for head in theirs)
                over_us = used_us - max(account.granted_us, self._granted_us[account.account_id])
                hold(over_us <= self._hired * (self.work.longest_us + SLACK_US), "overrun by", over_us)
        for package_id, reason in books.ended.items():
            head, charged_us, cut = books.heads[package_id], books.charged[package_id], books.cut[package_id]
            committed_us = sum(books.committed[package_id].values())
            hold(reason in self._ends(), package_id, "ended:", reason)
            hold(cut or committed_us <= charged_us <= head.quota.used_us, "charged", charged_us, "of", committed_us)
            if reason in {"completed", "quota"} and not head.tasks.cancelled:  # nothing was stopped and charged
                used_us, back_us = head.quota.used_us, sum(books.given_back[package_id].values())
                # A give-back is not charged if its worker was taken for lost before it arrived.
                hold(committed_us <= used_us <= committed_us + back_us, "used", used_us, "of", committed_us, back_us)
                hold(charged_us == used_us or (cut and reason == "quota"), "charged", charged_us, used_us)

    def _ends(self) -> set[str]:
        """Return how packages may end. One that starts when there are no workers any more expires."""
        return {"completed", "cancelled", "acknowledged", "quota", "revoked"} | ({"expired"} if self._old else set())

    def _grow_old(self) -> None:
        """Let days pass: unacknowledged packages are deleted, and then all are forgotten, even if masters die.

        A start that was on its way for very long may still arrive.
        """
        self._old = True
        self.books.done_us = self.schedule.now_us
        if self._seed % LATE_FAULTS == 0:
            self.fate.dies = self.random.choice([0.02, 0.1])
        for agent in self._agents:
            agent.gone = True
        self.tick_us = DAY_US // 4
        until_us = self.schedule.now_us + 60 * DAY_US
        while self.data.packages and self.schedule.now_us < until_us:
            self.schedule.step()
        hold(not self.data.packages, "is never forgotten:", *self.data.packages)
        self._check_books()


def run(seed: int) -> Books:
    """Run one seed.

    Raises:
        Broken: A check has failed. The error's notes have the end of the trace, and how to run the seed again.
    """
    system = System(seed)
    try:
        system.run()
    except Exception as error:
        error.add_note(story(system.books, 60))
        error.add_note(f"seed {seed}: PYTHONPATH=tests .venv/bin/python -m simulation --seed {seed}")
        raise
    return system.books


def story(books: Books, last: int | None = None) -> str:
    """Format a trace for people."""
    lines = books.trace if last is None else books.trace[-last:]
    return "\n".join(f"{now_us / 1e6:12.6f} s  {text}" for now_us, text in lines)


__all__ = ["Broken", "run", "story"]
