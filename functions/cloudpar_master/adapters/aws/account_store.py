from base64 import b64decode, b64encode
from collections.abc import Collection, Sequence

import msgspec

from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import AccountRecord, AccountStore, Clock, DayUsage, Reservation, UsagePart
from cloudpar_master.ports.account_store import MOST_US, day_of, name_taken
from cloudpar_protocol.errors import BadRequest, IdempotencyConflict
from cloudpar_protocol.payloads import Network

from . import errors
from .account_rows import (
    EVERY,
    OFFLINE,
    account_key,
    account_row,
    grant_key,
    name_key,
    read_account,
    row,
    settlement_key,
    slice_key,
    token_key,
)
from .backoff import attempts
from .table import MISSING, THERE, Change, Table, put, remove, update

MEMORY_S = 10.0
"""Seconds for which a process remembers an account. A revocation or a grant takes effect within this time."""

PLENTY_US = 3600 * 1_000_000
"""If a remembered account has at least this much free compute time, in microseconds, `free_us` does not read the row
again."""

KNOWN_TOKENS = 1_000
SLICE_DAYS, GRANT_DAYS = 60, 400
"""Rows of slices and settlements are kept for at least SLICE_DAYS days, rows of grants for at least GRANT_DAYS days. If
a row were removed while callers still repeat the call that wrote the row, the repeated call would count a second
time."""

DAY_S = 86_400

USAGE_PAGES = 10
"""How many pages of the table, of 1 MB each, one call of `usage` reads at most. A call must end within the time limit
of the Lambda function, however many packages were settled."""


