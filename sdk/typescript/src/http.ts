// The part of fetch that is needed here, declared without the types of the DOM or of Node: a program may have either.

/** What a request is sent with. */
export interface FetchInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A Uint8Array. */
  // biome-ignore lint/suspicious/noExplicitAny: which Uint8Array a fetch takes differs between versions of TypeScript
  readonly body?: any;
  /** An AbortSignal. */
  // biome-ignore lint/suspicious/noExplicitAny: the type is the DOM's or Node's, if the program has either
  readonly signal: any;
  readonly redirect?: 'error';
}

/** What a request is answered with: a Response. */
export interface FetchAnswer {
  readonly status: number;
  /** Its headers. */
  readonly headers: {
    /** One header; null if it is not there. */
    get(name: string): string | null;
  };
  /** Its body. */
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** A function that is called as the global fetch is. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchAnswer>;
