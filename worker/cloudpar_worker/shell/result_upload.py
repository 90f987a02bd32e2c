"""Uploads large results of publications to the blob store, and replaces them by references."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from cloudpar_protocol import routes
from cloudpar_protocol.limits import BULK_ITEMS, INLINE_RESULT_BYTES
from cloudpar_protocol.parts import NOT_CHECKED, checksums
from cloudpar_protocol.payloads import BlobRef, Parts, TaskResult, Unwritable
from cloudpar_protocol.transport.parted_upload import PartedUpload
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.worker_messages import PreparedResult, PrepareResult, PrepareResults, Publication

from .master_client import MasterClient, PayloadRefused

_ATTEMPTS = 3
"""How often the agent tries to upload one blob; each time it uses a new link."""
PublicationReport = Callable[[Publication, Unwritable], None]


def is_large(result: TaskResult) -> bool:
    """Whether a result's value or exception is too large to travel inside its publication."""
    return result.data is not None and len(result.data) > INLINE_RESULT_BYTES


def upload_large(
    client: MasterClient, publications: list[Publication], report: PublicationReport = lambda _made, _unwritable: None
) -> list[Publication]:
    """Upload the large results of each publication as one blob; return the publications with references to the results.

    A large result that the blob store has refused _ATTEMPTS times gets the outcome "lost". The function calls `report`
    each time that the blob of a publication cannot be written to the pool's payload folder. If `report` raises
    PayloadRefused, the blob counts as refused.

    Raises:
        RequestError: The master refuses the request for links.
        TokenRefused: The master does not know the worker token.
        Stopped: `hang_up` of the client was called.
    """
    large = [publication for publication in publications if any(map(is_large, publication.results))]
    if not large:
        return publications
    done: dict[tuple[str, int], Publication] = {}
    for first in range(0, len(large), BULK_ITEMS):
        part = large[first : first + BULK_ITEMS]
        for attempt in range(_ATTEMPTS):
            part = _upload(client, part, done, attempt, report)
            if not part:
                break
    return [done.get((made.lease_id, made.seq), made) for made in publications]


def _upload(
    client: MasterClient,
    part: list[Publication],
    done: dict[tuple[str, int], Publication],
    attempt: int,
    report: PublicationReport,
) -> list[Publication]:
    """Try once to upload each publication's results; return the publications whose upload was refused.

    An upload is refused, for example, if its link has expired.

    Publications whose upload succeeded go into `done`. After the last attempt, publications whose upload was refused go
    into `done`, too, without their large results.

    Only the first attempt uploads in parts. If the answer to the last step of such an upload was lost, the store
    refuses the repeated step. The next attempt then uploads the whole blob. If the store already has this blob, the
    attempt succeeds.
    """
    blobs = [[result.data or b"" for result in made.results if is_large(result)] for made in part]
    places: list[PreparedResult] = []
    if client.own_folder:
        announced = [_announce(made, blob) for made, blob in zip(part, blobs, strict=True)]
        places = client.call(routes.PREPARE_RESULTS, PrepareResults(results=announced)).results
    if not places or not all(PayloadFolder.has(place.link.url) for place in places):
        # Without a payload folder, or with a master of an earlier release, the agent sends the blobs by HTTP with
        # checksums. The checksum of a blob needs the results of the blob as one bytes object.
        blobs = [[b"".join(blob)] for blob in blobs]
        announced = [
            _checked(_announce(*each), each[1][0], in_parts=not attempt) for each in zip(part, blobs, strict=True)
        ]
        places = client.call(routes.PREPARE_RESULTS, PrepareResults(results=announced)).results
    refused: list[Publication] = []
    for made, blob, wanted, place in zip(part, blobs, announced, places, strict=True):
        try:
            if place.parts is None:
                client.put(place.link, blob, partial(report, made))
            else:
                _put_parts(client, wanted, blob[0], place.parts)
        except PayloadRefused as why:
            if attempt == _ATTEMPTS - 1:
                done[made.lease_id, made.seq] = _undelivered(made, str(why))
            refused.append(made)
        else:
            done[made.lease_id, made.seq] = _referring(made, place.key)
    return refused


def _put_parts(client: MasterClient, wanted: PrepareResult, blob: bytes, parts: Parts) -> None:
    view = memoryview(blob)

    def renew(upload_id: str) -> Parts | None:
        request = PrepareResults(results=[replace(wanted, upload_id=upload_id)])
        return client.call(routes.PREPARE_RESULTS, request).results[0].parts

    PartedUpload(
        client.put, client.complete, len(blob), lambda start, end: view[start:end], wanted.parts_crc32, renew,
        lambda error: isinstance(error, PayloadRefused),
    ).run(parts)  # fmt: skip


def _announce(publication: Publication, blob: list[bytes]) -> PrepareResult:
    return PrepareResult(
        package_id=publication.package_id,
        lease_id=publication.lease_id,
        seq=publication.seq,
        size=sum(map(len, blob)),
        crc32=NOT_CHECKED,
    )


def _checked(announced: PrepareResult, blob: bytes, *, in_parts: bool) -> PrepareResult:
    view = memoryview(blob)
    crc32, parts_crc32 = checksums(len(blob), lambda start, end: view[start:end])
    return replace(announced, crc32=crc32, parts_crc32=parts_crc32 if in_parts else [])


def _referring(publication: Publication, key: str) -> Publication:
    offset = 0
    results: list[TaskResult] = []
    for result in publication.results:
        if is_large(result):
            size = len(result.data or b"")
            results.append(replace(result, data=None, blob=BlobRef(key, size, offset)))
            offset += size
        else:
            results.append(result)
    return replace(publication, results=results)


def _undelivered(publication: Publication, why: str) -> Publication:
    message = f"the result is too large to travel inline, and the blob store refused it ({why}): run the task again"
    results = [
        replace(result, outcome="lost", data=None, message=message) if is_large(result) else result
        for result in publication.results
    ]
    return replace(publication, results=results)
