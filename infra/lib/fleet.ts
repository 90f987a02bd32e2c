import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as autoscaling from 'aws-cdk-lib/aws-autoscaling';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as logs from 'aws-cdk-lib/aws-logs';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import { FAMILIES } from './environments';
import { network } from './network';
import type { Architecture, Settings } from './settings';
import type { Storage } from './storage';
import { userData } from './user-data';
import { type WorkerImage, workerImages } from './worker-image';

export const HOOK = 'drain';
/** The hook's timeout. The host (host/watch.sh) renews the hook every minute while the worker drains. */
const HOOK_TIMEOUT = Duration.minutes(5);
const WARM_UP = Duration.minutes(2);
/**
 * Parameters whose values name the newest machine image of Amazon Linux 2023, with the kernel that AWS makes the
 * default (since June 2026 the newest kernel with long-term support). CloudFormation reads them at each deployment.
 * With `resolve:ssm:` in a launch template, they would be read at each launch, but AWS's guide excludes this for a
 * group with a mixed instances policy (docs/adr/0112-machine-images.md).
 */
const IMAGE_PARAMETERS: Record<Architecture, string> = {
  arm64: '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64',
  x86_64: '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64',
};

export interface FleetProps {
  readonly settings: Settings;
  readonly storage: Storage;
  readonly endpoint: string;
  readonly groupName: string;
}

/**
 * The workers: an Auto Scaling group, of spot instances except the first `onDemandBase`. It has no instance while there
 * are no tasks. It has no scaling policy: the master raises the group's size, and a host without work ends itself and
 * lowers the size by one (host/watch.sh).
 */
export class Fleet extends Construct {
  readonly group: autoscaling.AutoScalingGroup;
  readonly role: iam.Role;
  readonly log: logs.LogGroup;
  readonly images: ReadonlyMap<Architecture, WorkerImage>;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: FleetProps,
  ) {
    super(scope, id);
    const { settings, groupName } = props;
    const { vpc, subnets } = network(this, settings);
    this.images = workerImages(this, settings);
    this.log = new logs.LogGroup(this, 'WorkerLog', {
      retention: settings.logDays,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.role = new iam.Role(this, 'Role', {
      assumedBy: new iam.ServicePrincipal('ec2.amazonaws.com'),
      description: `Cloud Parallelizer (${settings.env}): what a worker's host may do; its container may do nothing`,
    });
    const templates = this.templates(vpc);
    const offered = (family: string) => settings.families.includes(family);
    const overrides = settings.architectures.flatMap((architecture) =>
      FAMILIES[architecture].filter(offered).map((family) => ({
        instanceType: new ec2.InstanceType(`${family}.${settings.instanceSize}`),
        launchTemplate: templates.get(architecture) as ec2.LaunchTemplate,
      })),
    );
    const [first] = templates.values();
    this.group = new autoscaling.AutoScalingGroup(this, 'Group', {
      autoScalingGroupName: groupName,
      vpc,
      vpcSubnets: subnets,
      minCapacity: 0,
      maxCapacity: settings.maxInstances,
      mixedInstancesPolicy: {
        launchTemplate: first as ec2.LaunchTemplate,
        launchTemplateOverrides: overrides,
        instancesDistribution: {
          onDemandBaseCapacity: settings.onDemandBase,
          onDemandPercentageAboveBaseCapacity: 0,
          onDemandAllocationStrategy: autoscaling.OnDemandAllocationStrategy.LOWEST_PRICE,
          spotAllocationStrategy: autoscaling.SpotAllocationStrategy.PRICE_CAPACITY_OPTIMIZED,
        },
      },
      capacityRebalance: true,
      defaultInstanceWarmup: WARM_UP,
      healthChecks: autoscaling.HealthChecks.ec2({ gracePeriod: WARM_UP }),
      groupMetrics: [
        new autoscaling.GroupMetrics(
          autoscaling.GroupMetric.DESIRED_CAPACITY,
          autoscaling.GroupMetric.IN_SERVICE_INSTANCES,
          autoscaling.GroupMetric.PENDING_INSTANCES,
        ),
      ],
      // There is no update policy: with one, CloudFormation would wait until all instances have drained and new ones
      // have come. After the update `cloudpar deploy` has the group replace its instances, and does not wait.
    });
    // CloudFormation deletes resources in the reverse order of their dependencies. Without this one, it could delete
    // the routes first: AWS would not detach the gateway while instances with public addresses run, and `cloudpar
    // destroy` would fail.
    this.group.node.addDependency(vpc);
    this.group.addLifecycleHook('Drain', {
      lifecycleHookName: HOOK,
      lifecycleTransition: autoscaling.LifecycleTransition.INSTANCE_TERMINATING,
      heartbeatTimeout: HOOK_TIMEOUT,
      defaultResult: autoscaling.DefaultResult.CONTINUE,
    });
    this.suppress();
  }

  private templates(vpc: ec2.IVpc): Map<Architecture, ec2.LaunchTemplate> {
    const { settings, storage, endpoint, groupName } = this.props;
    const securityGroup = new ec2.SecurityGroup(this, 'WorkerTraffic', {
      vpc,
      description: 'Cloud Parallelizer workers: nothing in, HTTPS out',
      allowAllOutbound: false,
    });
    securityGroup.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), 'HTTPS: the master, S3, images, packages');
    const templates = new Map<Architecture, ec2.LaunchTemplate>();
    for (const [architecture, image] of this.images) {
      const template = new ec2.LaunchTemplate(this, architecture === 'arm64' ? 'Arm64' : 'X86', {
        machineImage: ec2.MachineImage.fromSsmParameter(IMAGE_PARAMETERS[architecture]),
        role: this.role,
        securityGroup,
        requireImdsv2: true,
        httpEndpoint: true,
        // The metadata service is two hops away from the container, which therefore cannot read the host's credentials.
        httpPutResponseHopLimit: 1,
        instanceMetadataTags: false,
        blockDevices: [
          {
            deviceName: '/dev/xvda',
            volume: ec2.BlockDeviceVolume.ebs(settings.volumeGib, {
              volumeType: ec2.EbsDeviceVolumeType.GP3,
              encrypted: true,
              deleteOnTermination: true,
            }),
          },
        ],
        userData: userData(
          {
            CLOUDPAR_REGION: Stack.of(this).region,
            CLOUDPAR_ENDPOINT: endpoint,
            CLOUDPAR_TOKEN_SECRET: storage.workerToken.secretArn,
            CLOUDPAR_IMAGE: image.uri,
            CLOUDPAR_PYTHON: settings.python,
            CLOUDPAR_LOG_GROUP: this.log.logGroupName,
            CLOUDPAR_GROUP: groupName,
            CLOUDPAR_HOOK: HOOK,
            CLOUDPAR_IDLE_S: String(Duration.minutes(settings.idleMinutes).toSeconds()),
          },
          Duration.minutes(settings.drainMinutes).toSeconds(),
        ),
      });
      templates.set(architecture, template);
    }
    return templates;
  }

  private suppress(): void {
    NagSuppressions.addResourceSuppressions(this.group, [
      {
        id: 'CdkNagValidationFailure',
        reason:
          'AwsSolutions-EC26 does not read launch templates; test/fleet.test.ts checks that volumes are encrypted.',
      },
      {
        id: 'AwsSolutions-AS3',
        reason: 'The master and the hosts change its size; the alarm on the timer says when no instance starts.',
      },
    ]);
  }
}
