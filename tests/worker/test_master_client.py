"""Payloads by links, as S3 answers them."""

from collections.abc import Iterator

import pytest

from cloudpar_protocol.payloads import Link
from cloudpar_worker.master_client import MasterClient, PayloadRefused, Reach
from worker.scripted_master import TOKEN, ScriptedMaster


@pytest.fixture
def client(master: ScriptedMaster) -> Iterator[MasterClient]:
    client = MasterClient(master.endpoint, TOKEN, Reach(master.endpoint))
    yield client
    client.hang_up()
    client._stores.clear()


def test_an_upload_that_is_there_already_is_done(master: ScriptedMaster, client: MasterClient) -> None:
    """The answer to the first try was lost on its way."""
    link = Link("PUT", f"{master.endpoint}/blob/results/l/0", {"If-None-Match": "*"})
    for _ in range(2):
        client.upload(link, b"result")
    assert master.blobs == {"results/l/0": b"result"}


def test_an_old_link_is_refused(master: ScriptedMaster, client: MasterClient) -> None:
    master.set(refused_uploads=1)
    with pytest.raises(PayloadRefused, match="403"):
        client.upload(Link("PUT", f"{master.endpoint}/blob/results/l/0"), b"result")
