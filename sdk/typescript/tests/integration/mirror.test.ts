// Definitions that exist both here and in Python are equal.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import * as limits from '../../src/limits.ts';
import { PYTHON } from './embedded.ts';

const SCRIPT = `
import json
from cloudpar_protocol import errors, limits, version
print(json.dumps({
    "version": version.__version__,
    "limits": {name: value for name, value in vars(limits).items() if name.isupper()},
    "requests": {code: [kind.__name__, kind.status, kind.retryable] for code, kind in errors.REQUEST_ERRORS.items()},
    "outcomes": {outcome: kind.__name__ for outcome, kind in errors.OUTCOME_ERRORS.items()},
    "failures": {reason: kind.__name__ for reason, kind in errors.FAILURE_ERRORS.items()},
    "bases": {name: kind.__bases__[0].__name__ for name, kind in vars(errors).items()
              if isinstance(kind, type) and issubclass(kind, errors.CloudparError) and name != "CloudparError"},
}))`;

interface Names {
  version: string;
  limits: Record<string, number>;
  requests: Record<string, [string, number, boolean]>;
  outcomes: Record<string, string>;
  failures: Record<string, string>;
  bases: Record<string, string>;
}

const python = JSON.parse(execFileSync(PYTHON, ['-c', SCRIPT], { encoding: 'utf8' })) as Names;

const names = (kinds: Readonly<Record<string, { name: string }>>) =>
  Object.fromEntries(Object.entries(kinds).map(([key, { name }]) => [key, name]));

test('the version of the protocol is that of Python', () => {
  const ours = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  expect(ours.version).toBe(python.version);
});

test('limits are those of Python', () => {
  expect(python.limits).toMatchObject({ ...limits });
});

test('errors of requests are those of Python', () => {
  const own = [...errors.REQUEST_ERRORS].map(([code, kind]) => [code, [kind.name, kind.status, kind.retryable]]);
  expect(Object.fromEntries(own)).toEqual(python.requests);
});

test('errors of tasks and packages are those of Python', () => {
  expect(names(errors.OUTCOME_ERRORS as never)).toEqual(python.outcomes);
  expect(names(errors.FAILURE_ERRORS)).toEqual(python.failures);
});

test('the tree of errors is that of Python', () => {
  const own = Object.entries(errors).filter(([, kind]) => typeof kind === 'function');
  const bases = own.map(([name, kind]) => [name, (Object.getPrototypeOf(kind) as { name: string }).name]);
  const { CloudparError, RemoteTraceback, ConfigurationError, ...shared } = Object.fromEntries(bases);
  expect([CloudparError, RemoteTraceback, ConfigurationError]).toEqual(['Error', 'Error', 'CloudparError']);
  expect(shared).toEqual(python.bases);
});
