import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import contract from './contract.json';

/**
 * Two task queues with one message group for each chunk, and a dead-letter queue for chunks that were delivered too
 * often. SQS does not select messages, so the first chunks of packages have a queue of their own. There they do not
 * wait behind chunks that were sent earlier.
 */
export class Queue extends Construct {
  readonly tasks: sqs.Queue;
  readonly express: sqs.Queue;
  readonly lost: sqs.Queue;

  constructor(scope: Construct, id: string, lostTimeout: Duration) {
    super(scope, id);
    const common: sqs.QueueProps = {
      fifo: true,
      // Groups are independent: SQS then takes thousands of messages a second instead of 300.
      deduplicationScope: sqs.DeduplicationScope.MESSAGE_GROUP,
      fifoThroughputLimit: sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
      // The sender gives each message a deduplication id, since it may send the same body again on purpose.
      contentBasedDeduplication: false,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      // Queues are deleted with the stack. `cloudpar deploy` refuses to remove one from a stack: packages wait for its
      // messages.
      removalPolicy: RemovalPolicy.DESTROY,
    };
    this.lost = new sqs.Queue(this, 'Lost', {
      ...common,
      retentionPeriod: Duration.days(contract.queue.deadLetterRetentionDays),
      // Lambda wants six times the function's timeout for an event source.
      visibilityTimeout: Duration.seconds(6 * lostTimeout.toSeconds()),
    });
    const chunks: sqs.QueueProps = {
      ...common,
      // As long as a package may live: a message that the queue drops later belongs to no package.
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
