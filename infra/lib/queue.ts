import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import contract from './contract.json';

/**
 * Two task queues with one message group for each chunk, and a dead-letter queue for chunks that were delivered too
 * often. A receiver cannot choose among the messages of an SQS queue, so the first chunks of packages have a queue of
 * their own (the express queue). In it they do not wait behind later chunks of packages that started earlier.
 */
export class Queue extends Construct {
  readonly tasks: sqs.Queue;
  readonly express: sqs.Queue;
  readonly lost: sqs.Queue;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const common: sqs.QueueProps = {
      fifo: true,
      // With independent groups SQS takes thousands of messages a second instead of 300.
      deduplicationScope: sqs.DeduplicationScope.MESSAGE_GROUP,
      fifoThroughputLimit: sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
      // The sender gives each message a deduplication id, since it may send the same body again on purpose.
      contentBasedDeduplication: false,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      // Queues are deleted with the stack. `cloudpar deploy` refuses to remove a queue from a stack, because packages
      // may wait for messages in the queue.
      removalPolicy: RemovalPolicy.DESTROY,
    };
    this.lost = new sqs.Queue(this, 'Lost', {
      ...common,
      retentionPeriod: Duration.days(contract.queue.deadLetterRetentionDays),
      // The timer receives from this queue. A run that dies leaves its messages to a later run.
      visibilityTimeout: Duration.seconds(contract.queue.visibilityS),
    });
    const chunks: sqs.QueueProps = {
      ...common,
      // Messages are kept as long as a package may exist, so that a message that the queue drops belongs to no package
      // any more.
      retentionPeriod: Duration.days(contract.queue.retentionDays),
      visibilityTimeout: Duration.seconds(contract.queue.visibilityS),
      deadLetterQueue: { queue: this.lost, maxReceiveCount: contract.queue.maxReceiveCount },
    };
    this.tasks = new sqs.Queue(this, 'Tasks', chunks);
    this.express = new sqs.Queue(this, 'Express', chunks);
    NagSuppressions.addResourceSuppressions(this.lost, [
      {
        id: 'Serverless-SQSRedrivePolicy',
        reason: 'It is the dead-letter queue itself; an alarm reports messages that stay in it.',
      },
    ]);
  }
}
