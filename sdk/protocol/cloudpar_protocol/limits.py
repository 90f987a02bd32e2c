"""The limits that clients, workers and masters observe. Sizes are in bytes, times in seconds."""

PROTOCOL_VERSION = 1
"""The protocol version. The number rises only if an old peer could misread a message; it does not rise for new optional
fields."""

INLINE_CODE_BYTES = 32 * 1024
"""The largest task code that travels inside messages; larger code goes through the blob store."""

INLINE_DATA_BYTES = 256 * 1024
"""The most task data of a package that travels inside StartTasks, including its seals and INLINE_ITEM_BYTES for each
task; more data goes through the blob store. The master stores StartTasks as one item, and an item of DynamoDB holds
400 KB."""

INLINE_ITEM_BYTES = 5
"""How many bytes are added to the size of each task's inline data before the data is compared with a limit. MessagePack
also stores the length of each item, in up to 5 bytes. Without this addition, millions of empty items would count as 0
bytes.
"""

INLINE_RESULT_BYTES = 32 * 1024
"""The largest result of a task that travels inside a publication; larger results go through the blob store."""

PUBLICATION_BYTES = 256 * 1024
"""The most bytes of inline results in one publication. The master stores a publication as one item, and an item of
DynamoDB holds 400 KB."""

PUBLICATION_TASKS = 4_000
"""The most tasks of one publication, so that it fits into one item of a DynamoDB table."""

BULK_ITEMS = 100
"""The most leases, publications, packages or uploads in one bulk request."""

BODY_BYTES = 4 * 1024 * 1024
"""The largest body of a request or an answer (AWS Lambda takes 6 MB, and base64 adds a third)."""

RETRIEVED_CHUNKS = BODY_BYTES // (INLINE_CODE_BYTES + INLINE_DATA_BYTES + 8 * 1024)
"""The most chunks of one retrieval: each may carry a package's code and inline data, and all are in one body."""

PACKAGE_TASKS = 10_000_000
"""The most tasks of one package."""

BLOB_BYTES = 1024**3
"""The largest blob: the task code or all task data of a package, or one result."""

WHOLE_BYTES = 64 * 1024**2
"""The largest payload that one request uploads; a larger one goes in parts, if the blob store accepts parts."""

PART_BYTES = 16 * 1024**2
"""The size of each part of an upload in parts; the last part may be smaller."""

OUTPUT_BYTES = 64 * 1024
"""How much of one task's standard output is kept, and likewise of its standard error."""

ERROR_TEXT_CHARS = 16 * 1024
"""The longest remote traceback or message, in characters; a longer text is cut in the middle."""

INPUT_CHARS = 200
"""The longest text about a failed task's arguments, in characters; a longer text is cut."""

HOLD_S = 20.0
"""The longest time that a master may hold a request, in seconds."""

LINK_S = 15 * 60
"""How long a link is valid, in seconds."""

EXECUTORS = 1_000
"""The most executors of one worker. More executors need more workers."""

THREADS = 1024
"""The most threads that a pool may allow each task."""

NESTING = 32
"""The greatest nesting depth of a package, if tasks start tasks. At each depth, a worker may have as many tasks that
wait for their own tasks as it has executors."""