class DynamoAccountStore(AccountStore):
    """Accounts in one table.

    A reservation is one transaction that writes three rows; a settlement is one transaction that writes two rows. A
    reservation reads nothing first: if a condition does not hold, DynamoDB answers with the stored row, and the store
    finds the reason in this row.
    """

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._owners = Recent[str, str](KNOWN_TOKENS)
        self._seen = Recent[str, tuple[float, AccountRecord]](KNOWN_TOKENS)
        self._offline: tuple[float, frozenset[str]] = float("-inf"), frozenset()
        """When the accounts whose tasks may not use the network were last read, and their ids."""

    def create(self, account: AccountRecord) -> AccountRecord:
        for older in self.list():
            if older.name == account.name and older.state == "active" and older.account_id != account.account_id:
                raise name_taken(account.name, older.account_id)
        before = None
        for _ in attempts():
            refused = self._table.transact(_creating(account, before))
            if refused is None:
                return account
            stored = self.get(account.account_id)
            if stored is not None:
                return stored
            if refused[1] is not None:
                raise IdempotencyConflict("this token belongs to another account: make a fresh one")
            before = self._revoked_holder(account.name)
        raise errors.busy(f"the name {account.name!r}")

    def _revoked_holder(self, name: str) -> str | None:
        """Return the id of the revoked account that has this name; None if no account has it.

        Raises:
            IdempotencyConflict: An active account has the name.
        """
        stored = self._table.get(*name_key(name))
        if stored is None:
            return None
        holder = self.get(stored["account_id"])
        if holder is not None and holder.state == "active":
            raise name_taken(name, holder.account_id)
        return str(stored["account_id"])

    def get(self, account_id: str) -> AccountRecord | None:
        stored = self._table.get(*account_key(account_id))
        return None if stored is None else read_account(stored)

    def by_token(self, token_hash: str) -> AccountRecord | None:
        """See the port. A token stays with its account, so only the account itself is read again after MEMORY_S."""
        account_id = self._owner(token_hash)
        if account_id is None:
            return None
        return self._remembered(account_id) or self._read(account_id)

    def free_us(self, account_id: str) -> int:
        account = self._remembered(account_id)
        if account is None or account.free_us < PLENTY_US:
            account = self._read(account_id)
        return 0 if account is None else account.free_us

    def _remembered(self, account_id: str) -> AccountRecord | None:
        read_at, account = self._seen.get(account_id, (0.0, None))
        return account if 0 <= self._clock.now() - read_at < MEMORY_S else None

    def _read(self, account_id: str) -> AccountRecord | None:
        now = self._clock.now()
        account = self.get(account_id)
        if account is not None:
            self._seen[account_id] = now, account
        return account

    def _owner(self, token_hash: str) -> str | None:
        account_id = self._owners.get(token_hash)
        if account_id is None:
            stored = self._table.get(*token_key(token_hash))
            if stored is None:
                return None
            account_id = self._owners[token_hash] = stored["account_id"]
        return account_id

    def key(self, account_id: str) -> bytes | None:
        stored = self._table.get(*account_key(account_id)) or {}
        return b64decode(stored["encrypted_key"]) if "encrypted_key" in stored else None

    def keep_key(self, account_id: str, encrypted: bytes, instead_of: bytes | None) -> bytes | None:
        """See the port. The key is an attribute of the account's own row."""
        values, condition = {"fresh": b64encode(encrypted).decode()}, f"{THERE} AND attribute_not_exists(encrypted_key)"
        if instead_of is not None:
            values["before"], condition = b64encode(instead_of).decode(), "encrypted_key = :before"
        self._table.write(update(account_key(account_id), "SET encrypted_key = :fresh", condition, **values))
        return self.key(account_id)

    def task_role(self, account_id: str) -> str | None:
        """Return the account's IAM role, as it was at most MEMORY_S ago; None if it has none.

        Before each lease, the master looks up the account's free time and thereby remembers the account, so this call
        usually reads nothing.
        """
        account = self._remembered(account_id) or self._read(account_id)
        return None if account is None else account.task_role

    def keep_task_role(self, account_id: str, task_role: str | None) -> AccountRecord | None:
        """Store the account's IAM role. Returns the account after that; None if it does not exist."""
        self._seen.pop(account_id, None)
        if task_role is None:
            change = update(account_key(account_id), "REMOVE task_role", THERE)
        else:
            change = update(account_key(account_id), "SET task_role = :role", THERE, role=task_role)
        return self.get(account_id) if self._table.write(change) is None else None

    def network(self, account_id: str) -> Network:
        account = self._remembered(account_id) or self._read(account_id)
        return "outbound" if account is None else account.network

    def offline(self) -> Collection[str]:
        read_at, found = self._offline
        now = self._clock.now()
        if not 0 <= now - read_at < MEMORY_S:
            found = frozenset(row["sk"] for row in self._table.query("pk = :all", {"all": OFFLINE}, keys_only=True))
            self._offline = now, found
        return found

    def set_network(self, account_id: str, network: Network) -> AccountRecord | None:
        pointer = row((OFFLINE, account_id))
        changes = [
            update(account_key(account_id), "SET network = :network", THERE, network=network),
            put(pointer) if network == "none" else remove((OFFLINE, account_id)),
        ]
        refused = self._table.transact(changes)
        self._seen.pop(account_id, None)
        self._offline = float("-inf"), frozenset()
        return self.get(account_id) if refused is None else None

    def list(self) -> list[AccountRecord]:
        pointers = self._table.query("pk = :all", {"all": EVERY}, keys_only=True)
        found = self._table.get_many([account_key(pointer["sk"]) for pointer in pointers])
        return sorted(map(read_account, found.values()), key=lambda account: (account.created_at, account.account_id))

    def reserve(self, account_id: str, package_id: str, number: int, wanted_us: int) -> Reservation:
        asked_us = wanted_us
        for _ in attempts():
            refused = self._table.transact(self._reserving(account_id, package_id, number, asked_us))
            if refused is None:
                return Reservation(asked_us, exhausted=False)
            settled, slice_, account = refused
            if settled is not None:
                return Reservation(0, exhausted=True)
            if slice_ is not None and slice_.row is not None:
                return Reservation(slice_.row["granted_us"], exhausted=False)
            if account is None:
                continue
            if account.row is None or account.row["state"] == "revoked":
                return Reservation(0, exhausted=True)
            asked_us = min(wanted_us, account.row["free_us"])
            if asked_us <= 0:
                return Reservation(0, exhausted=account.row["reserved_us"] <= self._held_us(package_id))
        raise errors.busy(f"account {account_id}")

    def _reserving(self, account_id: str, package_id: str, number: int, asked_us: int) -> Sequence[Change]:
        slice_ = row(slice_key(package_id, number), granted_us=asked_us, expires_at=self._day(SLICE_DAYS))
        # One transaction with three conditions: it fails if the package is settled, if the slice exists (a repeated
        # call), or if the account is revoked or has too little free. With separate writes, a crash between the writes
        # would lose compute time or grant compute time twice.
        return [
            update(
                settlement_key(package_id), "ADD held_us :asked SET expires_at = :day",
                "attribute_not_exists(charged_us)", asked=asked_us, day=self._day(SLICE_DAYS),
            ),
            put(slice_, MISSING),
            update(
                account_key(account_id), "SET reserved_us = reserved_us + :asked, free_us = free_us - :asked",
                f"#state = :active AND {'free_us >= :asked' if asked_us > 0 else MISSING}",
                asked=asked_us, active="active",
            ),
        ]  # fmt: skip

    def _held_us(self, package_id: str) -> int:
        stored = self._table.get(*settlement_key(package_id))
        return 0 if stored is None else int(stored["held_us"])

    def settle(self, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        """See the port.

        The rows of the slices stay until they expire after SLICE_DAYS, because AWS removes expired rows free of charge.

        If `held_us` is at least `used_us`, the first attempt trusts `held_us` and reads nothing. If this attempt fails,
        the rows are read.
        """
        if 0 < held_us >= used_us:
            changes = [
                self._settling(account_id, package_id, held_us, used_us),
                _charging(account_id, held_us, used_us, 0, short=False),
            ]
            if self._table.transact(changes) is None:
                return used_us
        return self._read_and_settle(account_id, package_id, used_us)

    def _read_and_settle(self, account_id: str, package_id: str, used_us: int) -> int:
        keys = settlement_key(package_id), account_key(account_id)
        for _ in attempts():
            found = self._table.get_many(keys)
            settlement, account = (found.get(key) for key in keys)
            if settlement is not None and "charged_us" in settlement:
                return int(settlement["charged_us"])
            held_us = None if settlement is None else int(settlement["held_us"])
            free_us = 0 if account is None else int(account["free_us"])
            charged_us = min(used_us, (held_us or 0) + free_us)
            changes = [self._settling(account_id, package_id, held_us, charged_us)]
            if account is not None:
                changes.append(_charging(account_id, held_us or 0, charged_us, free_us, short=charged_us < used_us))
            if self._table.transact(changes) is None:
                return charged_us
        raise errors.busy(f"account {account_id}")

    def usage(self, since: str, cursor: str | None = None) -> UsagePart:
        """See the port.

        This method reads the whole table, also the rows that it does not return. An index, or a row for each account
        and day, would make that unnecessary, but each settlement would then cost a further write.
        """
        rows, last = self._table.scan_part(
            "settled_on >= :since", {"since": since}, ("account_id", "settled_on", "charged_us"), pages=USAGE_PAGES,
            after=None if cursor is None else _key_in(cursor),
        )  # fmt: skip
        sums: dict[tuple[str, str], DayUsage] = {}
        for each in rows:
            account_id, day = str(each["account_id"]), str(each["settled_on"])
            before = sums.get((account_id, day), DayUsage(account_id, day, 0, 0))
            charged_us = before.charged_us + int(each["charged_us"])
            sums[account_id, day] = before._replace(charged_us=charged_us, packages=before.packages + 1)
        return UsagePart(list(sums.values()), None if last is None else msgspec.json.encode(last).decode())

    def _settling(self, account_id: str, package_id: str, held_us: int | None, charged_us: int) -> Change:
        expression = (
            "SET charged_us = :charged, held_us = :none, expires_at = :day, account_id = :account, settled_on = :on"
        )
        key = settlement_key(package_id)
        values: dict[str, str | int] = {
            "charged": charged_us, "none": 0, "day": self._day(SLICE_DAYS),
            "account": account_id, "on": day_of(self._clock.date(self._clock.now())),
        }  # fmt: skip
        if held_us is None:
            return update(key, expression, MISSING, **values)
        # `held_us` is what the caller has read. If the package got a slice since then, the write must fail: otherwise
        # this slice would stay reserved.
        condition = "held_us = :held AND attribute_not_exists(charged_us)"
        return update(key, expression, condition, **values, held=held_us)

    def grant(self, account_id: str, key: str, quota_us: int) -> AccountRecord | None:
        note = row(grant_key(account_id, key), expires_at=self._day(GRANT_DAYS))
        for _ in attempts():
            account = self.get(account_id)
            if account is None:
                return None
            held_us = account.spent_us + account.reserved_us
            granted_us = min(max(account.granted_us + quota_us, held_us), MOST_US)
            change = update(
                account_key(account_id), "SET granted_us = :granted, free_us = :free",
                "granted_us = :before AND free_us = :left", granted=granted_us, free=granted_us - held_us,
                before=account.granted_us, left=account.free_us,
            )  # fmt: skip
            refused = self._table.transact([put(note, MISSING), change])
            if refused is None:
                self._seen.pop(account_id, None)
                return account._replace(granted_us=granted_us)
            if refused[0] is not None:
                return self.get(account_id)
        raise errors.busy(f"account {account_id}")

    def revoke(self, account_id: str) -> AccountRecord | None:
        self._seen.pop(account_id, None)
        change = update(account_key(account_id), "SET #state = :revoked", THERE, revoked="revoked")
        return self.get(account_id) if self._table.write(change) is None else None

    def _day(self, days: int) -> int:
        """Return the end of the day that is this many days from now. After that time AWS may remove a row."""
        return int(self._clock.now() // DAY_S + days + 1) * DAY_S


def _key_in(cursor: str) -> tuple[str, str]:
    """Return the key in a cursor of `usage`.

    Raises:
        BadRequest: The text is no such cursor.
    """
    try:
        return msgspec.json.decode(cursor, type=tuple[str, str])
    except msgspec.DecodeError:
        raise BadRequest("no such cursor: start with the first part of the list, without a cursor") from None


def _creating(account: AccountRecord, before: str | None) -> list[Change]:
    """Make the changes that create an account, its token and its name.

    `before` is the id of the revoked account that has the name now; None if no account has it.
    """
    name = row(name_key(account.name), account_id=account.account_id)
    return [
        put(account_row(account), MISSING),
        put(row(token_key(account.token_hash), account_id=account.account_id), MISSING),
        put(row((EVERY, account.account_id)), MISSING),
        *([put(row((OFFLINE, account.account_id)))] if account.network == "none" else []),
        put(name, MISSING) if before is None else put(name, "account_id = :before", before=before),
    ]


def _charging(account_id: str, held_us: int, charged_us: int, free_us: int, *, short: bool) -> Change:
    """Make the change that charges an account and gives the rest of the slices back.

    If the slices and the account's free time together are less than the time used (`short`), the charge is the slices
    plus the free time. Then exactly `free_us` must still be free: if more were free, the charge would be too small; if
    less were free, the charge would overdraw the account.
    """
    return update(
        account_key(account_id),
        "SET spent_us = spent_us + :charged, reserved_us = reserved_us - :held, free_us = free_us + :back",
        "free_us = :free" if short else "free_us >= :free",
        charged=charged_us, held=held_us, back=held_us - charged_us,
        free=free_us if short else max(0, charged_us - held_us),
    )  # fmt: skip
