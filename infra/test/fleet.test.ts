import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Match } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { only, template, text } from './deployment';

const dev = template({ env: 'dev' });
const GROUP = 'AWS::AutoScaling::AutoScalingGroup';
const TEMPLATE = 'AWS::EC2::LaunchTemplate';

interface Policy {
  LaunchTemplate: {
    Overrides: { InstanceType: string; LaunchTemplateSpecification: { LaunchTemplateId: { Ref: string } } }[];
  };
  InstancesDistribution: Record<string, unknown>;
}

describe('group', () => {
  const group = only(dev, GROUP);
  const policy = group.Properties['MixedInstancesPolicy'] as Policy;

  it('is empty until there is work, and has four instances at most', () => {
    expect(group.Properties).toMatchObject({
      AutoScalingGroupName: 'Cloudpar-dev-workers',
      MinSize: '0',
      MaxSize: '4',
      CapacityRebalance: true,
    });
    expect(group.Properties).not.toHaveProperty('DesiredCapacity');
    expect(only(template({ env: 'dev', maxInstances: 9 }), GROUP).Properties['MaxSize']).toBe('9');
  });

  it('draws spot instances from both architectures, each with its own image', () => {
    expect(policy.InstancesDistribution).toEqual({
      OnDemandAllocationStrategy: 'lowest-price',
      OnDemandBaseCapacity: 0,
      OnDemandPercentageAboveBaseCapacity: 0,
      SpotAllocationStrategy: 'price-capacity-optimized',
    });
    const used = policy.LaunchTemplate.Overrides.map(({ InstanceType, LaunchTemplateSpecification: used }) => [
      InstanceType,
      used.LaunchTemplateId.Ref.replace(/[0-9A-F]{8}$/, ''),
    ]);
    expect(used).toHaveLength(12);
    expect(used).toContainEqual(['c7g.large', 'FleetArm64']);
    expect(used).toContainEqual(['c7i.large', 'FleetX86']);
    expect(used.every(([type, name]) => /g\./.test(type as string) === (name === 'FleetArm64'))).toBe(true);
  });

  it('leaves out families that a region lacks', () => {
    const families = 'c7g,m7g,c7i';
    const group = only(template({ env: 'dev', families }), GROUP);
    const { LaunchTemplate } = group.Properties['MixedInstancesPolicy'] as Policy;
    expect(LaunchTemplate.Overrides.map(({ InstanceType }) => InstanceType)).toEqual([
      'c7g.large',
      'm7g.large',
      'c7i.large',
    ]);
  });

  it('falls back to on-demand instances when asked to', () => {
    const fallback = only(template({ env: 'dev', onDemandBase: 1 }), GROUP).Properties[
      'MixedInstancesPolicy'
    ] as Policy;
    expect(fallback.InstancesDistribution['OnDemandBaseCapacity']).toBe(1);
  });

  it('gets a new version of its templates for a new image, and CloudFormation does not wait for new instances', () => {
    expect(Object.keys(group['UpdatePolicy'] as object)).toEqual(['AutoScalingScheduledAction']);
    const [one, two] = ['a:1', 'a:2'].map((workerImage) =>
      JSON.stringify(template({ env: 'dev', workerImage }).findResources(TEMPLATE)),
    );
    expect(one).not.toBe(two);
    const { LaunchTemplateSpecification } = policy.LaunchTemplate as unknown as Record<string, { Version: unknown }>;
    expect(LaunchTemplateSpecification?.Version).toEqual({
      'Fn::GetAtt': [expect.stringMatching(/^Fleet/), 'LatestVersionNumber'],
    });
  });

  it('waits for the drain of an instance that it terminates', () => {
    dev.hasResourceProperties('AWS::AutoScaling::LifecycleHook', {
      LifecycleHookName: 'drain',
      LifecycleTransition: 'autoscaling:EC2_INSTANCE_TERMINATING',
      HeartbeatTimeout: 300,
      DefaultResult: 'CONTINUE',
    });
  });
});

