"""Figures that clients, workers and masters keep to. Sizes in bytes, times in seconds."""

PROTOCOL_VERSION = 1
"""Goes up only when an old peer could misread a message; new optional fields do not raise it."""

INLINE_CODE_BYTES = 32 * 1024
"""Task code up to this size travels inside messages; larger goes through the blob store."""

INLINE_DATA_BYTES = 256 * 1024
"""All task data of a package together, up to this size, travels inside StartTasks (a table item holds 400 KB)."""

INLINE_RESULT_BYTES = 32 * 1024
"""One task's result up to this size travels inside a publication; larger goes through the blob store."""

PUBLICATION_BYTES = 256 * 1024
"""Inline results of one publication together: it becomes one inbox item (a table item holds 400 KB)."""

PUBLICATION_TASKS = 4_000
"""Tasks of one publication, for the same reason."""

BULK_ITEMS = 100
"""Leases, publications, packages or uploads in one bulk request."""

BODY_BYTES = 4 * 1024 * 1024
"""One request or answer body (a synchronous function payload is 6 MB, base64 takes a third of it)."""

RETRIEVED_CHUNKS = BODY_BYTES // (INLINE_CODE_BYTES + INLINE_DATA_BYTES + 8 * 1024)
"""Chunks of one retrieval: each may bring the code and all the inline data of a package, and they are one body."""

PACKAGE_TASKS = 10_000_000
"""Tasks of one package."""

BLOB_BYTES = 1024**3
"""One blob: all task data of a package, or one result."""

WHOLE_BYTES = 64 * 1024**2
"""A payload up to this size is uploaded whole, by one request; a larger one in parts, where the store takes parts."""

PART_BYTES = 16 * 1024**2
"""One part of such an upload; the last one may be smaller."""

OUTPUT_BYTES = 64 * 1024
"""Standard output, and as much standard error, kept of one task."""

ERROR_TEXT_CHARS = 16 * 1024
"""A remote traceback or a message; longer ones are cut in the middle."""

INPUT_CHARS = 200
"""Characters of the text that shows what a failed task was called with; longer texts are cut."""

HOLD_S = 20.0
"""The longest that a master may hold a request open."""

LINK_S = 15 * 60
"""A presigned link is good for this long."""

EXECUTORS = 1_000
"""Executors of one worker. More run on more workers."""

THREADS = 1024
"""Threads that a pool may allow each task at most."""

NESTING = 32
"""How deep tasks that start tasks of their own may nest; a worker may run this many executors
for each of its cores."""
