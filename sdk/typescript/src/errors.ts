// The tree of cloudpar_protocol.errors; names, codes and meanings are the same in every language.
//
//     CloudparError
//     ├── ConfigurationError          the endpoint, the token or the profile is missing or wrong (this SDK's own)
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
//     ├── MasterUnreachable           no answer in time
//     ├── PackageFailed               the package ended without all of its results
//     │   ├── PythonMismatch          no executor runs the client's Python version
//     │   └── SealBroken              code, data or a result is not what was sealed
//     ├── SerializationError          an argument or a result is not what MessagePack holds
//     └── TaskError                   one task has no value
//         ├── TaskRaised              its own exception, as text; the remote traceback is the cause
//         ├── TaskTimeout             it reached its time limit
//         ├── TaskQuotaExceeded       the compute time was used up while it ran
//         ├── TaskCancelled           it was cancelled before it had a result
//         ├── ExecutorCrashed         its process ended (segfault, os._exit, a signal), or was stopped
//         ├── ExecutorOutOfMemory     it was stopped at the memory limit
//         └── TaskLost                several workers in a row were lost with it

/** The base class of all errors of this system. The text says what happened and how to fix it. */
export class CloudparError extends Error {
  /** The number of the failed task in its map or package, from 0; set on errors of one task. */
  declare taskIndex?: number;
  /**
   * The arguments of the failed task as a short text, such as "value 'x'" or "arguments (5, b=0)"; undefined if neither
   * the executor nor the program knows them. Set on errors of one task.
   */
  declare taskInput?: string;
  /** The id of the failed task's package; set on errors of one task. */
  declare packageId?: string;

  /** The name of its class. */
  override get name(): string {
    return this.constructor.name;
  }
}

/** The endpoint, the token, the profile file or the stack is missing or wrong; the text says which, and the fix. */
export class ConfigurationError extends CloudparError {}

/** The master answered with an error. */
export class RequestError extends CloudparError {
  /** The stable name of the error in answers. */
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

  /** The stable name of the error in answers. */
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

/** The message has a newer protocol version than its receiver. */
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

/** The token's role does not permit this call, a payload is another account's, or a link is not valid. */
export class Forbidden extends RequestError {
  static override readonly code = 'forbidden';
  static override readonly status = 403;
}

/** Nothing with this name is visible to the token. */
export class NotFound extends RequestError {
  static override readonly code = 'not_found';
  static override readonly status = 404;
}

/** The idempotency key, account name, token or blob key is already in use for something else. */
export class IdempotencyConflict extends RequestError {
  static override readonly code = 'idempotency_conflict';
  static override readonly status = 409;
}

/** The package, account or payload that the request names was deleted or revoked; the text says why. */
export class Gone extends RequestError {
  static override readonly code = 'gone';
  static override readonly status = 410;
}

/** The request exceeds a limit of the protocol or of the account; the text names the limit. */
export class TooLarge extends RequestError {
  static override readonly code = 'too_large';
  static override readonly status = 413;
}

/** The account exceeds a limit on requests, connections, running packages or stored bytes; wait `retryAfterS`. */
export class RateLimited extends RequestError {
  static override readonly code = 'rate_limited';
  static override readonly status = 429;
  static override readonly retryable = true;
}

/** A fault of the master. It loses no acknowledged data, and the same request may be sent again. */
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

/** The master or a blob store does not answer in time, or another program answers at its address. */
export class MasterUnreachable extends CloudparError {}

/** The package ended without all of its results, for example because the quota was used up; the text says why. */
export class PackageFailed extends CloudparError {
  /** A short code for programs; the message is for people. */
  readonly reason: string | undefined;

  constructor(message: string, reason?: string) {
    super(message);
    this.reason = reason;
  }
}

/** Client and executor run different minor versions of Python. Packages of this SDK never raise it. */
export class PythonMismatch extends PackageFailed {}

/** Code, data or a result does not match its seal, or has none; it was not read. */
export class SealBroken extends PackageFailed {}

/** An argument or a result is not what MessagePack holds. */
export class SerializationError extends CloudparError {}

/** One task ended without a value. */
export class TaskError extends CloudparError {
  /** The outcome: "error", "timeout", "quota", "cancelled", "crashed", "memory" or "lost". */
  code: string = 'error';
  /** The class of the exception that the function raised, such as "ValueError" or "package.module.Class". */
  declare remoteClass: string | undefined;
}

/** The function raised an exception: the message is its text, and the cause is its remote traceback. */
export class TaskRaised extends TaskError {}

/** The task reached its time limit and was stopped. The time used is charged. */
export class TaskTimeout extends TaskError {
  override code = 'timeout';
}

/** The account's compute time was used up while the task ran, so it was stopped. The time used is charged. */
export class TaskQuotaExceeded extends TaskError {
  override code = 'quota';
}

/** The task was cancelled before it had a result. */
export class TaskCancelled extends TaskError {
  override code = 'cancelled';
}

/** The task's executor ended while the task ran, or the worker stopped it because of what the task wrote. */
export class ExecutorCrashed extends TaskError {
  override code = 'crashed';
}

/** The task exceeded its executor's memory limit and was stopped. */
export class ExecutorOutOfMemory extends TaskError {
  override code = 'memory';
}

/** Several workers in a row were lost while they ran this task. */
export class TaskLost extends TaskError {
  override code = 'lost';
}

/** A remote exception's traceback as in its executor: the `cause` of a TaskRaised. */
export class RemoteTraceback extends Error {
  override readonly name = 'RemoteTraceback';

  constructor(traceback: string) {
    super(traceback);
    this.stack = `${this.name}: ${traceback.trimEnd()}`; // the stack of this SDK's own code does not help
  }
}

type RequestErrorKind = typeof RequestError;

/**
 * Error classes by their codes in answers.
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
 * Error classes by a task result's outcome other than "ok".
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
 * Error classes by the reason of a failed package; other reasons give a plain PackageFailed.
 *
 * @internal
 */
export const FAILURE_ERRORS: Readonly<Record<string, typeof PackageFailed>> = {
  python: PythonMismatch,
  seal: SealBroken,
};
