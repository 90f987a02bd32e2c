import { CfnOutput, Stack, type StackProps, Tags } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import contract from './contract.json';
import { Fleet } from './fleet';
import { Grants } from './grants';
import { Observability } from './observability';
import { Queue } from './queue';
import { Services } from './services';
import type { Settings } from './settings';
import { Storage } from './storage';

/** One deployment of Cloud Parallelizer. */
export class CloudparStack extends Stack {
  constructor(scope: Construct, settings: Settings, props: StackProps = {}) {
    const name = `${contract.stackPrefix}-${settings.env}`;
    super(scope, name, {
      description: `Cloud Parallelizer (${settings.env}): a distributed thread pool`,
      terminationProtection: settings.retain,
      ...props,
    });
    // The group has a fixed name, since CloudFormation permits no circular references: the function that starts
    // packages wakes the group, and the group's hosts call the API of this function.
    const groupName = `${name}-workers`;
    const storage = new Storage(this, 'Storage', settings);
    const queue = new Queue(this, 'Queue');
    const services = new Services(this, 'Services', { settings, storage, queue, fleetGroup: groupName });
    const endpoint = services.api.endpoint;
    const fleet = new Fleet(this, 'Fleet', { settings, storage, endpoint, groupName });
    const observability = new Observability(this, 'Observability', { settings, services, queue, fleet });
    const { topic } = observability;
    new Grants(this, 'Grants', { storage, queue, services, fleet, groupName, topic });
    Tags.of(this).add('cloudpar:environment', settings.env);
    // Hosts serve all accounts, so no tag can name an account: `cloudpar usage` splits the cost by account.
    for (const [part, constructs] of Object.entries({ storage, queue, master: services, fleet, observability })) {
      Tags.of(constructs).add('cloudpar:part', part);
    }

    const outputs = {
      Endpoint: endpoint,
      PackageTable: storage.packages.tableName,
      AccountTable: storage.accounts.tableName,
      QueueUrl: queue.tasks.queueUrl,
      ExpressQueueUrl: queue.express.queueUrl,
      DeadLetterQueueUrl: queue.lost.queueUrl,
      Bucket: storage.blobs.bucketName,
      AccountFunction: services.account.handler.functionName,
      WorkerRole: services.worker.role.roleArn,
      WorkerTokenSecret: storage.workerToken.secretArn,
      FleetGroup: groupName,
      CreateFirstAccount: `cloudpar account create NAME --hours 10 --stack ${name}`,
      Region: this.region,
    };
    for (const [key, value] of Object.entries(outputs)) {
      new CfnOutput(this, key, { value });
    }
  }
}
