/**
 * All permissions of this deployment, in one place. Where the CDK would add grants by itself, this app prevents it: the
 * CDK gets roles that it cannot add policies to, and integrations and targets are this app's own classes.
 * tests/aws/handlers/test_grants.py checks that each function has the permissions for its calls, and no others.
 *
 * Only these are not here: the statements that refuse access without TLS, which the CDK adds to the bucket, the queues
 * and the topic; and the permissions of the roles that build images, which a library makes (image-builder.ts).
 */
import { ArnFormat, Aws, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as sns from 'aws-cdk-lib/aws-sns';
import { type NagPackSuppression, NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import type { Fleet } from './fleet';
import type { Queue } from './queue';
import type { Service, Services } from './services';
import type { Storage } from './storage';

export interface GrantsProps {
  readonly storage: Storage;
  readonly queue: Queue;
  readonly services: Services;
  readonly fleet: Fleet;
  readonly groupName: string;
  /** The topic for alarms, if there is one. */
  readonly topic: sns.Topic | undefined;
}

/** All wildcards in the roles' policies, with their reasons. A test checks that no other action uses "*". */
const WILDCARDS: NagPackSuppression[] = [
  {
    id: 'AwsSolutions-IAM5',
    appliesTo: [{ regex: '/^Resource::<StorageBlobs[0-9A-F]{8}\\.Arn>\\/(code|data|results)\\/\\*$/g' }],
    reason: 'The objects of one kind: their keys contain ids that are made at run time.',
  },
  {
    id: 'AwsSolutions-IAM5',
    appliesTo: [{ regex: '/autoScalingGroup:\\*:autoScalingGroupName\\/Cloudpar-[a-z]+-workers$/g' }],
    reason: "The ARN contains an id that AWS generates for the group; the group's name, which this app sets, is exact.",
  },
  {
    id: 'AwsSolutions-IAM5',
    appliesTo: [{ regex: '/:ec2:.*:instance\\/\\*$/g' }],
    reason: 'A host registers itself with Session Manager; EC2 makes its id.',
  },
  {
    id: 'AwsSolutions-IAM5',
    appliesTo: [{ regex: '/:iam::\\*:role\\/cloudpar\\/\\*$/g' }],
    reason: "Operators give accounts roles of this path, of any AWS account; each role's trust policy names this role.",
  },
  {
    id: 'AwsSolutions-IAM5',
    appliesTo: ['Resource::*'],
    reason:
      "These calls take no resource: X-Ray's two, Auto Scaling's Describe (how many start, or why none does), " +
      "Session Manager's channels, and the container registry's login.",
  },
];

/** Makes the policies of the deployment's roles, and the permissions to call its functions. */
export class Grants extends Construct {
  constructor(
    scope: Construct,
    id: string,
    private readonly props: GrantsProps,
  ) {
    super(scope, id);
    this.client();
    this.worker();
    this.account();
    this.timer();
    this.invocations();
    this.fleet();
    this.alarms();
  }

  /**
   * The permissions of the client function, which answers start, await, cancel, acknowledge and the other requests of
   * clients. It folds packages, signs links for code, data and results, and enlarges the fleet. Uploads in parts need
   * s3:PutObject too. No role may abort an upload in parts, since the bucket's lifecycle rule does so after a day.
   */
  private client(): void {
    const { services, storage, queue } = this.props;
    this.policy('Client', services.client, [
      ...this.folding(),
      this.index('account'),
      ...this.counting(),
      allow(['sqs:GetQueueAttributes'], [queue.tasks.queueArn, queue.express.queueArn]),
      this.blobs(['s3:PutObject'], ['code/*', 'data/*']),
      this.blobs(['s3:GetObject'], ['code/*', 'data/*']),
      allow(['secretsmanager:GetSecretValue'], [storage.workerToken.secretArn]),
      allow(['ssm:GetParameter', 'ssm:PutParameter'], [this.keyArn()]),
      ...this.enlarging(),
      allow(['autoscaling:DescribeScalingActivities'], ['*']),
    ]);
  }

  /**
   * The permissions of the worker function, which answers retrieve, prepare results, publish, extend and give back. It
   * folds packages, receives from the queues, signs links, records workers, and assumes the roles of accounts.
   */
  private worker(): void {
    const { services, storage, queue } = this.props;
    this.policy('Worker', services.worker, [
      ...this.folding(),
      this.index('uncut'),
      allow(['dynamodb:UpdateItem'], [storage.packages.tableArn]),
      allow(
        ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility', 'sqs:GetQueueAttributes'],
        [queue.tasks.queueArn, queue.express.queueArn],
      ),
      this.blobs(['s3:GetObject'], ['code/*', 'data/*']),
      allow(['secretsmanager:GetSecretValue'], [storage.workerToken.secretArn]),
      allow(['ssm:GetParameter'], [this.keyArn()]),
      // The query finds the accounts whose tasks must not run on a worker that cannot keep tasks from the network.
      allow(['dynamodb:Query'], [storage.accounts.tableArn]),
      // Only roles with this path may be assumed: many roles of an AWS account trust the whole account, and an
      // administrator's role may be one of them. A role's own trust policy must name this function's role and the id of
      // the account, too.
      allow(['sts:AssumeRole'], [`arn:${Aws.PARTITION}:iam::*:role/cloudpar/*`]),
    ]);
  }

  /**
   * The permissions of the account function, which operators call. It creates, changes and lists accounts, rotates the
   * keys for their seals, and adds up what accounts were charged. It also lists packages, and cancels packages. To
   * cancel a package, it folds the package.
   */
  private account(): void {
    const { services, storage } = this.props;
    this.policy('Account', services.account, [
      ...this.folding(),
      allow(['dynamodb:Query', 'dynamodb:Scan', 'dynamodb:DeleteItem'], [storage.accounts.tableArn]),
      this.index('account'),
      ...this.counting(),
      allow(['ssm:GetParameter'], [this.keyArn()]),
      allow(
        ['dynamodb:Scan'],
        [`${storage.packages.tableArn}/index/account`, `${storage.packages.tableArn}/index/unsettled`],
      ),
    ]);
  }

  /**
   * The permissions of the timer, which folds the packages that are due, postpones those that it cannot fold, records
   * lost chunks in their packages, and makes the fleet large enough for all packages.
   */
  private timer(): void {
    const { services, storage, queue } = this.props;
    this.policy('Timer', services.timer, [
      ...this.folding(),
      this.index('due'),
      allow(['dynamodb:Scan'], [`${storage.packages.tableArn}/index/unsettled`]),
      allow(['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'], [queue.lost.queueArn]),
      ...this.enlarging(),
    ]);
  }

  /**
   * Lets the API call its two functions, and the schedule call the timer. Any other caller needs an IAM permission of
   * its own.
   */
  private invocations(): void {
    const { services } = this.props;
    const principal = new iam.ServicePrincipal('apigateway.amazonaws.com');
    for (const [id, service] of Object.entries({ Client: services.client, Worker: services.worker })) {
      service.handler.addPermission(`Api${id}`, {
        principal,
        sourceArn: services.api.calls,
      });
    }
    services.timer.handler.addPermission('Schedule', {
      principal: new iam.ServicePrincipal('events.amazonaws.com'),
      sourceArn: services.schedule.ruleArn,
    });
  }

  /** The permissions of a worker's host. The worker's container gets none of them. */
  private fleet(): void {
    const { fleet, storage, groupName } = this.props;
    const repositories = new Set([...fleet.images.values()].flatMap(({ repositoryArn }) => repositoryArn ?? []));
    const policy = new iam.Policy(this, 'Fleet', {
      roles: [fleet.role],
      statements: [
        allow(['secretsmanager:GetSecretValue'], [storage.workerToken.secretArn]),
        allow(
          [
            'autoscaling:CompleteLifecycleAction',
            'autoscaling:RecordLifecycleActionHeartbeat',
            'autoscaling:TerminateInstanceInAutoScalingGroup',
          ],
          [this.groupArn(groupName)],
        ),
        allow(['logs:CreateLogStream', 'logs:PutLogEvents'], [fleet.log.logGroupArn]),
        // The least permissions for Session Manager, as AWS documents them. AWS's managed policy
        // AmazonSSMManagedInstanceCore would also let a host read every parameter of the AWS account, and a task that
        // escapes from its container has the host's permissions.
        allow(
          ['ssm:UpdateInstanceInformation'],
          [Stack.of(this).formatArn({ service: 'ec2', resource: 'instance', resourceName: '*' })],
        ),
        allow(
          [
            'ssmmessages:CreateControlChannel',
            'ssmmessages:CreateDataChannel',
            'ssmmessages:OpenControlChannel',
            'ssmmessages:OpenDataChannel',
          ],
          ['*'],
        ),
        ...(repositories.size > 0
          ? [
              allow(['ecr:GetAuthorizationToken'], ['*']),
              allow(
                ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'],
                [...repositories],
              ),
            ]
          : []),
      ],
    });
    fleet.group.node.addDependency(policy);
    NagSuppressions.addResourceSuppressions(policy, WILDCARDS);
  }

  /**
   * Lets the alarms publish to the topic. The topic's default policy would allow this, but the policy that refuses
   * access without TLS replaces the default policy.
   */
  private alarms(): void {
    const { topic } = this.props;
    topic?.addToResourcePolicy(
      new iam.PolicyStatement({
        principals: [new iam.ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { ArnLike: { 'aws:SourceArn': this.alarmArns() } },
      }),
    );
  }

  /**
   * The permissions that each function that folds needs: for packages and the quotas of their accounts, for the queues,
   * for large specs and result pages, and to delete payloads.
   */
  private folding(): iam.PolicyStatement[] {
    const { storage, queue } = this.props;
    return [
      allow(
        ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:PutItem'],
        [storage.packages.tableArn, storage.accounts.tableArn],
      ),
      allow(
        ['dynamodb:Query', 'dynamodb:BatchWriteItem', 'dynamodb:DeleteItem', 'dynamodb:ConditionCheckItem'],
        [storage.packages.tableArn],
      ),
      allow(['dynamodb:UpdateItem'], [storage.accounts.tableArn]),
      this.index('unsettled'),
      allow(['sqs:SendMessage'], [queue.tasks.queueArn, queue.express.queueArn]),
      this.blobs(['s3:GetObject', 's3:PutObject'], ['results/*']),
      this.blobs(['s3:DeleteObject'], ['data/*', 'results/*']),
      this.listing(['results/*']),
    ];
  }

  /**
   * The permissions to enlarge the fleet: to read the group's size, and to raise it while no other function does so.
   */
  private enlarging(): iam.PolicyStatement[] {
    return [
      allow(['dynamodb:UpdateItem'], [this.props.storage.packages.tableArn]),
      allow(['autoscaling:SetDesiredCapacity'], [this.groupArn(this.props.groupName)]),
      allow(['autoscaling:DescribeAutoScalingGroups'], ['*']),
    ];
  }

  /** The permissions to count an account's stored bytes: its uploads, including incomplete uploads in parts. */
  private counting(): iam.PolicyStatement[] {
    return [
      this.listing(['code/*', 'data/*']),
      allow(['s3:ListBucketMultipartUploads'], [this.props.storage.blobs.bucketArn]),
    ];
  }

  private listing(prefixes: string[]): iam.PolicyStatement {
    return new iam.PolicyStatement({
      actions: ['s3:ListBucket'],
      resources: [this.props.storage.blobs.bucketArn],
      conditions: { StringLike: { 's3:prefix': prefixes } },
    });
  }

  private index(name: string): iam.PolicyStatement {
    return allow(['dynamodb:Query'], [`${this.props.storage.packages.tableArn}/index/${name}`]);
  }

  private blobs(actions: string[], keys: string[]): iam.PolicyStatement {
    return allow(
      actions,
      keys.map((key) => this.props.storage.blobs.arnForObjects(key)),
    );
  }

  /**
   * The ARN of the parameter with the key that encrypts the accounts' keys. The parameter is a SecureString under AWS's
   * own key, which needs no grant: a role that may read the parameter may decrypt it.
   */
  private keyArn(): string {
    const resourceName = this.props.storage.keyParameter.slice(1);
    return Stack.of(this).formatArn({ service: 'ssm', resource: 'parameter', resourceName });
  }

  private groupArn(name: string): string {
    return Stack.of(this).formatArn({
      service: 'autoscaling',
      resource: `autoScalingGroup:*:autoScalingGroupName/${name}`,
    });
  }

  private alarmArns(): string {
    return Stack.of(this).formatArn({
      service: 'cloudwatch',
      resource: 'alarm',
      resourceName: '*',
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    });
  }

  private policy(id: string, service: Service, statements: iam.PolicyStatement[]): iam.Policy {
    const policy = new iam.Policy(this, id, {
      roles: [service.role],
      statements: [
        ...statements,
        allow(['logs:CreateLogStream', 'logs:PutLogEvents'], [service.log.logGroupArn]),
        ...(service.traced ? [allow(['xray:PutTraceSegments', 'xray:PutTelemetryRecords'], ['*'])] : []),
      ],
    });
    // Without this dependency, new code could run before it has its permissions during an update.
    service.handler.node.addDependency(policy);
    NagSuppressions.addResourceSuppressions(policy, WILDCARDS);
    return policy;
  }
}

function allow(actions: string[], resources: string[]): iam.PolicyStatement {
  return new iam.PolicyStatement({ actions, resources });
}
