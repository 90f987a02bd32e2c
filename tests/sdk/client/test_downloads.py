"""Downloads of large results."""

from typing import Any

from cloudpar._client.downloads import Downloads
from cloudpar._client.package import Package
from cloudpar._client.package_handle import PackageHandle
from cloudpar.errors import CloudparError, Gone, RequestError
from cloudpar_protocol.client_messages import AwaitTasksReply, PackageStatus, Progress
from cloudpar_protocol.payloads import BlobRef, Link, TaskResult


class Acknowledged:
    """A connection to a master at which another client has acknowledged the package: its results are deleted."""

    def get(self, *_: Any) -> bytes:
        raise RequestError("no such blob")

    def call(self, *_: Any) -> AwaitTasksReply:
        status = PackageStatus(
            package_id="p", state="expired", cursor=1, progress=Progress(tasks=1), message="deleted at 9 o'clock"
        )
        return AwaitTasksReply(packages=[status])


class Listener:
    """A receiver that notes why the package has ended."""

    def __init__(self) -> None:
        self.failure: CloudparError | None = None

    def started(self, handle: PackageHandle) -> None:
        pass

    def receive(self, results: Any) -> None:
        raise AssertionError(results)

    def end(self, failure: CloudparError | None) -> None:
        self.failure = failure


def test_a_large_result_that_another_client_has_deleted_is_gone() -> None:
    result = TaskResult(0, "ok", 5, blob=BlobRef("k", 10, 0))
    status = PackageStatus(
        package_id="p", state="completed", cursor=1, results=[result], progress=Progress(tasks=1),
        links={"k": Link("GET", "http://store/k")},
    )  # fmt: skip
    receiver, connection = Listener(), Acknowledged()
    handle = PackageHandle(Package(1), receiver)
    handle.package.started("p")
    downloads = Downloads(connection, "me")  # type: ignore[arg-type]
    downloads.begin(handle, handle.take(status), 0)
    assert handle.ended.wait(60)
    downloads.close()
    assert isinstance(receiver.failure, Gone)
    assert str(receiver.failure) == "deleted at 9 o'clock"
