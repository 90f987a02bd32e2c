"""How accounts are stored in their table.

An account's row also stores the free compute time. The free time could be calculated from three other numbers of the
row (granted, spent and reserved), but a condition in DynamoDB cannot calculate.
"""

from cloudpar_master.ports import AccountRecord

from .rows import Row

Key = tuple[str, str]

EVERY = "accounts"
"""The partition with a row for each account, whose sort key is the account's id. The master lists the accounts from
this partition, because an index of the table would lag behind."""


OFFLINE = "offline"
"""The partition with a row for each account whose tasks may not use the network; the sort key is the account's id. A
worker that cannot keep tasks from the network must get no tasks of these accounts."""


def account_key(account_id: str) -> Key:
    """Return the key of an account's row."""
    return f"a#{account_id}", "account"


def token_key(token_hash: str) -> Key:
    """Return the key of the row that contains the id of a token's account."""
    return f"t#{token_hash}", "token"


def name_key(name: str) -> Key:
    """Return the key of the row with the id of the account of this name. Releases up to 0.2.0 made no such row."""
    return f"n#{name}", "name"


def grant_key(account_id: str, key: str) -> Key:
    """Return the key of the row that records a grant. `key` is the idempotency key of the grant."""
    return f"g#{account_id}", key


def slice_key(package_id: str, number: int) -> Key:
    """Return the key of the row of a package's slice."""
    return f"p#{package_id}", f"slice#{number:06}"


def settlement_key(package_id: str) -> Key:
    """Return the key of the row that has a package's charge, and the sum of the package's slices.

    `held_us` is the sum, and 0 once the package is settled. Only the row of a settled package has the charge
    (`charged_us`), the charged account (`account_id`) and the day of the settlement (`settled_on`). Releases up to
    0.3.0 wrote no account and no day.
    """
    return f"p#{package_id}", "settlement"


def row(key: Key, **values: str | float | None) -> Row:
    """Make a row with this key and these values."""
    return {"pk": key[0], "sk": key[1], **values}


def account_row(account: AccountRecord) -> Row:
    """Make the row of an account."""
    return row(account_key(account.account_id), **account._asdict(), free_us=account.free_us)


def read_account(stored: Row) -> AccountRecord:
    """Read the account in a row. Rows of releases up to 0.3.0 lack the fields that have a default."""
    account = AccountRecord(**{name: stored[name] for name in AccountRecord._fields if name in stored})
    # `rows.decode` returns a float that is whole as an int
    return account._replace(created_at=float(account.created_at), valid_until=float(account.valid_until))
