from collections.abc import Collection, Sequence
from typing import Any, get_args

from cloudpar_master.ports import AccountRecord, AccountStore, Clock, DayUsage, Reservation, UsagePart
from cloudpar_master.ports.account_store import MOST_US, day_of, name_taken
from cloudpar_protocol.account_messages import TokenRole
from cloudpar_protocol.errors import IdempotencyConflict
from cloudpar_protocol.payloads import Network

from .database import Database

SETTLEMENT_MEMORY_S = 60 * 86400.0
"""Seconds for which a settlement is remembered. No master repeats a settlement after that time."""

_ROLES = get_args(TokenRole)

_SELECT = (
    "SELECT account_id, name, token_hash, state, granted_us, spent_us, reserved_us, created_at, "
    "coalesce(role, 'user'), coalesce(valid_until, 0.0), NULL, "
    "CASE WHEN account_id IN (SELECT account_id FROM offline_accounts) THEN 'none' ELSE 'outbound' END "
    "FROM accounts LEFT JOIN token_roles USING (account_id)"
)
"""The accounts' roles, and the accounts without network, are in tables of their own, so that release 0.3.0 can still
write accounts into the same database."""


class SqliteAccountStore(AccountStore):
    """Accounts in SQLite."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock
        self._pruned_on = ""

    def create(self, account: AccountRecord) -> AccountRecord:
        with self._db.transaction():
            stored = self.get(account.account_id)
            if stored is not None:
                return stored
            if self.by_token(account.token_hash) is not None:
                raise IdempotencyConflict("this token belongs to another account: make a fresh one")
            # A unique index cannot replace this check: data folders of earlier releases may have two accounts with the
            # same name.
            select = "SELECT account_id FROM accounts WHERE name = ? AND state = 'active'"
            holder = self._db.execute(select, (account.name,)).fetchone()
            if holder is not None:
                raise name_taken(account.name, holder[0])
            self._db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", account[:8])
            if (account.role, account.valid_until) != ("user", 0.0):
                insert = "INSERT INTO token_roles VALUES (?, ?, ?)"
                self._db.execute(insert, (account.account_id, account.role, account.valid_until))
            self._keep_network(account.account_id, account.network)
        return account

    def get(self, account_id: str) -> AccountRecord | None:
        return self._one("account_id", account_id)

    def free_us(self, account_id: str) -> int:
        account = self.get(account_id)
        return account.free_us if account else 0

    def by_token(self, token_hash: str) -> AccountRecord | None:
        return self._one("token_hash", token_hash)

    def token_hashes(self, start: str) -> Sequence[str]:
        """Return the token hashes, also of revoked accounts, that start with these hexadecimal digits."""
        select = "SELECT token_hash FROM accounts WHERE token_hash >= ? AND token_hash < ?"
        return [
            token_hash for (token_hash,) in self._db.execute(select, (start, start + "g"))
        ]  # "g" follows all digits

    def network(self, account_id: str) -> Network:
        select = "SELECT 1 FROM offline_accounts WHERE account_id = ?"
        return "none" if self._db.execute(select, (account_id,)).fetchone() else "outbound"

    def offline(self) -> Collection[str]:
        return {account_id for (account_id,) in self._db.execute("SELECT account_id FROM offline_accounts")}

    def set_network(self, account_id: str, network: Network) -> AccountRecord | None:
        with self._db.transaction():
            if self.get(account_id) is not None:
                self._keep_network(account_id, network)
            return self.get(account_id)

    def _keep_network(self, account_id: str, network: Network) -> None:
        if network == "none":
            self._db.execute("INSERT OR IGNORE INTO offline_accounts VALUES (?)", (account_id,))
        else:
            self._db.execute("DELETE FROM offline_accounts WHERE account_id = ?", (account_id,))

    def key(self, account_id: str) -> bytes | None:
        row = self._db.execute("SELECT encrypted FROM account_keys WHERE account_id = ?", (account_id,)).fetchone()
        return None if row is None else row[0]

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        with self._db.transaction():
            if self.key(account_id) == instead_of and self.get(account_id) is not None:
                self._db.execute("INSERT OR REPLACE INTO account_keys VALUES (?, ?)", (account_id, encrypted))
            return self.key(account_id)

    def list(self) -> list[AccountRecord]:
        select = f"{_SELECT} ORDER BY created_at, account_id"
        return [_record(*row) for row in self._db.execute(select)]

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        with self._db.transaction():
            select = "SELECT granted_us FROM slices WHERE package_id = ? AND number = ?"
            before = self._db.execute(select, (package_id, number)).fetchone()
            # The caller repeats a call whose answer was lost. If the repeated call reserved again, the account would
            # hold back compute time that no package knows of.
            if before is not None:
                return Reservation(before[0], exhausted=False)
            account = self.get(account_id)
            if account is None or account.state == "revoked" or self._settled(package_id) is not None:
                return Reservation(0, exhausted=True)
            granted_us = min(wanted_us, account.free_us)
            if granted_us == 0:
                return Reservation(0, exhausted=account.reserved_us <= self._held(package_id))
            self._db.execute("INSERT INTO slices VALUES (?, ?, ?)", (package_id, number, granted_us))
            self._add(account_id, spent_us=0, reserved_us=granted_us)
            return Reservation(granted_us, exhausted=False)

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """See the port. This adapter ignores `held_us`, and adds up the slices itself."""
        with self._db.transaction():
            before_us = self._settled(package_id)
            # Charge only once: a master that dies or loses a race before it has saved the answer makes this call a
            # second time.
            if before_us is not None:
                return before_us
            account = self.get(account_id)
            held_us = self._held(package_id)
            charged_us = min(used_us, held_us + (account.free_us if account else 0))
            now = self._clock.now()
            self._db.execute("INSERT INTO settlements VALUES (?, ?, ?)", (package_id, charged_us, now))
            self._db.execute("DELETE FROM slices WHERE package_id = ?", (package_id,))
            self._add(account_id, spent_us=charged_us, reserved_us=-held_us)
            self._count(account_id, charged_us, now)
            return charged_us

    def usage(self, since: str, cursor: str | None = None) -> UsagePart:
        """See the port. The answer is always the whole list, so there are no cursors."""
        del cursor
        select = "SELECT account_id, day, charged_us, packages FROM usage WHERE day >= ?"
        return UsagePart([DayUsage(*row) for row in self._db.execute(select, (since,))], None)

    def _count(self, account_id: str, charged_us: int, now: float) -> None:
        """Add a charge to the sum of its day. People read these sums, so the day is that of the machine's clock."""
        today = self._clock.date(now)
        if day_of(today) != self._pruned_on:
            self._prune(now, today)
        insert = (
            "INSERT INTO usage (day, account_id, charged_us, packages) VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE "
            "SET charged_us = charged_us + excluded.charged_us, packages = packages + 1"
        )
        self._db.execute(insert, (day_of(today), account_id, charged_us))

    def _prune(self, now: float, today: float) -> None:
        """Forget the settlements and sums of days that are long over. Once a day is enough."""
        self._db.execute("DELETE FROM settlements WHERE at < ?", (now - SETTLEMENT_MEMORY_S,))
        self._db.execute("DELETE FROM usage WHERE day < ?", (day_of(today - SETTLEMENT_MEMORY_S),))
        self._pruned_on = day_of(today)

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        with self._db.transaction():
            account = self.get(account_id)
            if account is None:
                return None
            # The key tells a repeated request from a second grant of the same amount.
            if self._db.execute("INSERT OR IGNORE INTO grants VALUES (?, ?)", (account_id, key)).rowcount:
                granted_us = max(account.granted_us + quota_us, account.spent_us + account.reserved_us)
                account = account._replace(granted_us=min(granted_us, MOST_US))
                update = "UPDATE accounts SET granted_us = ? WHERE account_id = ?"
                self._db.execute(update, (account.granted_us, account_id))
            return account

    def revoke(self, account_id: str) -> AccountRecord | None:
        self._db.execute("UPDATE accounts SET state = 'revoked' WHERE account_id = ?", (account_id,))
        return self.get(account_id)

    def _one(self, column: str, value: str) -> AccountRecord | None:
        select = f"{_SELECT} WHERE {column} = ?"
        row = self._db.execute(select, (value,)).fetchone()
        return None if row is None else _record(*row)

    def _settled(self, package_id: str) -> int | None:
        select = "SELECT charged_us FROM settlements WHERE package_id = ?"
        row = self._db.execute(select, (package_id,)).fetchone()
        return None if row is None else row[0]

    def _held(self, package_id: str) -> int:
        select = "SELECT coalesce(sum(granted_us), 0) FROM slices WHERE package_id = ?"
        held: int = self._db.execute(select, (package_id,)).fetchone()[0]
        return held

    def _add(self, account_id: str, *, spent_us: int, reserved_us: int) -> None:
        self._db.execute(
            "UPDATE accounts SET spent_us = spent_us + ?, reserved_us = reserved_us + ? WHERE account_id = ?",
            (spent_us, reserved_us, account_id),
        )


def _record(*row: Any) -> AccountRecord:
    """Make an account from its row.

    An account with a damaged state or role counts as revoked: otherwise the token of a revoked account could be valid
    again. A damaged role becomes "user", because clients refuse a whole list of accounts that contains a role that they
    do not know.
    """
    account = AccountRecord(*row)
    if account.state == "active" and account.role in _ROLES:
        return account
    return account._replace(state="revoked", role=account.role if account.role in _ROLES else "user")
