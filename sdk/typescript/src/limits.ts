// The values of cloudpar_protocol.limits that a client observes. Sizes are in bytes, times in seconds.

/** The protocol's version. It rises only when an old peer could misread a message. */
export const PROTOCOL_VERSION = 1;

/** Up to this size, all task data of a package together travels inside start_tasks. */
export const INLINE_DATA_BYTES = 256 * 1024;

/**
 * The limit of inline task data counts this many bytes for each task, besides the task's own bytes. This is the length
 * of the longest MessagePack header of binary data.
 */
export const INLINE_ITEM_BYTES = 5;

/** The most packages or uploads in one bulk request. */
export const BULK_ITEMS = 100;

/** The most tasks of one package. */
export const PACKAGE_TASKS = 10_000_000;

/** The size limit of one blob: all task data of a package, or one result. */
export const BLOB_BYTES = 1024 ** 3;

/** A payload up to this size is uploaded whole; a larger one in parts, if the store accepts parts. */
export const WHOLE_BYTES = 64 * 1024 ** 2;

/** The size of one part of such an upload; the last part may be smaller. */
export const PART_BYTES = 16 * 1024 ** 2;

/** The longest time for which a master may hold a request. */
export const HOLD_S = 20;
