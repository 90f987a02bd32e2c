// Shows the token to a master. Over plain HTTP the master must first prove that it knows the token. In Python,
// cloudpar_protocol/proofs.py and cloudpar_protocol/transport/identity.py do the same.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { decodeError } from './codec/messages.ts';
import { ConfigurationError, InvalidToken, RequestError } from './errors.ts';
import type { Fetch } from './http.ts';

/**
 * The prefix of tokens that end with a checksum. Over plain HTTP such a token is sent only to a master that proves
 * itself.
 */
const PREFIX = 'cloudpar_';
const RANDOM_DIGITS = 43;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CHECKSUM_DIGITS = 6;

/** The key of a token is the start of its hash. */
const KEY_DIGITS = 16;
const NONCE_BYTES = 16;

/**
 * For how many seconds a proof is valid. fetch does not show its connections, so the client does not know whether a
 * request goes to the process that proved itself.
 */
const PROOF_S = 1;

const STRANGER =
  "a process answers at this address that does not know the token, so it is not this deployment's master, or the " +
  'token is no longer one of this master';

/** A master's answer to a challenge. */
interface Proof {
  readonly nonce: string;
  readonly proof: string;
}

/** A token, and the master to which it is shown. */
export class MasterIdentity {
  readonly #endpoint: string;
  readonly #token: string;
  readonly #hash: Buffer;
  readonly #fetch: Fetch;
  readonly #now: () => number;
  readonly #mustProve: boolean;
  /** Whether the token itself is sent: over TLS, or to a master that does not know challenges. */
  #isPlain: boolean;
  #isProved = false;
  #credential: string | undefined;
  #provedAt = 0;

  /** @throws ConfigurationError when the token has a checksum that does not match. */
  constructor(endpoint: string, token: string, fetch: Fetch, now: () => number) {
    this.#endpoint = endpoint;
    this.#token = token;
    this.#hash = hashOf(token);
    this.#fetch = fetch;
    this.#now = now;
    this.#mustProve = hasChecksum(token);
    this.#isPlain = !endpoint.startsWith('http://');
  }

  /** Whether the master has proved over plain HTTP that it knows the token. */
  get isProved(): boolean {
    return this.#isProved;
  }

  /**
   * Returns the value of the header Authorization for the next request. If the last proof is out of date, the master
   * must prove itself again.
   *
   * @throws InvalidToken when the server does not know the token and has never proved itself.
   * @throws RequestError when the server answers with an error or without a proof, and has never proved itself.
   * @throws Error when the server has proved itself earlier, and now another process answers.
   */
  async authorization(signal: AbortSignal): Promise<string> {
    const isFresh = this.#credential !== undefined && this.#now() - this.#provedAt <= PROOF_S;
    const credential = this.#isPlain || isFresh ? this.#credential : await this.#challenge(signal);
    return credential === undefined ? `Bearer ${this.#token}` : `Cloudpar ${credential}`;
  }

  /**
   * Records that a request got no answer, or that the master refused the token. The next request then needs a new
   * proof.
   */
  forget(): void {
    this.#credential = undefined;
  }

