from cloudpar_master.ports import AccountRecord, Clock, DayUsage, Reservation, UsagePart
from cloudpar_master.ports.account_store import MOST_US, day_of, name_taken
from cloudpar_protocol.errors import IdempotencyConflict
from cloudpar_protocol.payloads import Network
from support.memory.packages import ALONE


class StoredAccounts:
    """The stored accounts."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {}
        self.accounts: dict[str, AccountRecord] = {}
        self.slices: dict[str, dict[int, int]] = {}
        self.charged: dict[str, int] = {}
        self.usage: list[DayUsage] = []
        self.grants: set[tuple[str, str]] = set()


class MemoryAccountStore:
    """Accounts in dictionaries."""

    def __init__(self, books: StoredAccounts, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    def create(self, account: AccountRecord) -> AccountRecord:
        with ALONE:
            stored = self._books.accounts.get(account.account_id)
            if stored is not None:
                return stored
            if self.by_token(account.token_hash) is not None:
                raise IdempotencyConflict("this token belongs to another account: make a fresh one")
            for other in self._books.accounts.values():
                if (other.name, other.state) == (account.name, "active"):
                    raise name_taken(account.name, other.account_id)
            self._books.accounts[account.account_id] = account
            return account

    def get(self, account_id: str) -> AccountRecord | None:
        return self._books.accounts.get(account_id)

    def free_us(self, account_id: str) -> int:
        account = self.get(account_id)
        return account.free_us if account else 0

    def network(self, account_id: str) -> Network:
        account = self.get(account_id)
        return account.network if account else "outbound"

    def offline(self) -> frozenset[str]:
        with ALONE:
            return frozenset(name for name, each in self._books.accounts.items() if each.network == "none")

    def set_network(self, account_id: str, network: Network) -> AccountRecord | None:
        with ALONE:
            account = self.get(account_id)
            if account is not None:
                self._books.accounts[account_id] = account = account._replace(network=network)
            return account

    def key(self, account_id: str) -> bytes | None:
        return self._books.keys.get(account_id)

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        if self.key(account_id) == instead_of and self.get(account_id) is not None:
            self._books.keys[account_id] = encrypted
        return self.key(account_id)

    def by_token(self, token_hash: str) -> AccountRecord | None:
        with ALONE:
            accounts = self._books.accounts.values()
            return next((account for account in accounts if account.token_hash == token_hash), None)

    def list(self) -> list[AccountRecord]:
        with ALONE:
            return sorted(self._books.accounts.values(), key=lambda account: (account.created_at, account.account_id))

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        with ALONE:
            books = self._books
            slices = books.slices.get(package_id, {})
            if number in slices:
                return Reservation(slices[number], exhausted=False)
            account = self.get(account_id)
            if account is None or account.state == "revoked" or package_id in books.charged:
                return Reservation(0, exhausted=True)
            granted_us = min(wanted_us, account.free_us)
            if granted_us == 0:
                return Reservation(0, exhausted=account.reserved_us <= sum(slices.values()))
            books.slices.setdefault(package_id, {})[number] = granted_us
            books.accounts[account_id] = account._replace(reserved_us=account.reserved_us + granted_us)
            return Reservation(granted_us, exhausted=False)

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """Ignore the hint: the slices are known."""
        with ALONE:
            books = self._books
            if package_id in books.charged:
                return books.charged[package_id]
            account = self.get(account_id)
            today = day_of(self._clock.date(self._clock.now()))
            held_us = sum(books.slices.pop(package_id, {}).values())
            charged_us = books.charged[package_id] = min(used_us, held_us + (account.free_us if account else 0))
            if account is not None:
                books.accounts[account_id] = account._replace(
                    spent_us=account.spent_us + charged_us, reserved_us=account.reserved_us - held_us
                )
            books.usage.append(DayUsage(account_id, today, charged_us, 1))
            return charged_us

    def usage(self, since: str, cursor: str | None = None) -> UsagePart:
        return UsagePart([each for each in self._books.usage if each.day >= since], cursor)

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        with ALONE:
            books, account = self._books, self.get(account_id)
            if account is None or (account_id, key) in books.grants:
                return account
            books.grants.add((account_id, key))
            granted_us = max(account.granted_us + quota_us, account.spent_us + account.reserved_us)
            account = books.accounts[account_id] = account._replace(granted_us=min(granted_us, MOST_US))
            return account

    def revoke(self, account_id: str) -> AccountRecord | None:
        with ALONE:
            account = self.get(account_id)
            if account is not None:
                account = self._books.accounts[account_id] = account._replace(state="revoked")
            return account
