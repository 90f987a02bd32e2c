import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { only, template, text } from './deployment';
import { freshFolder } from './folder';

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
    expect(used).toHaveLength(7);
    expect(used).toContainEqual(['c7g.large', 'FleetArm64']);
    expect(used).toContainEqual(['c7i.large', 'FleetX86']);
    expect(used.every(([type, name]) => /g\./.test(type as string) === (name === 'FleetArm64'))).toBe(true);
  });

  it('leaves out families that a region lacks', () => {
    const families = 'c7g,c6g,c7i';
    const group = only(template({ env: 'dev', families }), GROUP);
    const { LaunchTemplate } = group.Properties['MixedInstancesPolicy'] as Policy;
    expect(LaunchTemplate.Overrides.map(({ InstanceType }) => InstanceType)).toEqual([
      'c7g.large',
      'c6g.large',
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
  it("is the master's and the hosts': no alarm and no policy of the group changes its size", () => {
    dev.resourceCountIs('AWS::AutoScaling::ScalingPolicy', 0);
    const alarms = Object.values(dev.findResources('AWS::CloudWatch::Alarm'));
    expect(alarms.filter(({ Properties }) => Properties.AlarmActions !== undefined)).toEqual([]);
  });

  it.each(['Client', 'Timer'])('the function %s knows what an instance offers', (id) => {
    const large = template({ env: 'prod', instanceSize: '2xlarge', backlogPerExecutor: '5' });
    const { Variables } = only(large, 'AWS::Lambda::Function', `Services${id}`).Properties['Environment'] as {
      Variables: Record<string, string>;
    };
    expect(JSON.parse(Variables['CLOUDPAR_FLEET_HOST'] as string)).toEqual({ executors: 8, chunks_per_executor: 5 });
  });
});

describe('image', () => {
  it('is built for each architecture from the repository and the requirements given', () => {
    const images = (text: string) => {
      const requirements = join(freshFolder(), 'requirements.txt');
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
