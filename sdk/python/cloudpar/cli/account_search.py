"""Finds an account by its id, its name, or the first characters of its id, and revokes it."""

from cloudpar.errors import NotFound
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts, RevokeAccount, TokenRole

from .master import Master


def revoke_account(master: Master, text: str, role: TokenRole = "user") -> Account:
    """Revoke the account that `find_account` finds, and return it. The errors are those of `find_account`."""
    request = RevokeAccount(account_id=find_account(master, text, role).account_id)
    revoked: Account = master.call(routes.REVOKE_ACCOUNT, request).account
    return revoked


def find_account(master: Master, text: str, role: TokenRole = "user") -> Account:
    """Find an account whose token has this role.

    A whole id takes precedence over a name, and a name over the start of an id. If several accounts have this name, an
    active account takes precedence, because the name of a revoked account may be in use again.

    Raises:
        NotFound: No account matches the text, or several accounts do.
        CloudparError: The master refuses the request or does not answer.
    """
    accounts: list[Account] = master.call(routes.LIST_ACCOUNTS, ListAccounts(role=role)).accounts
    accounts = [each for each in accounts if each.role == role]  # a master of an earlier release ignores `role`
    what = "worker token" if role == "worker" else "account"
    by_id = [each for each in accounts if each.account_id == text]
    by_name = [each for each in accounts if each.name == text]
    active = [each for each in by_name if each.state == "active"]
    starts = [each for each in accounts if text and each.account_id.startswith(text)]
    found = by_id or active or by_name or starts
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.account_id for each in found)
        raise NotFound(
            f"{len(found)} {what}s have the name {text!r}, or ids that start with it ({ids}): give one of the ids"
        )
    raise NotFound(f"no {what} {text!r}, by name or id: 'cloudpar {what.replace(' ', '-')} list' shows them")
