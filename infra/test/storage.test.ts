import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { type Context, only, synthesize, template } from './deployment';

const PACKAGES = 'StoragePackages';
const ACCOUNTS = 'StorageAccounts';

describe('tables', () => {
  const dev = template({ env: 'dev' });
  const prod = template({ env: 'prod' });

  it.each([PACKAGES, ACCOUNTS])('%s: keys, on demand, expiry', (id) => {
    expect(only(dev, 'AWS::DynamoDB::Table', id).Properties).toMatchObject({
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      BillingMode: 'PAY_PER_REQUEST',
      TimeToLiveSpecification: { AttributeName: 'expires_at', Enabled: true },
    });
  });

  it('indexes contain little more than keys', () => {
    const index = (
      name: string,
      hash: string,
      range: string,
      projection: object = { ProjectionType: 'KEYS_ONLY' },
    ) => ({
      IndexName: name,
      KeySchema: [
        { AttributeName: hash, KeyType: 'HASH' },
        { AttributeName: range, KeyType: 'RANGE' },
      ],
      Projection: projection,
    });
    const { GlobalSecondaryIndexes, AttributeDefinitions } = only(dev, 'AWS::DynamoDB::Table', PACKAGES).Properties;
    expect(GlobalSecondaryIndexes).toEqual([
      index('due', 'due', 'due_at'),
      index('uncut', 'uncut', 'uncut_since'),
      index('account', 'account', 'started_at'),
      index('unsettled', 'unsettled', 'started_at', {
        ProjectionType: 'INCLUDE',
        NonKeyAttributes: ['tasks', 'data_bytes'],
      }),
    ]);
    expect(AttributeDefinitions).toEqual([
      { AttributeName: 'pk', AttributeType: 'S' },
      { AttributeName: 'sk', AttributeType: 'S' },
      { AttributeName: 'due', AttributeType: 'S' },
      { AttributeName: 'due_at', AttributeType: 'N' },
      { AttributeName: 'uncut', AttributeType: 'S' },
      { AttributeName: 'uncut_since', AttributeType: 'N' },
      { AttributeName: 'account', AttributeType: 'S' },
      { AttributeName: 'started_at', AttributeType: 'N' },
      { AttributeName: 'unsettled', AttributeType: 'S' },
    ]);
    expect(only(dev, 'AWS::DynamoDB::Table', ACCOUNTS).Properties).not.toHaveProperty('GlobalSecondaryIndexes');
  });

  it.each(['dev', 'prod'])('of %s stay in the stack, unused, where others are named', (env) => {
    const others = template({ env, packageTable: 'packages-2', accountTable: 'accounts-2' });
    const tables = (from: Template) => from.findResources('AWS::DynamoDB::Table');
    expect(tables(others)).toEqual(tables(template({ env })));
    for (const id of Object.keys(tables(others))) {
      expect(JSON.stringify(others.findResources('AWS::IAM::Policy'))).not.toContain(id);
      expect(JSON.stringify(others.findResources('AWS::Lambda::Function'))).not.toContain(id);
    }
  });

  it('that are named are the ones that the functions use, and the only ones that they may use', () => {
    const restored = template({ env: 'prod', packageTable: 'packages-2', accountTable: 'accounts-2' });
    const { Variables } = only(restored, 'AWS::Lambda::Function', 'ServicesTimer').Properties['Environment'] as {
      Variables: Record<string, string>;
    };
    expect(Variables).toMatchObject({ CLOUDPAR_PACKAGE_TABLE: 'packages-2', CLOUDPAR_ACCOUNT_TABLE: 'accounts-2' });
    const policies = JSON.stringify(restored.findResources('AWS::IAM::Policy'));
    expect(policies).toContain(':table/packages-2/index/due"');
    expect(policies).toContain(':table/accounts-2"');
    restored.hasOutput('PackageTable', { Value: 'packages-2' });
  });

  it.each([PACKAGES, ACCOUNTS])('%s: prod can be restored and outlives its stack, dev does neither', (id) => {
    const [kept, thrown] = [only(prod, 'AWS::DynamoDB::Table', id), only(dev, 'AWS::DynamoDB::Table', id)];
    expect(kept).toMatchObject({ DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' });
    expect(kept.Properties).toMatchObject({
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
    expect(thrown).toMatchObject({ DeletionPolicy: 'Delete', UpdateReplacePolicy: 'Delete' });
    expect(thrown.Properties).toMatchObject({
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: false },
    });
  });

  it.each([PACKAGES, ACCOUNTS])('%s: what is restored need not outlive the stack', (id) => {
    const recovered = only(template({ env: 'prod', retain: 'false' }), 'AWS::DynamoDB::Table', id);
    expect(recovered).toMatchObject({ DeletionPolicy: 'Delete' });
    expect(recovered.Properties).toMatchObject({
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
  });

  it('no customer key anywhere', () => {
    dev.resourceCountIs('AWS::KMS::Key', 0);
    prod.resourceCountIs('AWS::KMS::Key', 0);
  });
});

describe('bucket', () => {
  it('is private and encrypted, and expires objects; cdk-nag checks that it is reached by TLS only', () => {
    expect(only(template({ env: 'dev' }), 'AWS::S3::Bucket').Properties).toMatchObject({
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
      },
      OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
      LifecycleConfiguration: {
        Rules: [
          { Id: 'expire-data', Prefix: 'data/', ExpirationInDays: 30, Status: 'Enabled' },
          { Id: 'expire-results', Prefix: 'results/', ExpirationInDays: 30, Status: 'Enabled' },
          { Id: 'expire-code', Prefix: 'code/', ExpirationInDays: 60, Status: 'Enabled' },
          { Id: 'abort-uploads', AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: 'Enabled' },
        ],
      },
    });
  });
});

describe('worker token', () => {
  it('is generated by AWS: 64 letters and digits', () => {
    const { Properties } = only(template({ env: 'dev' }), 'AWS::SecretsManager::Secret');
    expect(Properties['GenerateSecretString']).toEqual({
      PasswordLength: 64,
      ExcludePunctuation: true,
      IncludeSpace: false,
    });
    expect(Properties).not.toHaveProperty('SecretString');
  });
});

describe('the settings', () => {
  const value = (context: Context) =>
    only(Template.fromStack(synthesize(context)), 'AWS::SSM::Parameter', 'Settings').Properties['Value'];

  it('that were given are kept in the stack; defaults are not', () => {
    expect(value({ env: 'dev', maxInstances: '8', dashboard: true, alarmEmail: 'ops@example.com' })).toBe(
      '{"alarmEmail":"ops@example.com","dashboard":"true","maxInstances":"8","workerImage":"example/worker:1"}',
    );
  });

  it('do not contain properties of this machine or this region', () => {
    expect(value({ env: 'dev', unavailableFamilies: 'c8g', unset: 'dashboard' })).toBe(
      '{"workerImage":"example/worker:1"}',
    );
  });

  it('that are kept change a resource, so that CloudFormation updates them on their own', () => {
    const changed = [{}, { maxInstances: '4' }].map((more) => template({ env: 'dev', ...more }).toJSON()['Resources']);
    expect(changed[0]).not.toEqual(changed[1]);
  });
});
