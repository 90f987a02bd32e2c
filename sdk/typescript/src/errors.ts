// The tree of cloudpar_protocol.errors; the names, codes and meanings are the same in every language.
//
//     CloudparError
//     ├── ConfigurationError          endpoint and token do not fit together (this SDK's own)
//     ├── RequestError                what the master answered
//     │   ├── BadRequest              400 bad_request
//     │   ├── UnsupportedVersion      400 unsupported_version
//     │   ├── InvalidToken            401 invalid_token
//     │   ├── QuotaExhausted          402 quota_exhausted
//     │   ├── Forbidden               403 forbidden
//     │   ├── NotFound                404 not_found
//     │   ├── IdempotencyConflict     409 idempotency_conflict
//     │   ├── Gone                    410 gone
//     │   ├── TooLarge                413 too_large
//     │   ├── RateLimited             429 rate_limited          (retryable)
//     │   ├── InternalError           500 internal              (retryable)
//     │   └── Unavailable             503 unavailable           (retryable)
//     ├── MasterUnreachable           no answer at all
//     ├── PackageFailed               the package ended without all results: quota, expiry, losses
//     │   ├── PythonMismatch          no executor runs the client's Python version
//     │   └── SealBroken              code, data or a result is not what was sealed
//     ├── SerializationError          an argument or a result is not what MessagePack holds
//     └── TaskError                   one task has no value
//         ├── TaskRaised              its own exception, as text; the remote traceback is the cause
//         ├── TaskTimeout             it ran into a time limit
//         ├── TaskQuotaExceeded       it ran into the end of the quota
//         ├── TaskCancelled           it was cancelled while queued or running
//         ├── ExecutorCrashed         it ended its process (segfault, os._exit, a signal)
//         ├── ExecutorOutOfMemory     it was stopped at the memory limit
//         └── TaskLost                its worker was lost again and again

/** Anything that this system reports. The text says what happened and how to fix it. */
export class CloudparError extends Error {
  /** Of an error that one task ended with: its number in its map, from 0. */
  declare taskIndex?: number;
  /**
   * Of the same, what the task was called with, as a short text such as "value 'x'" or "arguments (5, b=0)"; undefined
   * if neither the executor nor the program could say it.
   */
  declare taskInput?: string;
  /** Of an error of a task or of a package: the package's id. */
  declare packageId?: string;

  /** The name of its class. */
  override get name(): string {
    return this.constructor.name;
  }
}

/** Endpoint and token do not fit together; the text says which is missing, and where it was looked for. */
export class ConfigurationError extends CloudparError {}

/** An answer of the master that is an error. */
export class RequestError extends CloudparError {
  /** The stable name on the wire. */
  static readonly code: string = 'error';
  /** The HTTP status. */
  static readonly status: number = 500;
  /** Whether the same request may succeed later. */
  static readonly retryable: boolean = false;

  /** When to try again, in seconds, if the master knows. */
  readonly retryAfterS: number | undefined;

  constructor(message: string, retryAfterS?: number) {
    super(message);
    this.retryAfterS = retryAfterS;
  }

  /** On the wire. */
  get code(): string {
    return (this.constructor as typeof RequestError).code;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return (this.constructor as typeof RequestError).retryable;
  }
}

/** The request is malformed or contradicts itself. */
export class BadRequest extends RequestError {
  static override readonly code = 'bad_request';
  static override readonly status = 400;
}

/** The request speaks a newer protocol than this master. */
export class UnsupportedVersion extends RequestError {
  static override readonly code = 'unsupported_version';
  static override readonly status = 400;
}

/** The token is missing, unknown or revoked. */
export class InvalidToken extends RequestError {
  static override readonly code = 'invalid_token';
  static override readonly status = 401;
}

/** The account has no compute time left. */
export class QuotaExhausted extends RequestError {
  static override readonly code = 'quota_exhausted';
  static override readonly status = 402;
}

/** The token is good, but not for this call. */
export class Forbidden extends RequestError {
  static override readonly code = 'forbidden';
  static override readonly status = 403;
}

/** Nothing of that name is visible to this token. */
export class NotFound extends RequestError {
  static override readonly code = 'not_found';
  static override readonly status = 404;
}

/** The idempotency key was used before with another request. */
export class IdempotencyConflict extends RequestError {
  static override readonly code = 'idempotency_conflict';
  static override readonly status = 409;
}

/** It was there and has been deleted; the text says when and why. */
export class Gone extends RequestError {
  static override readonly code = 'gone';
  static override readonly status = 410;
}

