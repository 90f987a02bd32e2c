// The part of fetch that this SDK uses, declared without the types of the DOM or of Node: a program may have either.

/** The options of a request. */
export interface FetchInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body: a Uint8Array. */
  // biome-ignore lint/suspicious/noExplicitAny: which Uint8Array a fetch takes differs between versions of TypeScript
  readonly body?: any;
  /** The signal: an AbortSignal. */
  // biome-ignore lint/suspicious/noExplicitAny: the type is the DOM's or Node's, if the program has either
  readonly signal: any;
  readonly redirect?: 'error';
}

/** The answer to a request: a Response. */
export interface FetchAnswer {
  readonly status: number;
  /** The headers of the answer. */
  readonly headers: {
    /** Returns one header; null if it is missing. */
    get(name: string): string | null;
  };
  /** Reads the body. */
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** A function that is called as the global fetch is. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchAnswer>;
