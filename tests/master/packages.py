"""Heads, specs and results for tests of the stores."""

from cloudpar_master.core.head import Head, Spec
from cloudpar_master.ports import ResultPage
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import InlineData, TaskCode, TaskData, TaskResult

from .stores import NOW


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
    return Head(
        package_id=spec.package_id,
        account_id=spec.account_id,
        tasks=spec.start.n,
        version=version,
        cursor=cursor,
        window=8,
        started_at=spec.started_at,
        now=spec.started_at,
    )


def make_page(version: int, nonce: str = "n", *, size: int = 1, before: tuple[int, str] = (0, "")) -> ResultPage:
    return ResultPage(version, nonce, before, [TaskResult(version, "ok", 10, data=b"x" * size)])
