"""How accounts lie in their table. Free compute time is kept beside its parts, since a condition cannot calculate."""

from cloudpar_master.ports import AccountRecord

from .rows import Row

Key = tuple[str, str]

EVERY = "accounts"
"""Under this key lies a pointer to each account: what lists them, as last written."""


def account_key(account_id: str) -> Key:
    """Where an account is."""
    return f"a#{account_id}", "account"


def token_key(token_hash: str) -> Key:
    """Where a token says whose it is."""
    return f"t#{token_hash}", "token"


def name_key(name: str) -> Key:
    """Where a name says whose it is. Accounts of releases up to 0.2.0 have no such row."""
    return f"n#{name}", "name"


def grant_key(account_id: str, key: str) -> Key:
    """Where it is noted that a grant was made."""
    return f"g#{account_id}", key


def slice_key(package_id: str, number: int) -> Key:
    """Where a package's slice is."""
    return f"p#{package_id}", f"slice#{number:06}"


def settlement_key(package_id: str) -> Key:
    """Where it stands what a package holds (held_us), and once it is settled, what it was charged (charged_us)."""
    return f"p#{package_id}", "settlement"


def row(key: Key, **values: str | float | None) -> Row:
    """A row under a key."""
    return {"pk": key[0], "sk": key[1], **values}


def account_row(account: AccountRecord) -> Row:
    """An account."""
    return row(account_key(account.account_id), **account._asdict(), free_us=account.free_us)


def read_account(stored: Row) -> AccountRecord:
    """The account in a row."""
    return AccountRecord(
        account_id=stored["account_id"],
        name=stored["name"],
        token_hash=stored["token_hash"],
        state=stored["state"],
        granted_us=stored["granted_us"],
        spent_us=stored["spent_us"],
        reserved_us=stored["reserved_us"],
        created_at=float(stored["created_at"]),
    )
