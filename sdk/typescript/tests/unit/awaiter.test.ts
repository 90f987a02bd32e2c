import { describe, expect, test } from 'vitest';
import { Awaiter, type Poll, type Step } from '../../src/awaiter.ts';
import { CloudparError, NotFound } from '../../src/errors.ts';
import { HOLD_S } from '../../src/limits.ts';
import type { Draft, Reply } from '../../src/messages.ts';
import { Package } from '../../src/package.ts';
import { progressOf, resultOf, statusOf, whole } from './statuses.ts';

function started(awaiter: Awaiter, id: string, now = 0, tasks = 2): Package {
  const pack = new Package(id, tasks, now);
  awaiter.startRequested();
  awaiter.startDone(pack, now);
  return pack;
}

function pollOf(step: Step): Poll {
  if (step === 'rest' || !('poll' in step)) {
    throw new Error(`it does not poll: ${JSON.stringify(step)}`);
  }
  return step.poll;
}

function replyOf(
  packages: Draft<'PackageStatus'>[],
  rest: Partial<Draft<'AwaitTasksReply'>> = {},
): Reply<'await_tasks'> {
  return whole('AwaitTasksReply', { packages, ...rest });
}

test('Awaiter rests until a package is started, asks at once, and rests when that has ended', () => {
  const awaiter = new Awaiter('me');
  expect(awaiter.next(0)).toBe('rest');
  const pack = started(awaiter, 'p');
  const asked = pollOf(awaiter.next(0));
  expect(asked.request).toEqual({ session: 'me', packages: [{ package_id: 'p', cursor: 0 }], hold_s: HOLD_S });
  const results = [resultOf(0), resultOf(1)];
  const news = awaiter.answered(asked, replyOf([statusOf('p', { state: 'completed', results })]), 1, 1);
  expect([...(news.get(pack)?.results ?? [])]).toHaveLength(2);
  expect(awaiter.next(1)).toBe('rest');
});

test('the next poll starts at the cursor, at once while more is ready, and then is not held', () => {
  const awaiter = new Awaiter('me');
  started(awaiter, 'p');
  const reply = replyOf([statusOf('p', { cursor: 7, more: true, results: [resultOf(0)] })]);
  awaiter.answered(pollOf(awaiter.next(0)), reply, 1, 1);
  expect(pollOf(awaiter.next(1)).request).toMatchObject({ packages: [{ cursor: 7 }], hold_s: 0 });
});

describe('a master that never holds', () => {
  test('is asked again after the time that it names', () => {
    const awaiter = new Awaiter('me');
    started(awaiter, 'p');
    awaiter.answered(pollOf(awaiter.next(0)), replyOf([statusOf('p')], { retry_after_s: 1.5 }), 0.01, 10);
    expect(awaiter.next(10.5)).toEqual({ waitS: 1 });
    expect(awaiter.next(11.5)).toHaveProperty('poll');
  });

  test('is asked soon for a package that is started meanwhile', () => {
    const awaiter = new Awaiter('me');
    started(awaiter, 'p');
    awaiter.answered(pollOf(awaiter.next(0)), replyOf([statusOf('p')], { retry_after_s: 5 }), 0.01, 10);
    started(awaiter, 'q', 10);
    expect(awaiter.next(10)).toEqual({ waitS: expect.closeTo(0.1) });
    expect(pollOf(awaiter.next(10.2)).request.packages).toHaveLength(2);
  });
});

describe('a master that holds', () => {
  test('is asked again at once', () => {
    const awaiter = new Awaiter('me');
    started(awaiter, 'p');
    awaiter.answered(pollOf(awaiter.next(0)), replyOf([statusOf('p')]), 20, 20);
    expect(pollOf(awaiter.next(20)).holdS).toBe(HOLD_S);
  });

  test('that answers at once without news, again and again, is asked at most every 50 ms', () => {
    const awaiter = new Awaiter('me');
    started(awaiter, 'p');
    const waits = Array.from({ length: 6 }, () => {
      awaiter.answered(pollOf(awaiter.next(100)), replyOf([statusOf('p')]), 0.001, 0);
      const step = awaiter.next(0);
      return step !== 'rest' && 'waitS' in step ? step.waitS : 0;
    });
    expect(waits).toEqual([0, 0, 0, 0.05, 0.05, 0.05]);
  });

  test('is not asked to hold while a package is being started', () => {
    const awaiter = new Awaiter('me');
    started(awaiter, 'p');
    awaiter.startRequested();
    expect(pollOf(awaiter.next(0)).holdS).toBe(0);
    awaiter.startDone(undefined, 0);
    expect(pollOf(awaiter.next(0)).holdS).toBe(HOLD_S);
  });
});

test('news of short tasks may gather for a share of the time', () => {
  const awaiter = new Awaiter('me');
  started(awaiter, 'p', 0, 1000);
  const progress = progressOf({ tasks: 1000, done: 100, executors: 1, mean_us: 100_000 });
  const reply = replyOf([statusOf('p', { cursor: 1, results: [resultOf(0)], progress })]);
  awaiter.answered(pollOf(awaiter.next(0)), reply, 1, 2);
  expect(awaiter.next(2)).toEqual({ waitS: expect.closeTo(0.1) });
});

test('more packages than fit in a poll take turns', () => {
  const awaiter = new Awaiter('me');
  const all = Array.from({ length: 150 }, (_, number) => started(awaiter, `p${number}`));
  const first = pollOf(awaiter.next(0));
  expect([first.asked.length, first.holdS]).toEqual([100, 0]);
  awaiter.answered(first, replyOf(first.asked.map(({ id }) => statusOf(id))), 0.01, 0);
  const second = pollOf(awaiter.next(1));
  expect(second.asked.slice(0, 50)).toEqual(all.slice(100));
});

test('a package that the master does not know is lost, and the others go on', () => {
  const awaiter = new Awaiter('me');
  const [lost, other] = [started(awaiter, 'p'), started(awaiter, 'q')];
  const asked = pollOf(awaiter.next(0));
  const reply = replyOf([statusOf('q', { cursor: 1, results: [resultOf(0)] })], { missing: { p: 'deleted' } });
  const news = awaiter.answered(asked, reply, 1, 1);
  expect(lost.failure).toEqual(new NotFound('package p: deleted'));
  expect([...news.keys()]).toEqual([other, lost]);
  expect(awaiter.underWay).toEqual([other]);
});

test('without an answer all are lost', () => {
  const awaiter = new Awaiter('me');
  const pack = started(awaiter, 'p');
  const error = new CloudparError('no master');
  awaiter.unanswered(pollOf(awaiter.next(0)), error);
  expect([pack.failure, awaiter.next(0)]).toEqual([error, 'rest']);
});

test('a package that is dropped is not requested', () => {
  const awaiter = new Awaiter('me');
  awaiter.drop(started(awaiter, 'p'));
  expect(awaiter.next(0)).toBe('rest');
});

test('a package whose large results are still coming in is not requested', () => {
  const awaiter = new Awaiter('me');
  const pack = started(awaiter, 'p', 0, 1);
  const results = [resultOf(0, ['key', 1, 0])];
  awaiter.answered(pollOf(awaiter.next(0)), replyOf([statusOf('p', { state: 'completed', results })]), 1, 1);
  expect([pack.phase, awaiter.next(1)]).toEqual(['running', 'rest']);
});
