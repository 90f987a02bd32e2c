import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Address } from './connection.ts';
import { ConfigurationError } from './errors.ts';
import { describeStack, type Stack } from './stack.ts';

/**
 * The endpoint for which the Python SDK starts its own master. Both SDKs read the same environment variables and the
 * same profile file, so this SDK may find this endpoint there.
 */
const LOCAL = 'local';

type Environment = Readonly<Record<string, string | undefined>>;

/** Options that name a master. */
export interface Whereabouts {
  /** The master's URL. */
  readonly endpoint?: string | undefined;
  /** The account's token. */
  readonly token?: string | undefined;
  /** A deployed CloudFormation stack, such as "Cloudpar-dev", whose outputs name the endpoint. */
  readonly stack?: string | undefined;
  /** The name or ARN of the Secrets Manager secret that contains the account's token. */
  readonly tokenSecret?: string | undefined;
}

interface AddressSource {
  readonly endpoint?: string | undefined;
  readonly token?: string | undefined;
  readonly name: string;
}

/**
 * Finds the master: arguments first, then CLOUDPAR_ENDPOINT and CLOUDPAR_TOKEN, then a deployed stack (argument or
 * CLOUDPAR_STACK, with CLOUDPAR_TOKEN_SECRET), then the profile file. If an earlier source has a token, the profile
 * file is not read. If an earlier source has an endpoint and none has a token, the file is read only if a stack is
 * named. The token of the file is used only with the endpoint of the file.
 *
 * @throws ConfigurationError when endpoint or token is missing (the text names the places that were searched), the
 *   endpoint is not a URL, or the stack or the profile file cannot be read.
 */
export async function configure(
  given: Whereabouts,
  environment: Environment = process.env,
  describe: (stack: Stack) => Promise<Address | { endpoint: string }> = describeStack,
): Promise<Address> {
  const { CLOUDPAR_ENDPOINT, CLOUDPAR_TOKEN, CLOUDPAR_STACK, CLOUDPAR_TOKEN_SECRET } = environment;
  const sources: AddressSource[] = [
    { endpoint: given.endpoint, token: given.token, name: 'the options endpoint and token' },
    {
      endpoint: CLOUDPAR_ENDPOINT || undefined,
      token: CLOUDPAR_TOKEN || undefined,
      name: 'the environment variables CLOUDPAR_ENDPOINT and CLOUDPAR_TOKEN',
    },
  ];
  const known = () => merge(sources);
  const stack = given.stack ?? CLOUDPAR_STACK;
  if (stack && !complete(known())) {
    const tokenSecret = known().token ? undefined : (given.tokenSecret ?? CLOUDPAR_TOKEN_SECRET);
    sources.push({ ...(await describe({ stack, tokenSecret })), name: `the stack ${stack}` });
  }
  const { endpoint, token } = known();
  if (!token && (!endpoint || stack)) {
    // A token is sent only to the endpoint that was written down with it.
    const profile = await readProfile(environment);
    if (!endpoint || same(endpoint, profile.endpoint)) {
      sources.push(profile);
    }
  }
  return checked(known(), sources, stack);
}

function merge(sources: readonly AddressSource[]): Partial<Address> {
  const endpoint = sources.find((source) => source.endpoint)?.endpoint;
  const token = sources.find((source) => source.token)?.token;
  return { ...(endpoint && { endpoint }), ...(token && { token }) };
}

function complete(address: Partial<Address>): address is Address {
  return address.endpoint !== undefined && address.token !== undefined;
}

function same(one: string, other: string | undefined): boolean {
  return one.replace(/\/+$/, '') === other?.replace(/\/+$/, '');
}

function checked(address: Partial<Address>, sources: readonly AddressSource[], stack: string | undefined): Address {
  if (address.endpoint === LOCAL) {
    throw new ConfigurationError(
      'the endpoint "local" is a pool that Python starts: give the URL of a master, such as that of `cloudpar up`',
    );
  }
  if (!complete(address)) {
    const missing = ['endpoint', 'token'].filter((name) => !(name in address)).join(' and ');
    const places = sources.map(({ name }) => name).join('; ');
    const secret = stack ? ', or name the secret that holds the token by tokenSecret or CLOUDPAR_TOKEN_SECRET' : '';
    throw new ConfigurationError(
      `there is no ${missing} in ${places}: give both, by Pool.open({ endpoint, token }), by CLOUDPAR_ENDPOINT and ` +
        `CLOUDPAR_TOKEN, or in the profile file${secret}; \`cloudpar up\` prints those of a master on this machine`,
    );
  }
  if (!/^https?:\/\//.test(address.endpoint)) {
    const endpoint = JSON.stringify(address.endpoint);
    throw new ConfigurationError(`the endpoint ${endpoint} is not a URL: it must start with http:// or https://`);
  }
  return address;
}

/** The path of the profile file: CLOUDPAR_PROFILE, or cloudpar/profile.toml in the user's configuration folder. */
export function profilePath(environment: Environment): string {
  const folder = environment.XDG_CONFIG_HOME || join(homedir(), '.config');
  const named = environment.CLOUDPAR_PROFILE?.replace(/^~(?=\/)/, homedir());
  return named || join(folder, 'cloudpar', 'profile.toml');
}

async function readProfile(environment: Environment): Promise<AddressSource> {
  const path = profilePath(environment);
  const name = `the profile file ${path}`;
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new ConfigurationError(`${name} cannot be read: ${(error as Error).message}`);
    }
    if (environment.CLOUDPAR_PROFILE) {
      throw new ConfigurationError(`CLOUDPAR_PROFILE names ${path}, which is no file: correct it, or unset it`);
    }
    return { name };
  }
  const { parse } = await import('smol-toml');
  try {
    const { endpoint, token, ...others } = parse(text);
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      throw new Error(`only endpoint and token mean something, and not ${unknown}`);
    }
    return { endpoint: optionalText(endpoint), token: optionalText(token), name };
  } catch (error) {
    throw new ConfigurationError(
      `${name} cannot be read: ${(error as Error).message}; it has two lines, endpoint = "..." and token = "..."`,
    );
  }
}

function optionalText(value: unknown): string | undefined {
  if (value !== undefined && typeof value !== 'string') {
    throw new Error('endpoint and token are texts');
  }
  return value || undefined;
}
