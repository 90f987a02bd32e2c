"""Uploads payloads, and puts task data into a request: small data inline, larger data as an uploaded payload.

The client uploads a payload by links that the master sends. It uploads a large payload in parts if the store accepts
parts, and any other payload as a whole.
"""

import logging
from typing import Literal

from msgspec.structs import replace

from cloudpar._serialization.blob import Blob
from cloudpar.errors import RequestError
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, Upload
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, Parts, RangeData, TaskData
from cloudpar_protocol.transport.parted_upload import PartedUpload
from cloudpar_protocol.transport.payload_folder import PayloadFolder

from .connection import Connection

log = logging.getLogger("cloudpar")


def task_data(connection: Connection, data: RangeData | InlineData | Blob) -> TaskData:
    """Return task data as a request contains it, uploaded if it is a blob. Raises like `upload`."""
    return BlobData(blob=upload(connection, "data", data)) if isinstance(data, Blob) else data


def upload(connection: Connection, kind: Literal["code", "data"], blob: Blob, code_hash: str | None = None) -> BlobRef:
    """Upload a payload, unless the store already has it; return its key and size.

    Raises:
        CloudparError: The master or the store refuses a request or does not answer, or the payload folder of the pool's
            own master cannot be written.
        Stopped: The connection is closed.
    """
    wanted = Upload(kind=kind, size=blob.size, crc32=NOT_CHECKED, hash=code_hash)
    prepared = None if connection.folder is None else _prepare(connection, wanted)
    if prepared is None or (prepared.link is not None and not PayloadFolder.has(prepared.link.url)):
        # Payloads that are sent by HTTP need checksums. A pool's own master of an earlier release also expects
        # checksums.
        crc32, parts_crc32 = blob.checksums()
        wanted = replace(wanted, crc32=crc32, parts_crc32=parts_crc32)
        prepared = _prepare(connection, wanted)
    if prepared.parts is not None:
        wanted = replace(wanted, key=prepared.key)
        try:
            _put_parts(connection, wanted, blob, prepared.parts)
        except RequestError as error:
            if error.retryable:
                raise
            # The store also refuses if it has already combined the parts and its answer was lost. In this case the
            # store has the payload, and the master's next reply has no link.
            log.warning("cloudpar: a payload is uploaded whole, since the store refused its parts: %s", error)
            prepared = _prepare(connection, replace(wanted, parts_crc32=[]))
        else:
            return BlobRef(key=prepared.key, size=blob.size)
    if prepared.link is not None:
        connection.put(prepared.link, blob.body())
    return BlobRef(key=prepared.key, size=blob.size)


def _prepare(connection: Connection, wanted: Upload) -> PreparedUpload:
    return connection.call(routes.PREPARE_UPLOADS, PrepareUploads(uploads=[wanted])).uploads[0]


def _put_parts(connection: Connection, wanted: Upload, blob: Blob, parts: Parts) -> None:
    def renew(upload_id: str) -> Parts | None:
        return _prepare(connection, replace(wanted, upload_id=upload_id)).parts

    put, complete = connection.put, connection.complete
    PartedUpload(put, complete, blob.size, blob.read, wanted.parts_crc32, renew, _is_refusal).run(parts)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, RequestError) and not error.retryable
