"""An account of one test."""

from types import TracebackType

from cloudpar import Pool
from cloudpar_protocol.account_messages import Account
from support.books import Books, Master
from support.command import cloudpar_json


class _Pool(Pool):
    """Cancels the packages of a failed test, as Ctrl-C does: a package may otherwise run without end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(None if kind is None else KeyboardInterrupt, error, trace)


class Customer:
    """An account that only one test uses, so that its charges are the test's."""

    def __init__(self, up: Master, name: str, quota: str = "10h") -> None:
        self._up = up
        made = cloudpar_json("account", "create", name, "--quota", quota, *up.admin())
        self.token: str = made["token"]
        self.account_id: str = made["account"]["account_id"]

    def pool(self) -> Pool:
        return _Pool(self._up.endpoint, self.token, progress=False)

    def account(self) -> Account:
        return next(account for account in self._up.accounts() if account.account_id == self.account_id)

    def assert_charged_once(self, books: Books, tasks: int) -> None:
        """Check that each task was committed once, and that the charge equals the tasks' execution time."""
        assert sorted(result.index for result in books.results) == list(range(tasks))
        account = self.account()
        assert (account.spent_us, account.reserved_us) == (books.execute_us, 0)
        assert books.last.progress.charged_us == books.execute_us