  /** Returns a credential; undefined if the server does not know challenges, so that it may get the token itself. */
  async #challenge(signal: AbortSignal): Promise<string | undefined> {
    const startedAt = this.#now();
    const nonce = randomBytes(NONCE_BYTES).toString('hex');
    const key = this.#hash.toString('hex').slice(0, KEY_DIGITS);
    const response = await this.#fetch(`${this.#endpoint}/v1/prove`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: new TextEncoder().encode(JSON.stringify({ key, nonce })),
      signal,
      redirect: 'error',
    });
    const answer = new Uint8Array(await response.arrayBuffer());
    const found = response.status === 200 ? parsed(answer) : undefined;
    if (found !== undefined && isRight(found, this.#hash, nonce)) {
      this.#isProved = true;
      this.#credential = `${key}.${mixed(this.#token, this.#hash, found.nonce).toString('hex')}`;
      this.#provedAt = startedAt;
      return this.#credential;
    }
    if (this.#isProved) {
      throw new Error(STRANGER);
    }
    if ((response.status === 404 || response.status === 405) && !this.#mustProve) {
      this.#isPlain = true; // a master up to release 0.2.0
      return undefined;
    }
    throw this.#refusal(response.status, answer, found !== undefined);
  }

  #refusal(status: number, answer: Uint8Array, isProof: boolean): RequestError {
    if (isProof) {
      return new InvalidToken(
        `this token is unknown at ${this.#endpoint}: check that it is this master's, or ask the operator for one; or ` +
          'the process that answers there is not this master',
      );
    }
    if (status === 200 || status === 404 || status === 405) {
      return new RequestError(
        `the server at ${this.#endpoint} does not prove that it knows the token (HTTP status ${status}), and without ` +
          'TLS this token is sent only to a master that does: check the endpoint; update a master of release 0.2.0 or ' +
          'earlier; or use https',
      );
    }
    return decodeError(answer, status);
  }
}

/** Returns the proof of a master that knows the hash of a token. */
export function proof(hash: Uint8Array, clientNonce: string, masterNonce: string): Buffer {
  return hmac(hash, `master${clientNonce}${masterNonce}`);
}

/** Encrypts a token for a master that has proved itself, or decrypts a token that is encrypted in this way. */
export function mixed(token: string, hash: Uint8Array, masterNonce: string): Buffer {
  const bytes = Buffer.from(token);
  const blocks = Math.ceil(bytes.length / hash.length);
  const stream = Buffer.concat([...Array(blocks).keys()].map((block) => hmac(hash, `client${masterNonce}${block}`)));
  return bytes.map((byte, index) => byte ^ (stream[index] as number)) as Buffer;
}

/** The hash by which a master knows a token. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Whether a token has a checksum at its end.
 *
 * @throws ConfigurationError when the token starts or ends like a token with a checksum, but is incomplete or has a
 *   typing error.
 */
export function hasChecksum(token: string): boolean {
  const digits = token.slice(-RANDOM_DIGITS - CHECKSUM_DIGITS);
  const endsWell =
    digits.length === RANDOM_DIGITS + CHECKSUM_DIGITS &&
    digits.endsWith(checksum(PREFIX + digits.slice(0, RANDOM_DIGITS)));
  // A token whose start is damaged must not count as a token of an earlier release. Over plain HTTP, it would be sent
  // to any server, and this server could guess the start.
  if (!(endsWell || token.startsWith(PREFIX))) {
    return false;
  }
  if (!endsWell || token !== PREFIX + digits) {
    throw new ConfigurationError(
      `the token is not whole, or has a typing error: copy it again, from ${PREFIX} to its end`,
    );
  }
  return true;
}

/** CRC-32, in digits of base 62. */
function checksum(text: string): string {
  let number = crc32(text);
  let digits = '';
  for (let digit = 0; digit < CHECKSUM_DIGITS; digit += 1) {
    digits = DIGITS[number % DIGITS.length] + digits;
    number = Math.floor(number / DIGITS.length);
  }
  return digits;
}

function isRight(found: Proof, hash: Uint8Array, clientNonce: string): boolean {
  return timingSafeEqual(Buffer.from(found.proof, 'hex'), proof(hash, clientNonce, found.nonce));
}

function hmac(hash: Uint8Array, text: string): Buffer {
  return createHmac('sha256', hash).update(text).digest();
}

function parsed(answer: Uint8Array): Proof | undefined {
  try {
    const { nonce, proof: value } = JSON.parse(new TextDecoder().decode(answer)) as Partial<Proof>;
    const isProof = /^[0-9a-f]{32}$/.test(String(nonce)) && /^[0-9a-f]{64}$/.test(String(value));
    return isProof ? { nonce: String(nonce), proof: String(value) } : undefined;
  } catch {
    return undefined;
  }
}
