import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as s3 from 'aws-cdk-lib/aws-s3';
import * as secretsmanager from 'aws-cdk-lib/aws-secretsmanager';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import contract from './contract.json';
import type { Settings } from './settings';

interface Keys {
  readonly partitionKey: string;
  readonly sortKey: string;
  /** Attributes that the table's index holds besides the keys. */
  readonly includes?: string[];
}

/** All stored data: packages, accounts, payloads, the worker token, and the settings of the deployment. */
export class Storage extends Construct {
  readonly packages: dynamodb.ITable;
  readonly accounts: dynamodb.ITable;
  readonly blobs: s3.Bucket;
  readonly workerToken: secretsmanager.Secret;
  /**
   * The name of the parameter with the key that encrypts the accounts' keys. The client function creates the parameter:
   * see grants.ts.
   */
  readonly keyParameter: string;

  constructor(scope: Construct, id: string, settings: Settings) {
    super(scope, id);
    // The stack's own tables stay in the stack while the deployment uses other tables. Otherwise CloudFormation would
    // delete the stack's own tables, or, if they are retained, leave them outside the stack and later make empty ones.
    const packages = this.table('Packages', contract.packageTable, settings);
    const accounts = this.table('Accounts', contract.accountTable, settings);
    this.packages = settings.packageTable
      ? dynamodb.Table.fromTableName(this, 'OtherPackages', settings.packageTable)
      : packages;
    this.accounts = settings.accountTable
      ? dynamodb.Table.fromTableName(this, 'OtherAccounts', settings.accountTable)
      : accounts;
    this.blobs = this.bucket(settings);
    this.workerToken = this.secret(settings);
    this.keyParameter = `/cloudpar/${settings.env}/accounts-key`;
    // The settings are in a resource, since CloudFormation does not update a stack in which only metadata or outputs
    // change. The resource's id has no hash, since `cloudpar deploy` looks for the id in the stack's template.
    new ssm.CfnParameter(this, 'Settings', {
      type: 'String',
      name: `/cloudpar/${settings.env}/settings`,
      description: `Cloud Parallelizer (${settings.env}): the settings that were given; all others have their defaults`,
      value: JSON.stringify(settings.recorded),
    }).overrideLogicalId('Settings');
  }

  private table(id: string, keys: Keys & { indexes: Record<string, Keys> }, settings: Settings): dynamodb.Table {
    const table = new dynamodb.Table(this, id, {
      partitionKey: { name: keys.partitionKey, type: dynamodb.AttributeType.STRING },
      sortKey: { name: keys.sortKey, type: dynamodb.AttributeType.STRING },
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      // This is AWS's own key. A customer's key would cost 1 USD a month, and a paid call for each request.
      encryption: dynamodb.TableEncryption.DEFAULT,
      timeToLiveAttribute: contract.ttlAttribute,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: settings.recovery },
      // No deletionProtection: if the first creation of the stack failed, CloudFormation could not delete the table again,
      // and the stack would be stuck. `cloudpar deploy` protects the tables that outlive the stack once it exists.
      removalPolicy: removal(settings),
    });
    for (const [indexName, index] of Object.entries(keys.indexes)) {
      table.addGlobalSecondaryIndex({
        indexName,
        partitionKey: { name: index.partitionKey, type: dynamodb.AttributeType.STRING },
        sortKey: { name: index.sortKey, type: dynamodb.AttributeType.NUMBER },
        ...(index.includes
          ? { projectionType: dynamodb.ProjectionType.INCLUDE, nonKeyAttributes: index.includes }
          : { projectionType: dynamodb.ProjectionType.KEYS_ONLY }),
      });
    }
    if (!settings.recovery) {
      NagSuppressions.addResourceSuppressions(table, [
        {
          id: 'AwsSolutions-DDB3',
          reason: 'The data of this environment need not be restored; -c recovery=true enables it.',
        },
      ]);
    }
    return table;
  }

  private bucket(settings: Settings): s3.Bucket {
    const bucket = new s3.Bucket(this, 'Blobs', {
      blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
      encryption: s3.BucketEncryption.S3_MANAGED,
      objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      // CloudFormation does not delete a bucket with objects, so `cloudpar destroy` first empties the bucket. The CDK's
      // autoDeleteObjects would add a function with the permission to delete everything.
      removalPolicy: removal(settings),
      lifecycleRules: [
        ...Object.entries(contract.blobs).map(([prefix, days]) => ({
          id: `expire-${prefix.replace('/', '')}`,
          prefix,
          expiration: Duration.days(days),
        })),
        { id: 'abort-uploads', abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ],
    });
    NagSuppressions.addResourceSuppressions(bucket, [
      {
        id: 'AwsSolutions-S1',
        reason:
          'Payloads are transient and reached only by links of 15 minutes, which are logged when signed; access logs ' +
          'would cost more than the payloads.',
      },
    ]);
    return bucket;
  }

  private secret(settings: Settings): secretsmanager.Secret {
    const secret = new secretsmanager.Secret(this, 'WorkerToken', {
      description: `Cloud Parallelizer (${settings.env}): the token of its workers`,
      // 64 characters of an alphabet of 62 have 381 random bits.
      generateSecretString: { passwordLength: 64, excludePunctuation: true, includeSpace: false },
      removalPolicy: removal(settings),
    });
    NagSuppressions.addResourceSuppressions(secret, [
      {
        id: 'AwsSolutions-SMG4',
        reason:
          'Functions and workers read the token when they start, so a rotation takes a new value and an instance refresh ' +
          '(docs/runbook.md#worker-token); a rotation function could read it, too.',
      },
    ]);
    return secret;
  }
}

/**
 * Returns what happens to stored data if the stack is deleted. Even retained data is deleted if the creation of the
 * stack fails: it is still empty then, and a failed attempt leaves nothing behind.
 */
export function removal(settings: Settings): RemovalPolicy {
  return settings.retain ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY;
}
