"""What must hold after every step: books of what the stores take and the callers hear, kept beside the system."""

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING, Any

from cloudpar_master.core import planning
from cloudpar_master.core.events import Published
from cloudpar_master.core.fold.open_ranges import HALVINGS
from cloudpar_master.core.head import ENTRIES, HEAD_BYTES, Head, stored
from cloudpar_protocol import codec, ranges, routes
from cloudpar_protocol.client_messages import CancelTasksReply, PackageStatus
from cloudpar_protocol.payloads import Range
from cloudpar_protocol.routes import Route
from cloudpar_protocol.worker_messages import GiveBack, PublishResults, RetrieveTasksReply
from support.checks import hold

if TYPE_CHECKING:
    from .clients import Client
    from .system import System


FAULTS = (
    " dies",
    " vanishes",
    " lose each other",
    " s ahead",
    "Unavailable",
    " for the 2.",
    " has drained",
)


def in_words(name: str, arguments: tuple[Any, ...], answer: Any) -> str:
    """Describe a port call and its answer for a reader of the trace."""
    what: object = ""
    match name:
        case "packages.save":
            head, _, results = arguments
            what = f"{head.package_id[:4]} v{head.version} {head.life.state}"
            what = f"{what} done={head.tasks.done} used={head.quota.used_us}"
            what = f"{what} {[result.index for result in results]}"
        case "packages.append":
            what = f"{arguments[0][:4]} {[key for key, _ in arguments[1]]}"
        case "packages.open":
            what = arguments[0][:4]
            answer = answer and f"v{answer.head.version} {[item.key for item in answer.inbox]}"
        case "packages.delete_events":
            what = f"{arguments[0][:4]} {arguments[1]}"
        case "queue.send":
            what = [short(message.body) for message in arguments[0]]
        case "queue.receive":
            answer = [f"{short(message.body)} for the {message.receives}." for message in answer]
        case "packages.create" | "packages.load" | "packages.find" | "packages.of_account" | "packages.spec":
            answer = "..."
    return f"{what} -> {answer}"


def short(chunk: str) -> str:
    """Shorten the package id in a chunk's name."""
    return chunk[:4] + chunk[32:]


