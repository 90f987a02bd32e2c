"""The master and the agent that a pool starts."""

import json
from pathlib import Path

from cloudpar._local.cluster import LocalCluster
from cloudpar_protocol.tokens import has_checksum
from support.waiting import await_file


def test_all_tokens_of_a_pools_own_master_have_the_form_that_scanners_for_secrets_find() -> None:
    cluster = LocalCluster(1, lambda _: None)
    try:
        connection = Path(cluster.data) / "connection.json"
        await_file(connection)
        kept = json.loads(connection.read_bytes())
    finally:
        cluster.close()
    assert cluster.token == kept["token"]
    assert all(has_checksum(kept[name]) for name in ("token", "worker_token", "admin_token"))
