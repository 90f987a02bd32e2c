from typing import Final

from cloudpar_master.core.recent import Recent
from cloudpar_protocol.limits import BULK_ITEMS

ACCOUNTS: Final = 1_000
"""For how many accounts the sessions are remembered. These are the accounts that have started packages last."""

SESSIONS: Final = 1_000
"""How many sessions of one account are remembered. Beyond that, the account's oldest session is forgotten: its next
await is then held although there is a new package. Accounts do not share this number, so that no account can make the
master forget the sessions of another."""


class UnseenPackages:
    """The packages that sessions have started, and that no await of these sessions has named yet.

    Of each session, only the last BULK_ITEMS packages are kept, because no await can name more. A session that never
    awaits its packages therefore takes little memory.
    """

    def __init__(self) -> None:
        self._accounts = Recent[str, Recent[str, Recent[str, None]]](ACCOUNTS)

    def add(self, account_id: str, session: str, package_id: str) -> None:
        """Record that a session has started a package."""
        sessions = self._accounts.get(account_id) or Recent[str, Recent[str, None]](SESSIONS)
        packages = sessions.get(session) or Recent[str, None](BULK_ITEMS)
        packages[package_id] = None
        sessions[session], self._accounts[account_id] = packages, sessions

    def any_besides(self, account_id: str, session: str, names: list[str]) -> bool:
        """Whether a session has started packages that are not in `names`.

        The call forgets all packages of the session, so that each package ends at most one await.
        """
        sessions = self._accounts.get(account_id)
        packages = None if sessions is None else sessions.pop(session, None)
        if not sessions:
            self._accounts.pop(account_id, None)
        return packages is not None and not packages.keys() <= set(names)