describe('hosts', () => {
  const templates = Object.values(dev.findResources(TEMPLATE)).map(({ Properties }) => Properties.LaunchTemplateData);

  it('one template for each architecture, of Amazon Linux 2023', () => {
    const images = Object.values(dev.toJSON()['Parameters'] as Record<string, { Default: string }>).map(
      (each) => each.Default,
    );
    expect(images).toContain('/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64');
    expect(images).toContain('/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64');
    expect(templates).toHaveLength(2);
    expect(Object.keys(template({ env: 'dev', architectures: 'x86_64' }).findResources(TEMPLATE))).toHaveLength(1);
  });

  it('metadata needs a session, and is a hop too far for the container', () => {
    for (const data of templates) {
      expect(data.MetadataOptions).toEqual({
        HttpEndpoint: 'enabled',
        HttpTokens: 'required',
        HttpPutResponseHopLimit: 1,
        InstanceMetadataTags: 'disabled',
      });
    }
  });

  it('volumes are encrypted gp3, and go with the instance', () => {
    for (const data of templates) {
      expect(data.BlockDeviceMappings).toEqual([
        {
          DeviceName: '/dev/xvda',
          Ebs: { Encrypted: true, VolumeType: 'gp3', VolumeSize: 20, DeleteOnTermination: true },
        },
      ]);
      expect(data).not.toHaveProperty('KeyName');
    }
  });

  it('incoming traffic is refused, outgoing HTTPS is allowed', () => {
    dev.resourceCountIs('AWS::EC2::SecurityGroupIngress', 0);
    const { Properties } = only(dev, 'AWS::EC2::SecurityGroup');
    expect(Properties).not.toHaveProperty('SecurityGroupIngress');
    expect(Properties['SecurityGroupEgress']).toEqual([
      expect.objectContaining({ CidrIp: '0.0.0.0/0', IpProtocol: 'tcp', FromPort: 443, ToPort: 443 }),
    ]);
  });

  it('no NAT gateway; gateway endpoints for S3 and DynamoDB', () => {
    dev.resourceCountIs('AWS::EC2::NatGateway', 0);
    dev.resourceCountIs('AWS::EC2::EIP', 0);
    dev.resourceCountIs('AWS::EC2::VPCEndpoint', 2);
    dev.allResourcesProperties('AWS::EC2::VPCEndpoint', { VpcEndpointType: 'Gateway' });
    dev.allResourcesProperties('AWS::EC2::Subnet', { MapPublicIpOnLaunch: true });
    template({ env: 'prod' }).resourceCountIs('AWS::EC2::Subnet', 3);
  });

  it('the first boot fits into user data, and contains no secret', () => {
    for (const data of templates) {
      const script = text(data.UserData);
      expect(Buffer.byteLength(script)).toBeLessThan(14_000);
      expect(script).toContain('CLOUDPAR_TOKEN_SECRET=<?>');
      expect(script).toContain('CLOUDPAR_IMAGE=example/worker:1');
      expect(script).toContain('CLOUDPAR_PYTHON=3.13');
      expect(script).toContain('TimeoutStopSec=600');
      expect(script).not.toContain('resolve:secretsmanager');
    }
  });
});

