import pytest

from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.client_messages import ListPackages, PackageSummary
from cloudpar_protocol.errors import InvalidToken

from .run import Run
from .scenario import Scenario
from .world import World

MORE_US = 7_000


class Revocation(Run):
    """An operator grants an account more compute time, and then revokes it, while two of its packages run."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        super().__init__(world, scenario)
        # The first package has work for three workers.
        self.workers += [self.worker(name, first=False) for name in ("w3", "w4")]
        self.clients = [self.client, self.start(f"{world.name}again")]

    def to_the_end(self) -> None:
        """Run until both packages are charged. Their client's token is revoked, so it cannot acknowledge them."""
        self.turns(self._have_results)
        self._operate()
        self.turns(lambda: self.world.account().reserved_us == 0)
        self.charged_us = sum(package.progress.charged_us for package in self._packages())

    def _have_results(self) -> bool:
        """Return whether a client has results: then workers run both packages, or will, and neither has ended."""
        for client in self.clients:
            client.read()
        return any(client.results for client in self.clients)

    def _operate(self) -> None:
        """Grant and revoke. Each call is repeated until it is answered, and its answer holds from then on."""
        world, granted_us = self.world, self.scenario.granted_us + MORE_US
        more = GrantQuota(idempotency_key=f"{world.name}more", account_id=world.account_id, quota_us=MORE_US)
        assert world.ask("admin", routes.GRANT_QUOTA, more).account.granted_us == granted_us
        assert (self._listed().granted_us, self._listed().state) == (granted_us, "active")
        revoke = RevokeAccount(account_id=world.account_id)
        assert world.ask("admin", routes.REVOKE_ACCOUNT, revoke).account.state == "revoked"
        assert {(package.state, package.reason) for package in self._packages()} == {("cancelled", "revoked")}
        for client in self.clients:
            with pytest.raises(InvalidToken, match="revoked"):
                client.read()

    def _listed(self) -> Account:
        """Return the account as the operator sees it."""
        accounts = self.world.ask("admin", routes.LIST_ACCOUNTS, ListAccounts()).accounts
        (account,) = (each for each in accounts if each.account_id == self.world.account_id)
        return account

    def _packages(self) -> list[PackageSummary]:
        """Return the account's packages as the operator sees them."""
        packages = self.world.ask("admin", routes.LIST_PACKAGES, ListPackages()).packages
        found = [package for package in packages if package.account_id == self.world.account_id]
        assert len(found) == len(self.clients)
        return found

    def check(self) -> None:
        """Check that all that ran is charged, that the grant counts once, and that nothing is left."""
        account = self.world.account()
        assert account.spent_us == self.charged_us == sum(self.used_us.values()) > 0
        assert (account.granted_us, account.reserved_us) == (self.scenario.granted_us + MORE_US, 0)
        assert account.state == "revoked"
        self.check_nothing_is_left()
        self.wait(lambda: all(self.state(client) is None for client in self.clients))
        for client in self.clients:
            self.check_it_is_gone(client)