class Books:
    """The books of one run.

    Attributes:
        trace: What happened: the time in microseconds, and a text.
        heads: The head of each package that was saved last.
        committed: The durations of the tasks that have a result, by package.
        said: The longest duration that workers published for each task, by package.
        given_back: The time that workers reported in each give-back, by package, and by lease and number.
        charged: What each package was charged.
        cut: Whether that was less than the package used, since the account had nothing left.
        ended: How each package ended.
        done_us: When all work was done, and the time started in which everything is forgotten.
    """

    def __init__(self, system: "System") -> None:
        self._system = system
        self.trace: list[tuple[int, str]] = []
        self.heads: dict[str, Head] = {}
        self.committed: dict[str, dict[int, int]] = defaultdict(dict)
        self.said: dict[str, dict[int, int]] = defaultdict(dict)
        self.given_back: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        self.charged: dict[str, int] = {}
        self.cut: dict[str, bool] = {}
        self.ended: dict[str, str] = {}
        self.done_us = inf
        self._cancelled_us: dict[str, int] = {}
        self._cancelled: dict[str, list[Range]] = defaultdict(list)

    @property
    def faults(self) -> int:
        """How many faults happened."""
        return sum(any(word in text for word in FAULTS) for _, text in self.trace)

    @property
    def late_deaths(self) -> int:
        """How many times a master died after all work was done."""
        return sum(now_us >= self.done_us and text.endswith(" dies") for now_us, text in self.trace)

    def say(self, text: str) -> None:
        """Add a text to the trace."""
        self.trace.append((self._system.schedule.now_us, text))

    def note(self, call: str, arguments: tuple[Any, ...], answer: Any) -> None:
        """Note a port call that has taken effect."""
        name = call.rpartition(" ")[2]
        if name == "packages.create" and answer is arguments[0]:
            self.heads[arguments[1].package_id] = arguments[1]
        elif name == "packages.save" and answer:
            head, _, results = arguments
            self._saved(head, {result.index: result.duration_us for result in results}, len(results))
        elif name == "accounts.settle":
            self._settled(arguments[1].partition("@")[0], arguments[2], answer)  # by its billing id
        if name.startswith("accounts"):
            self._check_accounts()
        self.say(f"{call} {in_words(name, arguments, answer)}")

    # Heads.

    def _saved(self, head: Head, results: dict[int, int], count: int) -> None:
        before, package_id = self.heads[head.package_id], head.package_id
        committed = self.committed[package_id]
        hold(head.version == before.version + 1, "version", head.version, "follows", before.version)
        hold(head.now >= before.now, "time goes back")
        hold(len(results) == count, "twice in one page", results)
        hold(not results or not before.life.ended, package_id, "commits after its end")
        twice = results.keys() & committed.keys()
        hold(not twice, package_id, "commits again", sorted(twice))
        gone = [index for index in results if ranges.contains(self._cancelled[package_id], index)]
        hold(not gone, package_id, "commits what was cancelled", gone)
        committed.update(results)
        self.heads[package_id] = head
        self._check_state(before, head)
        self._check_tasks(head, committed)
        self._check_size(head)

    def _check_state(self, before: Head, head: Head) -> None:
        if before.life.ended:
            hold(head.life.state in {before.life.state, "expired"}, "from", before.life.state, "to", head.life.state)
            hold(head.quota.used_us >= before.quota.used_us, "time is forgotten")
        elif head.life.ended:
            self.ended[head.package_id] = head.life.reason or head.life.state
            hold(head.life.reason != "broken", head.life.message)
        hold(not before.life.settled or head.quota.used_us == before.quota.used_us, "used after it was settled")

    def _check_tasks(self, head: Head, committed: dict[int, int]) -> None:
        """Check that every task of a running package is in one place."""
        hold(head.quota.used_us >= sum(committed.values()), "used", head.quota.used_us, "of", committed)
        if head.life.ended and head.life.state != "completed":
            return
        done, cancelled = ranges.of(sorted(committed)), head.tasks.cancelled
        opened = [(chunk.start, chunk.end) for chunk in head.tasks.open]
        uncut = ranges.subtract([(head.tasks.cursor, head.tasks.count)], cancelled)
        places = [*done, *cancelled, *opened, *uncut]
        hold(
            ranges.size(places) == head.tasks.count and ranges.union(places) == [(0, head.tasks.count)], "tasks", places
        )
        hold(head.tasks.done == ranges.size(done) + ranges.size(cancelled), "done", head.tasks.done, done, cancelled)

    def _check_size(self, head: Head) -> None:
        entries = len(head.tasks.open) + len(head.tasks.cancelled) + len(head.tasks.stopping)
        hold(entries <= ENTRIES + HALVINGS and len(stored.encode(head)) < HEAD_BYTES, "a head of", entries, "entries")
        first = planning.first_window(head.tasks.count, self._system.policy)
        largest = planning.largest_window(head.pace.most_executors, self._system.policy)
        hold(head.pace.window <= max(first, largest), "window", head.pace.window)
        hold(len(head.tasks.open) <= head.tasks.count, "more chunks than tasks")

    # Money.

    def _check_accounts(self) -> None:
        for account in self._system.data.books.accounts.values():
            held = account.spent_us + account.reserved_us
            hold(account.reserved_us >= 0 and held <= account.granted_us, "overdrawn", account)

    def _settled(self, package_id: str, used_us: int, charged_us: int) -> None:
        if package_id in self.charged:  # another master settles it, too, maybe with a longer time
            hold(self.charged[package_id] == charged_us, "charged", self.charged[package_id], "and then", charged_us)
            return
        head = self.heads[package_id]
        account = self._system.data.books.accounts[head.account_id]
        self.charged[package_id], self.cut[package_id] = charged_us, charged_us < used_us
        hold(charged_us == used_us or account.free_us == 0, "charged", charged_us, "of", used_us)
        hold(head.life.ended and used_us <= head.quota.used_us, "settled too early")
        committed_us = sum(self.committed[package_id].values())
        said = self.said[package_id].items()
        stopped_us = sum(us for index, us in said if index not in self.committed[package_id])
        back_us = sum(self.given_back[package_id].values())
        most_us = committed_us + stopped_us + back_us
        hold(charged_us <= used_us <= most_us, "charged", used_us, "of", committed_us, stopped_us, back_us)

    # Answers to callers.

    def asked(self, route: Route[Any, Any], body: bytes) -> None:
        """Note a request that has arrived."""
        if route is routes.PUBLISH_RESULTS:
            for pub in codec.decode(body, PublishResults).publications:
                said = self.said[pub.package_id]
                for result in pub.results:
                    said[result.index] = max(result.duration_us, said.get(result.index, 0))
        elif route is routes.GIVE_BACK:
            for item in codec.decode(body, GiveBack).returns:
                self.given_back[item.package_id][item.lease_id, item.seq] = item.used_us

    def answered(self, route: Route[Any, Any], body: bytes, answer: object, began_us: int) -> None:
        """Check an answer of a master, also one that does not arrive."""
        if route is routes.PUBLISH_RESULTS:
            self._published(codec.decode(body, PublishResults), isinstance(answer, bytes))
        elif route is routes.RETRIEVE_TASKS and isinstance(answer, bytes):
            for lease in codec.decode(answer, RetrieveTasksReply).leases:
                cancelled_us = self._cancelled_us.get(lease.package_id)
                hold(cancelled_us is None or began_us <= cancelled_us, lease.package_id, "is leased after its cancel")

    def _published(self, request: PublishResults, acknowledged: bool) -> None:
        for pub in request.publications:
            head = self.heads.get(pub.package_id)
            if not acknowledged or head is None or head.life.ended:
                continue
            waiting = self._waiting(pub.package_id)
            for result in pub.results:
                there = result.index in self.committed[pub.package_id] or result.index in waiting
                there = there or ranges.contains(head.tasks.cancelled, result.index) or result.outcome == "cancelled"
                hold(there, pub.package_id, "has lost an acknowledged result of", result.index)

    def _waiting(self, package_id: str) -> set[int]:
        stored = self._system.data.packages.get(package_id)
        found = self._system.stores.packages.open(package_id, 1_000) if stored and stored.inbox else None
        events = [item.event for item in found.inbox] if found else []
        return {result.index for event in events if isinstance(event, Published) for result in event.results}

    def confirm_start(self, package_id: str) -> None:
        """Check that a package exists whose start was answered."""
        hold(package_id in self.heads, package_id, "was started, and does not exist")

    def confirm_cancel(self, package_id: str, reply: CancelTasksReply) -> None:
        """Note the answer to a cancel."""
        self._cancelled[package_id] = ranges.union(self._cancelled[package_id], reply.cancelled)
        if reply.state == "cancelled":
            self._cancelled_us[package_id] = self._system.schedule.now_us

    def read_to_the_end(self, client: "Client", status: PackageStatus) -> None:
        """Check what a client has read of an ended package."""
        package_id = client.package_id
        hold(status.state == "expired" or client.seen == self.committed[package_id], client.name, "has not read all")
        hold(status.progress.charged_us == self.charged[package_id], client.name, "received another charge")
