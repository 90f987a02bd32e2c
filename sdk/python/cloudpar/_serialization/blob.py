"""A payload that is ready for upload."""

import io
import threading
from typing import IO

from cloudpar_protocol.parts import checksums


class Blob:
    """A payload that is ready for upload. If it is in a file, `close` frees the disk space after the upload."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.size = size
        self._lock = threading.Lock()

    def body(self) -> list[memoryview] | IO[bytes]:
        """The content to upload: the bytes in memory, without a copy, or the file."""
        return [memoryview(self.file.getvalue())] if isinstance(self.file, io.BytesIO) else self.file

    def checksums(self) -> tuple[int, list[int]]:
        """The CRC-32 of the whole payload, and of each part if the payload is large enough to be uploaded in parts."""
        return checksums(self.size, self.read)

    def read(self, start: int, end: int) -> memoryview:
        """Return bytes [start, end). Any thread may call this method."""
        if isinstance(self.file, io.BytesIO):
            return memoryview(self.file.getvalue())[start:end]
        with self._lock:
            self.file.seek(start)
            return memoryview(self.file.read(end - start))

    def close(self) -> None:
        """Free the disk space; memory is freed once no upload uses it."""
        self.file.close()
