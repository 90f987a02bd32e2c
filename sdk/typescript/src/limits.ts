// Figures of cloudpar_protocol.limits that a client keeps to. Sizes in bytes, times in seconds.

/** Goes up only when an old peer could misread a message. */
export const PROTOCOL_VERSION = 1;

/** All task data of a package together, up to this size, travels inside start_tasks. */
export const INLINE_DATA_BYTES = 256 * 1024;

/** Packages or uploads in one bulk request. */
export const BULK_ITEMS = 100;

/** Tasks of one package. */
export const PACKAGE_TASKS = 10_000_000;

/** One blob: all task data of a package, or one result. */
export const BLOB_BYTES = 1024 ** 3;

/** A payload up to this size is uploaded whole; a larger one in parts, where the store takes parts. */
export const WHOLE_BYTES = 64 * 1024 ** 2;

/** One part of such an upload; the last one may be smaller. */
export const PART_BYTES = 16 * 1024 ** 2;

/** The longest that a master may hold a request open. */
export const HOLD_S = 20;
