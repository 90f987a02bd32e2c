import { describe, expect, it } from 'vitest';
import { only, template } from './deployment';

const SUBNETS = ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'];
const theirs = template({ env: 'prod', vpcId: 'vpc-0123456789abcdef0', subnetIds: SUBNETS.join(', ') });

describe('an existing network', () => {
  it('gets the instances and their security group, and the stack makes none', () => {
    expect(only(theirs, 'AWS::AutoScaling::AutoScalingGroup').Properties['VPCZoneIdentifier']).toEqual(SUBNETS);
    expect(only(theirs, 'AWS::EC2::SecurityGroup').Properties['VpcId']).toBe('vpc-0123456789abcdef0');
    const made = Object.values(theirs.toJSON()['Resources'] as Record<string, { Type: string }>).map(
      (each) => each.Type,
    );
    expect(made.filter((type) => type.startsWith('AWS::EC2::')).toSorted()).toEqual([
      'AWS::EC2::LaunchTemplate',
      'AWS::EC2::LaunchTemplate',
      'AWS::EC2::SecurityGroup',
    ]);
  });

  it('still lets nothing in, and only HTTPS out', () => {
    const { Properties } = only(theirs, 'AWS::EC2::SecurityGroup');
    expect(Properties).not.toHaveProperty('SecurityGroupIngress');
    expect(Properties['SecurityGroupEgress']).toEqual([expect.objectContaining({ FromPort: 443, ToPort: 443 })]);
  });

  it('needs no look-up: nothing of the template depends on the AWS account', () => {
    const text = JSON.stringify(theirs.toJSON());
    expect(text).not.toContain('12345678-dummy');
    expect(text).not.toContain('Fn::GetAZs');
  });
});

describe("the stack's own network", () => {
  it('keeps its name in the template, since another one would replace the network', () => {
    const own = template({ env: 'dev' });
    const [vpc] = Object.keys(own.findResources('AWS::EC2::VPC'));
    expect(vpc).toMatch(/^FleetNetwork[0-9A-F]{8}$/);
  });
});
