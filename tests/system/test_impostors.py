"""While a master restarts, another process takes its port: it gets no token, and nothing that it could use later."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar.demo.factorization import correct
from cloudpar.errors import MasterUnreachable
from cloudpar_protocol import codec, proofs
from cloudpar_protocol.proofs import Prove
from support.command import cloudpar
from support.master_process import Master, connection_of
from support.task_functions import NUMBERS, factorize_before_gate, main_job
from support.up import worker
from support.waiting import until
from system.impostor import WRONG_PROOF, Impostor


@pytest.mark.parametrize("earlier", [False, True], ids=["new tokens", "tokens of an earlier release"])
def test_worker_and_clients_send_an_impostor_nothing_of_use_and_go_on_when_the_master_is_back(
    tmp_path: Path, earlier: bool
) -> None:
    folder, gate = tmp_path / "data", tmp_path / "gate"
    with ExitStack() as stack:
        first = stack.enter_context(Master(folder, "--port", "0", stdin=earlier))
        connection = connection_of(folder)
        site: Any = SimpleNamespace(endpoint=first.endpoint, connection=connection)
        stack.enter_context(worker(site))
        pool = Pool(first.endpoint, connection["token"], progress=False)
        results = pool.map(factorize_before_gate, main_job(gate))
        found = [next(results)]
        first.kill()
        with Impostor(first.port) as impostor:
            until(lambda: all(impostor.has_tried(connection[name]) for name in ("token", "worker_token")))
            if not earlier:  # a command is a new process, to which this master has not proved itself
                refused = cloudpar("packages", "list", "--endpoint", first.endpoint, "--token", connection["token"])
                assert (refused.returncode != 0, refused.stdout) == (True, "")
        gate.touch()
        again = stack.enter_context(Master(folder, "--port", str(first.port), stdin=earlier))
        found += results
        pool.shutdown()
        assert correct(NUMBERS, found)
        check(impostor.received, connection)
        for request in impostor.received:  # at the restarted master each is a challenge again, and no more
            assert again.speak(request).startswith(b"HTTP/1.1 200 OK\r\n")


def check(received: list[bytes], connection: dict[str, str]) -> None:
    """Check that these requests are challenges, and contain no part of a token."""
    for request in received:
        head, _, body = request.partition(b"\r\n\r\n")
        assert head.startswith(f"POST {proofs.PATH} HTTP/1.1\r\n".encode())
        assert b"authorization" not in head.lower()
        assert codec.encode(codec.decode(body, Prove)) == body
        assert not any(connection[name].encode() in request for name in ("token", "worker_token", "admin_token"))


def test_an_impostor_is_named_when_the_patience_is_over(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Master(folder) as master:
        token = connection_of(folder)["token"]
        pool = Pool(master.endpoint, token, progress=False, patience_s=2)
        master.kill()
        with (
            Impostor(master.port, [WRONG_PROOF]),
            pytest.raises(MasterUnreachable, match="a process answers at this address that does not"),
        ):
            pool.map(abs, [-1])
        pool.shutdown()
