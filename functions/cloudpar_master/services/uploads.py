"""Prepares uploads of task code and task data."""

from typing import NamedTuple

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import limits
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, PrepareUploadsReply, Upload
from cloudpar_protocol.errors import BadRequest, RequestError, TooLarge

from .account_limits import check_fits
from .backend import Backend
from .stored_bytes import StoredBytes
from .submission import check_owner
from .upload_links import UploadLinks


class _Admitted(NamedTuple):
    """An upload that the account may make: its key, whether the blob exists already, whether to make links to parts."""

    key: str
    exists: bool
    in_parts: bool


class Uploads:
    """Gives each upload its key, its link, and room in the account's stored bytes."""

    def __init__(self, backend: Backend, stored: StoredBytes) -> None:
        self._backend = backend
        self._stored = stored

    def prepare(self, account: AccountRecord, request: PrepareUploads) -> PrepareUploadsReply:
        """Make links for payloads that are too large to travel inline.

        Raises:
            BadRequest: Task code comes without its hash, or the checksums of parts do not fit the size.
            TooLarge: A payload exceeds a limit of the protocol or of the account.
            RateLimited: The account stores too much.
            Unavailable: The master's disk is almost full.
            Forbidden: The request names task data by a key that this method cannot have made for this account.
        """
        links, promised = UploadLinks(self._backend.blobs), list[str]()
        try:
            # The whole request is checked before its first link is made. A link in parts starts an upload in the store,
            # which the store keeps for a day. If a later upload of the request were refused, the client would repeat
            # the request, and each repetition would leave such an upload.
            admitted = [self._admit(account, upload, links, promised) for upload in request.uploads]
        except RequestError:
            # Each repetition of a refused request names new keys for its data. If they kept their room, the account
            # would soon be full of uploads that never come.
            self._stored.take_back(account.account_id, promised)
            raise
        prepared: list[PreparedUpload] = []
        for upload, (key, exists, in_parts) in zip(request.uploads, admitted, strict=True):
            if exists:
                prepared.append(PreparedUpload(key=key))
            else:
                link, parts = links.links(key, upload, in_parts=in_parts)
                prepared.append(PreparedUpload(key=key, link=link, parts=parts))
        return PrepareUploadsReply(uploads=prepared)

    def _admit(self, account: AccountRecord, upload: Upload, links: UploadLinks, promised: list[str]) -> _Admitted:
        """Check one upload. Append to `promised` the keys for which this call has kept room."""
        if upload.size > limits.BLOB_BYTES:
            size = f"{upload.size:,} bytes of task {upload.kind} is over the limit of {limits.BLOB_BYTES:,}"
            raise TooLarge(f"{size}: split the work into several maps, or let tasks read their data from storage")
        if upload.kind == "data":
            key = upload.key or f"data/{account.account_id}/{self._backend.ids.fresh()}"
            check_owner(account, key, "data")
            check_fits(account, 1, upload.size, self._backend.policy)
        elif upload.hash is None:
            raise BadRequest("an upload of task code needs its SHA-256 in `hash`")
        else:
            key = f"code/{account.account_id}/{upload.hash}"
            if self._backend.blobs.exists(key, promise=True):
                return _Admitted(key, exists=True, in_parts=False)
        in_parts = links.may_take_parts(upload)
        promised += self._stored.promise(account, key, upload.size)
        if in_parts and upload.upload_id is None:
            # Each upload in parts that is started takes room of its own, although many such uploads may have the same
            # key.
            promised += self._stored.promise(account, f"{key}#{self._backend.ids.fresh()}", upload.size)
        return _Admitted(key, exists=False, in_parts=in_parts)