describe('scaling', () => {
  const alarm = (name: string) => only(dev, 'AWS::CloudWatch::Alarm', `FleetScaling${name}`).Properties;
  const expression = (name: string) =>
    (alarm(name)['Metrics'] as { Expression?: string }[]).find((metric) => metric.Expression)?.Expression;

  /**
   * Returns the value of an alarm's expression for a minute with these metrics. A metric that is missing was not
   * reported.
   */
  const value = (name: string, metrics: Record<string, number>): number => {
    const IF = (condition: boolean, yes: number, no: number) => (condition ? yes : no);
    const FILL = (metric: number | undefined, otherwise: number) => metric ?? otherwise;
    const ids = (alarm(name)['Metrics'] as { Id: string; Expression?: string }[])
      .filter((metric) => !metric.Expression)
      .map(({ Id }) => Id);
    const evaluate = new Function('IF', 'FILL', ...ids, `return ${expression(name)}`);
    return evaluate(IF, FILL, ...ids.map((id) => metrics[id]));
  };

  it('grows with the waiting chunks of both queues for each executor; from zero with any chunk', () => {
    expect(value('Grow', { desired: 0 })).toBe(0);
    expect(value('Grow', { desired: 0, waiting: 1 })).toBeGreaterThan(18);
    expect(value('Grow', { desired: 0, waitingExpress: 1 })).toBeGreaterThan(18);
    expect(value('Grow', { desired: 3, waiting: 8, waitingExpress: 4 })).toBe(2);
    expect(alarm('Grow')).toMatchObject({
      Threshold: 2,
      ComparisonOperator: 'GreaterThanThreshold',
      EvaluationPeriods: 3,
      DatapointsToAlarm: 1,
    });
    dev.hasResourceProperties('AWS::AutoScaling::ScalingPolicy', {
      PolicyType: 'StepScaling',
      AdjustmentType: 'ChangeInCapacity',
      StepAdjustments: [
        { MetricIntervalLowerBound: 0, MetricIntervalUpperBound: 6, ScalingAdjustment: 1 },
        { MetricIntervalLowerBound: 6, MetricIntervalUpperBound: 18, ScalingAdjustment: 2 },
        { MetricIntervalLowerBound: 18, ScalingAdjustment: 4 },
      ],
    });
  });

  it('shrinks while half of the executors idle, to zero only when no chunk of either queue runs', () => {
    expect(value('Shrink', { there: 0 })).toBe(1);
    expect(value('Shrink', { there: 4 })).toBe(-1);
    expect(value('Shrink', { there: 4, runningExpress: 2 })).toBe(0.25);
    expect(value('Shrink', { there: 4, running: 2, runningExpress: 2 })).toBe(0.5);
    expect(value('Shrink', { there: 1, runningExpress: 1 })).toBe(1);
    expect(alarm('Shrink')).toMatchObject({
      Threshold: 0.5,
      ComparisonOperator: 'LessThanThreshold',
      EvaluationPeriods: 5,
      DatapointsToAlarm: 5,
    });
    dev.hasResourceProperties('AWS::AutoScaling::ScalingPolicy', {
      PolicyType: 'StepScaling',
      AdjustmentType: 'PercentChangeInCapacity',
      MinAdjustmentMagnitude: 1,
      StepAdjustments: Match.arrayWith([
        { MetricIntervalLowerBound: -1, MetricIntervalUpperBound: 0, ScalingAdjustment: -25 },
        { MetricIntervalUpperBound: -1, ScalingAdjustment: -100 },
      ]),
    });
  });

  it('keeps instances that have not started yet: chunks wait for them, and the alarm on capacity counts them', () => {
    expect(value('Shrink', { desired: 1, there: 0, waiting: 5 })).toBe(1);
    expect(value('Shrink', { desired: 4, there: 1, waiting: 5, running: 2 })).toBe(1);
  });
});

describe('image', () => {
  it('is built for each architecture from the repository and the requirements given', () => {
    const images = (text: string) => {
      const requirements = join(mkdtempSync(join(tmpdir(), 'cloudpar-test-')), 'requirements.txt');
      writeFileSync(requirements, text);
      const built = template({ env: 'dev', workerImage: undefined, requirements, pythons: '3.12' });
      return Object.values(built.findResources(TEMPLATE)).map(({ Properties }) =>
        JSON.stringify(Properties.LaunchTemplateData.UserData),
      );
    };
    const [one, two] = [images('numpy\n'), images('scipy\n')];
    const tag = (data: string) => /:([0-9a-f]{64})"/.exec(data)?.[1];
    expect(new Set([...one, ...two].map(tag)).size).toBe(4);
  });
});
