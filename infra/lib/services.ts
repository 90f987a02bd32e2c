import { existsSync } from 'node:fs';
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as events from 'aws-cdk-lib/aws-events';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import { type Api, makeApi } from './api';
import contract from './contract.json';
import type { Queue } from './queue';
import { EXECUTORS, type Settings, SettingsError } from './settings';
import type { Storage } from './storage';

/** How long an API's function may run: API Gateway gives up after 30 s, or after 29 s if the API is private. */
const API_TIMEOUT = Duration.seconds(28);

/** A function with its role. Only grants.ts adds permissions to the role. */
export interface Service {
  readonly handler: lambda.Function;
  readonly role: iam.Role;
  readonly log: logs.LogGroup;
  readonly traced: boolean;
}

export interface ServicesProps {
  readonly settings: Settings;
  readonly storage: Storage;
  readonly queue: Queue;
  readonly fleetGroup: string;
}

interface ServiceOptions {
  readonly memorySize: number;
  readonly timeout: Duration;
  readonly reservedConcurrentExecutions?: number;
  readonly environment?: Record<string, string>;
}

/** The master: an API with two functions, and two functions that no HTTP request reaches. */
export class Services extends Construct {
  readonly api: Api;
  readonly client: Service;
  readonly worker: Service;
  /** Invoked by operators, whom IAM authenticates. */
  readonly account: Service;
  readonly timer: Service;
  readonly schedule: events.Rule;
  private readonly code: lambda.Code;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: ServicesProps,
  ) {
    super(scope, id);
    const { settings, fleetGroup } = props;
    this.code = bundle(settings.bundle);
    const served = {
      memorySize: 1024,
      timeout: API_TIMEOUT,
      ...(settings.reservedConcurrency > 0 && { reservedConcurrentExecutions: settings.reservedConcurrency }),
    };
    const fleet = {
      CLOUDPAR_FLEET_GROUP: fleetGroup,
      CLOUDPAR_FLEET_HOST: JSON.stringify({
        executors: EXECUTORS[settings.instanceSize],
        chunks_per_executor: settings.backlogPerExecutor,
      }),
    };
    this.client = this.service('client', { ...served, environment: fleet });
    this.worker = this.service('worker', served);
    this.account = this.service('account', {
      memorySize: 512,
      timeout: API_TIMEOUT,
      // The log keeps the operators' actions at every log level.
      environment: { LOG_LEVEL: settings.logLevel === 'DEBUG' ? 'DEBUG' : 'INFO' },
    });
    this.timer = this.service('timer', {
      memorySize: 512,
      timeout: Duration.seconds(55),
      environment: fleet,
    });

    this.api = makeApi(this, settings, { client: this.client.handler, worker: this.worker.handler });
    this.schedule = new events.Rule(this, 'EveryMinute', {
      description: `Cloud Parallelizer (${settings.env}): folds due packages, starts hosts, reports lost chunks`,
      schedule: events.Schedule.rate(Duration.minutes(1)),
      // The next minute's run replaces a failed one.
      targets: [{ bind: () => ({ arn: this.timer.handler.functionArn, retryPolicy: { maximumRetryAttempts: 0 } }) }],
    });
    this.suppress();
  }

  private service(name: string, { environment, ...options }: ServiceOptions): Service {
    const { settings, storage, queue } = this.props;
    // A trace of each of the timer's runs would cost 0.22 USD a month, a fifth of what an idle deployment may cost.
    const traced = settings.tracing && name !== 'timer';
    const id = name.charAt(0).toUpperCase() + name.slice(1);
    const role = new iam.Role(this, `${id}Role`, {
      assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
      description: `Cloud Parallelizer (${settings.env}): what the ${name} function may do`,
    });
    const log = new logs.LogGroup(this, `${id}Log`, {
      retention: settings.logDays,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const handler = new lambda.Function(this, id, {
      description: `Cloud Parallelizer (${settings.env}): ${name}`,
      runtime: lambda.Runtime.PYTHON_3_13,
      architecture: lambda.Architecture.ARM_64,
      handler: `cloudpar_handlers.${name}.handle`,
      code: this.code,
      // grants.ts alone adds permissions: without this the CDK would add more.
      role: role.withoutPolicyUpdates(),
      logGroup: log,
      tracing: traced ? lambda.Tracing.ACTIVE : lambda.Tracing.PASS_THROUGH,
      ...options,
      environment: {
        CLOUDPAR_PACKAGE_TABLE: storage.packages.tableName,
        CLOUDPAR_ACCOUNT_TABLE: storage.accounts.tableName,
        CLOUDPAR_QUEUE_URL: queue.tasks.queueUrl,
        CLOUDPAR_EXPRESS_QUEUE_URL: queue.express.queueUrl,
        CLOUDPAR_DEAD_LETTER_QUEUE_URL: queue.lost.queueUrl,
        CLOUDPAR_BUCKET: storage.blobs.bucketName,
        CLOUDPAR_WORKER_TOKEN_SECRET: storage.workerToken.secretArn,
        CLOUDPAR_KEY_PARAMETER: storage.keyParameter,
        CLOUDPAR_POLICY: JSON.stringify(changed(settings.limits)),
        POWERTOOLS_SERVICE_NAME: name,
        POWERTOOLS_METRICS_NAMESPACE: contract.metricsNamespace,
        LOG_LEVEL: settings.logLevel,
        ...environment,
      },
    });
    return { handler, role, log, traced };
  }

  private suppress(): void {
    for (const { handler } of [this.client, this.worker, this.account, this.timer]) {
      NagSuppressions.addResourceSuppressions(handler, [
        { id: 'AwsSolutions-L1', reason: 'Python 3.13 is what the bundle is built for and what the tests run on.' },
        {
          id: 'Serverless-LambdaDLQ',
          reason: 'Called synchronously (API, administrator), or again a minute later (timer): no event is lost.',
        },
        {
          id: 'Serverless-LambdaLatestVersion',
          reason: 'Same as AwsSolutions-L1: the bundle contains compiled packages for Python 3.13.',
        },
        {
          id: 'Serverless-LambdaTracing',
          reason: 'A trace costs more than the call itself. Logs suffice, and the setting `tracing` turns traces on.',
        },
      ]);
    }
    NagSuppressions.addResourceSuppressions(this.schedule, [
      { id: 'Serverless-EventBusDLQ', reason: 'The next event replaces a lost one; an alarm reports missing runs.' },
    ]);
  }
}

function bundle(path: string): lambda.Code {
  if (!existsSync(path)) {
    throw new SettingsError(
      `bundle=${path}: there is no such folder. Build it (functions/bundle.sh ${path} aarch64-manylinux2014), ` +
        'or name another by -c bundle=FOLDER.',
    );
  }
  return lambda.Code.fromAsset(path);
}

/**
 * Returns the limits that the operator has changed. The functions' code has the other values of contract.policy itself.
 *
 * CloudFormation replaces the code and the environment of a function one after the other, also when it rolls back. Code
 * of an earlier release does not start if its environment has a value that only a later release knows.
 */
function changed(limits: Settings['limits']): Record<string, number> {
  const initial: Readonly<Record<string, number | boolean>> = contract.policy;
  return Object.fromEntries(Object.entries(limits).filter(([name, value]) => value !== initial[name]));
}
