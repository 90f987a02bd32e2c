import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configure, profilePath } from '../../src/configuration.ts';
import { ConfigurationError } from '../../src/errors.ts';

const ARGUMENTS = { endpoint: 'http://a', token: 'ta' };
const ENVIRONMENT = { CLOUDPAR_ENDPOINT: 'http://e', CLOUDPAR_TOKEN: 'te' };
let folder: string;
let profile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cloudpar-profile-'));
  profile = join(folder, 'profile.toml');
  await writeFile(profile, 'endpoint = "https://p"\ntoken = "tp"\n');
});

afterAll(() => rm(folder, { recursive: true }));

const emptyEnvironment = () => ({ XDG_CONFIG_HOME: join(folder, 'nothing') });

function stackOf(answer: { endpoint: string; token?: string }) {
  const asked: unknown[] = [];
  const describeStack = async (stack: unknown) => {
    asked.push(stack);
    return answer;
  };
  return { asked, describeStack };
}

test('arguments come before the environment, and that before the profile', async () => {
  const all = { ...ENVIRONMENT, CLOUDPAR_PROFILE: profile };
  expect(await configure(ARGUMENTS, all)).toEqual({ endpoint: 'http://a', token: 'ta' });
  expect(await configure({ endpoint: 'http://a' }, all)).toEqual({ endpoint: 'http://a', token: 'te' });
  expect(await configure({}, all)).toEqual({ endpoint: 'http://e', token: 'te' });
  expect(await configure({}, { CLOUDPAR_PROFILE: profile })).toEqual({ endpoint: 'https://p', token: 'tp' });
});

describe('the error names what is missing', () => {
  test.each([
    [{}, /no endpoint and token in .*options.*CLOUDPAR_ENDPOINT.*profile file/],
    [{ endpoint: 'http://a' }, /no token in/],
    [{ token: 't' }, /no endpoint in/],
    [{ endpoint: 'a:1', token: 't' }, /"a:1" is not a URL/],
    [{ endpoint: 'local' }, /"local" is a pool that Python starts: give the URL/],
  ])('%j', async (given, text) => {
    await expect(configure(given, emptyEnvironment())).rejects.toThrow(ConfigurationError);
    await expect(configure(given, emptyEnvironment())).rejects.toThrow(text);
  });

  test('a token is sent only to the endpoint that it was configured with', async () => {
    const environment = { CLOUDPAR_PROFILE: profile };
    await expect(configure({ endpoint: 'http://elsewhere' }, environment)).rejects.toThrow(/no token/);
  });

  test.each([
    ['endpoint = ', /cannot be read: .*two lines/s],
    ['endpoint = 7\ntoken = "t"', /endpoint and token are texts/],
    ['endpoint = "http://x"', /no token in/],
    ['endpont = "http://x"', /cannot be read: only endpoint and token mean something, and not endpont/],
  ])('a profile with %j', async (text, expected) => {
    const path = join(folder, 'other.toml');
    await writeFile(path, text);
    await expect(configure({}, { CLOUDPAR_PROFILE: path })).rejects.toThrow(expected);
  });

  test('a named profile that does not exist is an error', async () => {
    await expect(configure({}, { CLOUDPAR_PROFILE: join(folder, 'no') })).rejects.toThrow(/names .*, which is no file/);
    await expect(configure({}, { CLOUDPAR_PROFILE: folder })).rejects.toThrow(/cannot be read: EISDIR/);
  });
});

describe('a deployed stack', () => {
  test('names the endpoint, and its secret the token', async () => {
    const { asked, describeStack } = stackOf({ endpoint: 'https://s', token: 'ts' });
    const given = { stack: 'Cloudpar-dev', tokenSecret: 'mine' };
    expect(await configure(given, emptyEnvironment(), describeStack)).toEqual({ endpoint: 'https://s', token: 'ts' });
    expect(asked).toEqual([given]);
    const environment = { ...emptyEnvironment(), CLOUDPAR_STACK: 'Cloudpar-dev', CLOUDPAR_TOKEN_SECRET: 'mine' };
    expect(await configure({}, environment, describeStack)).toEqual({ endpoint: 'https://s', token: 'ts' });
  });

  test('is not asked when all is known, and for no secret when the token is', async () => {
    const { asked, describeStack } = stackOf({ endpoint: 'https://s' });
    expect(await configure({ ...ARGUMENTS, stack: 's' }, emptyEnvironment(), describeStack)).toEqual(ARGUMENTS);
    expect(asked).toEqual([]);
    const given = { token: 't', stack: 's', tokenSecret: 'mine' };
    expect(await configure(given, emptyEnvironment(), describeStack)).toEqual({ endpoint: 'https://s', token: 't' });
    expect(asked).toEqual([{ stack: 's', tokenSecret: undefined }]);
  });

  test('takes the token of a profile that was written for it, and of no other', async () => {
    const environment = { CLOUDPAR_PROFILE: profile };
    const { describeStack } = stackOf({ endpoint: 'https://p/' });
    expect(await configure({ stack: 's' }, environment, describeStack)).toEqual({
      endpoint: 'https://p/',
      token: 'tp',
    });
    const other = stackOf({ endpoint: 'https://other' }).describeStack;
    await expect(configure({ stack: 's' }, environment, other)).rejects.toThrow(/no token .*CLOUDPAR_TOKEN_SECRET/);
  });
});

test('the profile is where the Python SDK has it', () => {
  expect(profilePath({ CLOUDPAR_PROFILE: '/x/y.toml' })).toBe('/x/y.toml');
  expect(profilePath({ XDG_CONFIG_HOME: '/x' })).toBe('/x/cloudpar/profile.toml');
  expect(profilePath({})).toMatch(/\/\.config\/cloudpar\/profile\.toml$/);
});
