"""A master as its operator reaches it."""

from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts
from support.books import connected


class Operated:
    """Adds an operator's calls to the class of a running master."""

    endpoint: str
    admin_token: str

    def admin(self) -> list[str]:
        """The options of an operator."""
        return ["--endpoint", self.endpoint, "--admin-token", self.admin_token]

    def accounts(self) -> list[Account]:
        """Return all accounts that the operator sees."""
        with connected(self, self.admin_token) as wire:
            return wire.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
