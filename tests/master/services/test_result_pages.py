from cloudpar_master.services.result_pages import LINK_BYTES, RESULT_BYTES, result_bytes
from cloudpar_protocol.payloads import BlobRef, TaskResult


def test_values_texts_and_links_count() -> None:
    results = [
        TaskResult(0, "ok", 1),
        TaskResult(1, "ok", 1, data=b"value"),
        TaskResult(2, "ok", 1, data=b"v", stdout="said"),
        TaskResult(3, "error", 1, message="no", traceback="line", input="x"),
        TaskResult(4, "ok", 1, blob=BlobRef("key", 10**9)),
    ]
    assert result_bytes(results) == 5 * RESULT_BYTES + 5 + 1 + 4 + 7 + LINK_BYTES
    assert result_bytes([]) == 0
