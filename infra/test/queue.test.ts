import { describe, expect, it } from 'vitest';
import { only, template } from './deployment';

describe('queues', () => {
  const dev = template({ env: 'dev' });

  it.each([
    ['QueueTasks', 14 * 86_400, 180],
    ['QueueExpress', 14 * 86_400, 180],
    ['QueueLost', 14 * 86_400, 180],
  ])('%s: FIFO of independent groups, encrypted', (id, retention, visibility) => {
    expect(only(dev, 'AWS::SQS::Queue', id).Properties).toMatchObject({
      FifoQueue: true,
      DeduplicationScope: 'messageGroup',
      FifoThroughputLimit: 'perMessageGroupId',
      ContentBasedDeduplication: false,
      SqsManagedSseEnabled: true,
      MessageRetentionPeriod: retention,
      VisibilityTimeout: visibility,
    });
  });

  it.each(['QueueTasks', 'QueueExpress'])('%s: a chunk that was lost four times goes to the dead letters', (id) => {
    expect(only(dev, 'AWS::SQS::Queue', id).Properties['RedrivePolicy']).toEqual({
      deadLetterTargetArn: { 'Fn::GetAtt': [expect.stringMatching(/^QueueLost/), 'Arn'] },
      maxReceiveCount: 4,
    });
  });
});
