"""Opens closed packages, which wait without chunks and reserve because their account has enough open packages."""

from contextlib import suppress

from cloudpar_master.core import planning
from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.core.head import Head
from cloudpar_master.ports import Fit, PackageStore
from cloudpar_protocol.errors import Unavailable

from .backend import Backend
from .folding import Folding
from .uncut_packages import UncutPackages


class OpenCount:
    """Counts an account's open packages only once for a request, which may name a hundred closed packages."""

    def __init__(self, packages: PackageStore) -> None:
        self._packages = packages
        self._depths: dict[str, list[int]] = {}

    def has_few(self, account_id: str, depth: int, most: int) -> bool:
        """Whether a further package of this nesting depth may open, if the account may have `most` open packages.

        A nested package may also open while few open packages are as deep or deeper (planning.NESTED_PACKAGES). The
        packages that this request has opened count, too.
        """
        if account_id not in self._depths:
            self._depths[account_id] = [
                head.depth for head in self._packages.running_heads(account_id) if not _is_closed(head)
            ]
        depths = self._depths[account_id]
        return len(depths) < most or (depth > 0 and sum(each >= depth for each in depths) < planning.NESTED_PACKAGES)

    def note(self, head: Head) -> None:
        """Count a package if it is open now. Call `has_few` for its account first."""
        if not _is_closed(head):
            self._depths[head.account_id].append(head.depth)


def _is_closed(head: Head) -> bool:
    return head.life.ended or head.pace.closed


class ClosedPackages:
    """Opens closed packages: the oldest one after an open package has ended, or one that a client awaits."""

    def __init__(self, backend: Backend, folding: Folding) -> None:
        self._backend = backend
        self._folding = folding
        self._uncut = UncutPackages(backend.packages, backend.clock)

    def open_next(self, ended: Head) -> None:
        """After a package has ended, open the oldest closed package of the same account, if there is one.

        If the policy's `looks_at_end` is False, or the ended package was closed itself, do nothing. If the closed
        package is not opened here, for example because this process dies, it opens when another package ends, when a
        client awaits it, or when executors are idle.
        """
        if not self._backend.policy.looks_at_end or ended.pace.closed:
            return
        # Suppress the error: the results of the ended package are stored, and the request that brought them must not
        # fail.
        with suppress(Unavailable):
            for head in self._uncut.heads(Fit(account=ended.account_id)):
                if head.pace.closed:
                    self._folding.advance(head.package_id, [(f"o#{ended.package_id}", ExecutorsIdle(executors=1))])
                    return

    def open_if_few(self, head: Head, others: OpenCount) -> Head:
        """Open a closed package if its account may have more open packages. Returns the package's newest head."""
        policy = self._backend.policy
        if not head.pace.closed or head.life.ended or head.foreign:
            return head
        most = policy.open_small_packages if head.tasks.count <= planning.SMALL_PACKAGE else policy.open_packages
        if not others.has_few(head.account_id, head.depth, most):
            return head
        event = ExecutorsIdle(executors=1)
        with suppress(Unavailable):  # the event is stored, and another process will fold it
            head = self._folding.advance(head.package_id, [(f"o#{head.package_id}#{head.version}", event)]) or head
            others.note(head)
        return head
