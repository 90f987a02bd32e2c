from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import limits
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import BadRequest, Forbidden, TooLarge
from cloudpar_protocol.payloads import SEAL_BYTES, BlobData, InlineData


def check_submission(account: AccountRecord, request: StartTasks) -> None:
    """Check a request for what the schema of StartTasks cannot say.

    Raises:
        BadRequest: The fields contradict each other.
        TooLarge: The request exceeds a limit.
        Forbidden: The request names a payload by a key that `prepare_uploads` cannot have made for this account.
    """
    if request.n > limits.PACKAGE_TASKS:
        text = f"{request.n:,} tasks are over the limit of {limits.PACKAGE_TASKS:,} for one package"
        raise TooLarge(f"{text}: pass `buffersize=` to map, or give each task more to do")
    _check_code(account, request)
    data = request.data
    if isinstance(data, InlineData):
        if len(data.items) != request.n:
            raise BadRequest(f"n is {request.n}, but there are {len(data.items)} items of task data")
        if data.size > limits.INLINE_DATA_BYTES:
            raise TooLarge(f"inline task data is over {limits.INLINE_DATA_BYTES:,} bytes: upload it (prepare_uploads)")
        if len(data.seals) != (request.n * SEAL_BYTES if request.seal is not None else 0):
            raise BadRequest("inline task data of a sealed package needs one seal a task, and any other has none")
    elif isinstance(data, BlobData):
        check_owner(account, data.blob.key, "data")
        seals = 0 if request.seal is None else SEAL_BYTES * request.n
        if data.blob.size < 8 * (request.n + 1) + seals:
            raise BadRequest(f"a data blob of {data.blob.size} bytes cannot hold the table of {request.n} tasks")


def _check_code(account: AccountRecord, request: StartTasks) -> None:
    code = request.code
    if [code.inline, code.blob, code.reference].count(None) != 2:
        raise BadRequest("task code needs exactly one of `inline`, `blob` and `reference`")
    if (code.reference is not None) != (request.codec == "msgpack"):
        raise BadRequest('task code by `reference` and the codec "msgpack" go together: give both or neither')
    if code.inline is not None and len(code.inline) > limits.INLINE_CODE_BYTES:
        raise TooLarge(f"inline task code is over {limits.INLINE_CODE_BYTES:,} bytes: upload it (prepare_uploads)")
    if code.blob is not None:
        check_owner(account, code.blob.key, "code")


def check_owner(account: AccountRecord, key: str, kind: str) -> None:
    """Check that a payload's key is one that `prepare_uploads` can have made for this account.

    Raises:
        Forbidden: `prepare_uploads` cannot have made this key for this account.
    """
    owned = f"{kind}/{account.account_id}/"
    if not (key.startswith(owned) and is_name(key.removeprefix(owned))):
        raise Forbidden(f"{key!r} is not this account's task {kind}: use the key that prepare_uploads answered")


def is_name(text: str) -> bool:
    """Whether a text can be an id, or the last part of a key, that a master has made. Stores may refuse other texts.

    >>> is_name("0f"), is_name("a/b"), is_name("")
    (True, False, False)
    """
    return text.isascii() and text.isalnum()
