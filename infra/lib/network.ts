import { Annotations, Fn } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import { NagSuppressions } from 'cdk-nag';
import type { Construct } from 'constructs';
import type { Settings } from './settings';

/** The VPC of the workers, and the subnets in which their instances start. */
export interface Network {
  readonly vpc: ec2.IVpc;
  readonly subnets: ec2.SubnetSelection;
}

/** Returns the network that the settings name; without these settings, makes one for the stack. */
export function network(scope: Construct, settings: Settings): Network {
  return settings.vpcId ? existing(scope, settings.vpcId, settings.subnetIds) : own(scope, settings);
}

/** Makes public subnets, since a NAT gateway costs 33 USD a month. The security group refuses all incoming traffic. */
function own(scope: Construct, settings: Settings): Network {
  const vpc = new ec2.Vpc(scope, 'Network', {
    ipAddresses: ec2.IpAddresses.cidr('10.71.0.0/16'),
    availabilityZones: Array.from({ length: settings.zones }, (_, index) => Fn.select(index, Fn.getAzs())),
    natGateways: 0,
    subnetConfiguration: [{ name: 'Workers', subnetType: ec2.SubnetType.PUBLIC, cidrMask: 20 }],
    // The CDK would need a Lambda function to empty the default security group, which no instance uses.
    restrictDefaultSecurityGroup: false,
    gatewayEndpoints: {
      S3: { service: ec2.GatewayVpcEndpointAwsService.S3 },
      DynamoDb: { service: ec2.GatewayVpcEndpointAwsService.DYNAMODB },
    },
  });
  NagSuppressions.addResourceSuppressions(vpc, [
    { id: 'AwsSolutions-VPC7', reason: 'Flow logs cost by traffic; no traffic is accepted, and only HTTPS is sent.' },
  ]);
  return { vpc, subnets: { subnetType: ec2.SubnetType.PUBLIC } };
}

/**
 * Returns an existing network. The ids are all that the stack needs, so the CDK looks up nothing in the AWS account:
 * the template depends on the settings alone. `cloudpar deploy` checks the subnets and their routes first.
 */
function existing(scope: Construct, vpcId: string, subnetIds: readonly string[]): Network {
  // The CDK requires a zone, and no resource uses it: the group has the zones of its subnets.
  const vpc = ec2.Vpc.fromVpcAttributes(scope, 'Network', { vpcId, availabilityZones: [Fn.select(0, Fn.getAzs())] });
  const subnets = subnetIds.map((subnetId) => {
    const subnet = ec2.Subnet.fromSubnetId(scope, subnetId, subnetId);
    // The CDK warns that it does not know the subnet's route table, which nothing reads. A warning would make `cdk
    // synth --strict` fail.
    Annotations.of(subnet).acknowledgeWarning('@aws-cdk/aws-ec2:noSubnetRouteTableId');
    return subnet;
  });
  return { vpc, subnets: { subnets } };
}
