"""Makes heads, specs and results for tests of the stores."""

from collections.abc import Sequence

from msgspec.structs import replace

from cloudpar_master.core.head import Head, Spec
from cloudpar_master.ports import InboxItem, PackageStore
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import InlineData, TaskCode, TaskData, TaskResult
from support import heads
from support.clock import NOW


def make_spec(package_id: str = "p", *, data: TaskData | None = None, started_at: float = NOW, tasks: int = 4) -> Spec:
    start = StartTasks(
        idempotency_key=f"key of {package_id}",
        n=tasks,
        code=TaskCode("0" * 64, b"code"),
        data=data or InlineData([b"data"] * tasks),
        python="3.11",
    )
    return Spec(package_id=package_id, account_id="a", request_hash="1" * 64, start=start, started_at=started_at)


def make_head(spec: Spec, version: int = 0, *, cursor: int = 0) -> Head:
    return heads.make_head(
        spec.package_id, spec.account_id, spec.start.n, spec.started_at, version=version, cursor=cursor, data_bytes=10
    )


def create(packages: PackageStore, package_id: str = "p", *, started_at: float = NOW, version: int = 0) -> Spec:
    """Create a package whose head has this version."""
    spec = make_spec(package_id, started_at=started_at)
    packages.create(spec, make_head(spec, version))
    return spec


def forget(packages: PackageStore, package_id: str = "p") -> None:
    """Forget a package as it is stored now."""
    head = packages.load(package_id)
    assert head is not None
    assert packages.forget(head)


def make_results(number: int, *, size: int = 1) -> list[TaskResult]:
    return [TaskResult(number, "ok", 10, data=b"x" * size)]


def inbox(packages: PackageStore, package_id: str = "p", limit: int = 90) -> list[InboxItem]:
    """Return the events that wait for a fold."""
    opened = packages.open(package_id, limit)
    return opened.inbox if opened else []


def put_page(packages: PackageStore, results: Sequence[TaskResult], package_id: str = "p") -> int:
    """Save a package's next head, with results, and create the package if it is missing. Returns the version."""
    head = packages.load(package_id)
    if head is None:
        head = make_head(create(packages, package_id))
    version = head.version + 1
    assert packages.save(replace(head, version=version, page=version), NOW, results)
    return version
