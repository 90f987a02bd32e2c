import { RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import * as codebuild from 'aws-cdk-lib/aws-codebuild';
import * as ecr from 'aws-cdk-lib/aws-ecr';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type { Asset } from 'aws-cdk-lib/aws-s3-assets';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import { ContainerImageBuild } from 'deploy-time-build';
import type { Architecture, Settings } from './settings';
import type { ImageBuild, WorkerImage } from './worker-image';

/** How many images the repository keeps: those of the running hosts, and of earlier deployments. */
const KEPT = 10;

/** Builds the worker's images with AWS CodeBuild while the stack is deployed, for machines without Docker. */
export class ImageBuilder extends Construct {
  private readonly repository: ecr.Repository;
  private readonly log: logs.LogGroup;

  constructor(scope: Construct, id: string, settings: Settings) {
    super(scope, id);
    this.repository = new ecr.Repository(this, 'Repository', {
      imageScanOnPush: true,
      imageTagMutability: ecr.TagMutability.IMMUTABLE,
      removalPolicy: RemovalPolicy.DESTROY,
      emptyOnDelete: true,
      lifecycleRules: [{ maxImageCount: KEPT }],
    });
    this.log = new logs.LogGroup(this, 'Log', { retention: settings.logDays, removalPolicy: RemovalPolicy.DESTROY });
  }

  /** Builds the image of an architecture. */
  build(architecture: Architecture, { pythons, ...options }: ImageBuild): WorkerImage {
    const before = new Set(Stack.of(this).node.children);
    const image = new ContainerImageBuild(this, architecture === 'arm64' ? 'Arm64' : 'X86', {
      ...options,
      // The construct writes the arguments into a shell's command as they are, so the list needs quotes.
      buildArgs: { PYTHONS: `"${pythons.join(' ')}"` },
      repository: this.repository,
      // The construct appends a text that differs for each build.
      tagPrefix: [architecture, ...pythons, ''].join('-'),
    });
    const source = image.node.findChild('Source') as Asset;
    // The construct adds its function and its projects to the stack, not to its own tree: all builds share them.
    for (const shared of Stack.of(this).node.children.filter((each) => !before.has(each))) {
      this.adopt(shared, source);
      Tags.of(shared).add('cloudpar:part', 'fleet'); // stack.ts tags only what is in the fleet's tree
      suppress(shared);
    }
    suppress(image);
    return { uri: image.imageUri, repositoryArn: this.repository.repositoryArn };
  }

  /**
   * Makes a function or a project log into this builder's log group, which is deleted with the stack, and leaves its
   * role only the permissions that it needs. A build installs the packages of the requirements file, which run code of
   * their own, and the library would let the build read the files of all CDK apps of the AWS account.
   */
  private adopt(shared: unknown, source: Asset): void {
    if (shared instanceof lambda.Function) {
      (shared.node.defaultChild as lambda.CfnFunction).loggingConfig = { logGroup: this.log.logGroupName };
      // AWS's managed policy permits logs:CreateLogGroup. Lambda delivers the last lines late, and would then make the
      // deleted group again, outside the stack and without a retention period.
      (shared.role?.node.defaultChild as iam.CfnRole).managedPolicyArns = undefined;
      this.log.grantWrite(shared);
    } else if (shared instanceof codebuild.Project) {
      const cloudWatchLogs = { status: 'ENABLED', groupName: this.log.logGroupName };
      (shared.node.defaultChild as codebuild.CfnProject).logsConfig = { cloudWatchLogs };
      const policy = shared.role?.node.findChild('DefaultPolicy').node.defaultChild as iam.CfnPolicy;
      policy.policyDocument = this.building(source);
    }
  }

  /** The permissions of a build: to read its source, to push its image, and to write its log. */
  private building(source: Asset): iam.PolicyDocument {
    const allow = (actions: string[], resource: string) => new iam.PolicyStatement({ actions, resources: [resource] });
    return new iam.PolicyDocument({
      statements: [
        allow(['s3:GetObject'], source.bucket.arnForObjects(source.s3ObjectKey)),
        allow(['ecr:GetAuthorizationToken'], '*'),
        allow(
          [
            'ecr:BatchCheckLayerAvailability',
            'ecr:BatchGetImage',
            'ecr:CompleteLayerUpload',
            'ecr:InitiateLayerUpload',
            'ecr:PutImage',
            'ecr:UploadLayerPart',
          ],
          this.repository.repositoryArn,
        ),
        allow(['logs:CreateLogStream', 'logs:PutLogEvents'], this.log.logGroupArn),
      ],
    });
  }
}

function suppress(construct: Construct): void {
  NagSuppressions.addResourceSuppressions(
    construct,
    [
      { id: 'AwsSolutions-IAM4', reason: 'It pulls public images.' },
      { id: 'AwsSolutions-IAM5', reason: 'The login to the container registry takes no resource.' },
      { id: 'AwsSolutions-L1', reason: 'The library determines the runtime; it runs during a deployment only.' },
      { id: 'AwsSolutions-CB3', reason: 'Docker within a build needs it; nothing but worker/Dockerfile is built.' },
      { id: 'AwsSolutions-CB4', reason: 'A build leaves no artifact but its image; a key would cost 1 USD a month.' },
      { id: 'Serverless-LambdaDLQ', reason: 'CloudFormation waits for its answer, and fails without one.' },
      { id: 'Serverless-LambdaDefaultMemorySize', reason: 'It makes one call.' },
      { id: 'Serverless-LambdaLatestVersion', reason: 'Same as AwsSolutions-L1.' },
      { id: 'Serverless-LambdaTracing', reason: 'It runs during a deployment only.' },
    ],
    true,
  );
}
