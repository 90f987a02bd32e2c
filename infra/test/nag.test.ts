import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { synthesize } from './deployment';

describe('cdk-nag (AwsSolutions, Serverless)', () => {
  it.each([
    { env: 'dev' },
    { env: 'staging' },
    { env: 'prod' },
    { env: 'dev', workerImage: '', imageBuild: 'codebuild' },
    { env: 'staging', vpcId: 'vpc-0123abcd', subnetIds: 'subnet-0123abcd,subnet-4567cdef' },
    {
      env: 'prod',
      vpcId: 'vpc-0123abcd',
      subnetIds: 'subnet-0123abcd,subnet-4567cdef',
      apiVpcEndpoint: 'vpce-0123abcd',
    },
    {
      env: 'prod',
      dashboard: true,
      tracing: true,
      alarmEmail: 'operator@example.com',
      onDemandBase: 1,
      reservedConcurrency: 2,
    },
  ])('finds nothing without a reason in %j', (context) => {
    const annotations = Annotations.fromStack(synthesize(context, { nag: true }));
    const found = [...annotations.findError('*', Match.anyValue()), ...annotations.findWarning('*', Match.anyValue())];
    expect(found.map(({ id, entry }) => `${id}: ${String(entry.data).slice(0, 200)}`)).toEqual([]);
  });
});