/** Over a limit of the protocol. */
export class TooLarge extends RequestError {
  static override readonly code = 'too_large';
  static override readonly status = 413;
}

/** Too many at once; try again after `retryAfterS`. */
export class RateLimited extends RequestError {
  static override readonly code = 'rate_limited';
  static override readonly status = 429;
  static override readonly retryable = true;
}

/** A fault of the master. Nothing acknowledged is lost; the same request may be sent again. */
export class InternalError extends RequestError {
  static override readonly code = 'internal';
  static override readonly status = 500;
  static override readonly retryable = true;
}

/** The master cannot take the request now. */
export class Unavailable extends RequestError {
  static override readonly code = 'unavailable';
  static override readonly status = 503;
  static override readonly retryable = true;
}

/** The endpoint does not answer. */
export class MasterUnreachable extends CloudparError {}

/** The package ended without all of its results: no quota, its lifetime over, tasks lost, or cancelled. */
export class PackageFailed extends CloudparError {
  /** A short code; see the message for people. */
  readonly reason: string | undefined;

  constructor(message: string, reason?: string) {
    super(message);
    this.reason = reason;
  }
}

/** Client and executor run different minor versions of Python. Packages of this SDK never raise it. */
export class PythonMismatch extends PackageFailed {}

/** Code, data or a result is not what its seal says, or has none: it was not read. */
export class SealBroken extends PackageFailed {}

/** An argument or a result is not what MessagePack holds. */
export class SerializationError extends CloudparError {}

/** One task ended without a value. */
export class TaskError extends CloudparError {
  /** How it ended: "error", "timeout", "quota", "cancelled", "crashed", "memory" or "lost". */
  code: string = 'error';
  /** The class of the exception that the function raised, such as "ValueError" or "package.module.Class". */
  declare remoteClass: string | undefined;
}

/** The function raised an exception: its text is the message, its remote traceback the cause. */
export class TaskRaised extends TaskError {}

/** The task ran into its time limit and was stopped. The time used is charged. */
export class TaskTimeout extends TaskError {
  override code = 'timeout';
}

/** The task ran into the end of the account's compute time and was stopped. The time used is charged. */
export class TaskQuotaExceeded extends TaskError {
  override code = 'quota';
}

/** The task was cancelled before it had a result. */
export class TaskCancelled extends TaskError {
  override code = 'cancelled';
}

/** The task ended its executor process. */
export class ExecutorCrashed extends TaskError {
  override code = 'crashed';
}

/** The task grew over its executor's memory limit and was stopped. */
export class ExecutorOutOfMemory extends TaskError {
  override code = 'memory';
}

/** Workers were lost again and again while they ran this task. */
export class TaskLost extends TaskError {
  override code = 'lost';
}

/** What a remote exception's traceback looked like in its executor: the `cause` of a TaskRaised. */
export class RemoteTraceback extends Error {
  override readonly name = 'RemoteTraceback';

  constructor(traceback: string) {
    super(traceback);
    this.stack = `${this.name}: ${traceback.trimEnd()}`; // the stack of this SDK's own code does not help
  }
}

type RequestErrorKind = typeof RequestError;

/**
 * By the code on the wire.
 *
 * @internal
 */
export const REQUEST_ERRORS: ReadonlyMap<string, RequestErrorKind> = new Map(
  [
    BadRequest,
    UnsupportedVersion,
    InvalidToken,
    QuotaExhausted,
    Forbidden,
    NotFound,
    IdempotencyConflict,
    Gone,
    TooLarge,
    RateLimited,
    InternalError,
    Unavailable,
  ].map((kind) => [kind.code, kind]),
);

/**
 * By a task result's outcome other than "ok".
 *
 * @internal
 */
export const OUTCOME_ERRORS: Readonly<Record<string, new (message: string, options?: ErrorOptions) => CloudparError>> =
  {
    error: TaskRaised,
    timeout: TaskTimeout,
    quota: TaskQuotaExceeded,
    cancelled: TaskCancelled,
    crashed: ExecutorCrashed,
    memory: ExecutorOutOfMemory,
    lost: TaskLost,
    unpicklable: SerializationError,
  };

/**
 * By a failed package's reason; every other reason is a plain PackageFailed.
 *
 * @internal
 */
export const FAILURE_ERRORS: Readonly<Record<string, typeof PackageFailed>> = {
  python: PythonMismatch,
  seal: SealBroken,
};
