import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import contract from './contract.json';

/**
 * Two task queues, a message group a chunk, and where chunks go that were delivered too often. SQS chooses no messages: the
 * first chunks of packages have a queue of their own, so that they do not wait behind what was sent before.
 */
export class Queue extends Construct {
  readonly tasks: sqs.Queue;
  readonly express: sqs.Queue;
  readonly lost: sqs.Queue;

  constructor(scope: Construct, id: string, lostTimeout: Duration) {
    super(scope, id);
    const common: sqs.QueueProps = {
      fifo: true,
      // Groups are independent: thousands of messages a second instead of 300.
      deduplicationScope: sqs.DeduplicationScope.MESSAGE_GROUP,
      fifoThroughputLimit: sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
      // The sender's id is the chunk's generation; a body may come again on purpose.
      contentBasedDeduplication: false,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      // They go with the stack. From a stack that stays, `cloudpar deploy` removes none: its packages wait for messages.
      removalPolicy: RemovalPolicy.DESTROY,
    };
    this.lost = new sqs.Queue(this, 'Lost', {
      ...common,
      retentionPeriod: Duration.days(contract.queue.deadLetterRetentionDays),
      // What Lambda asks of an event source: six times as long as the function may run.
      visibilityTimeout: Duration.seconds(6 * lostTimeout.toSeconds()),
    });
    const chunks: sqs.QueueProps = {
      ...common,
      // As long as a package may run: what the queue forgets nobody misses.
      retentionPeriod: Duration.days(contract.queue.retentionDays),
      visibilityTimeout: Duration.seconds(contract.queue.visibilityS),
      deadLetterQueue: { queue: this.lost, maxReceiveCount: contract.queue.maxReceiveCount },
    };
    this.tasks = new sqs.Queue(this, 'Tasks', chunks);
    this.express = new sqs.Queue(this, 'Express', chunks);
    NagSuppressions.addResourceSuppressions(this.lost, [
      {
        id: 'Serverless-SQSRedrivePolicy',
        reason: 'It is the dead-letter queue itself; an alarm tells what stays in it.',
      },
    ]);
  }
}
