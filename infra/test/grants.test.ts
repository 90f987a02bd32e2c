import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { DEPLOYMENTS, only, template, text } from './deployment';

interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: unknown;
  Condition?: unknown;
}

/** A statement of a resource's own policy. */
interface PublicStatement extends Statement {
  Condition?: { ArnLike?: Record<string, unknown> };
}

const list = <T>(value: T | T[]): T[] => (Array.isArray(value) ? value : [value]);
const names = (resource: unknown) =>
  list(resource).map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
const dev = template({ env: 'dev', workerImage: '123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/worker:1' });
const deployments = Object.entries(DEPLOYMENTS).map(([name, context]) => [name, template(context)] as const);
const all = [['dev with an image of ECR', dev] as const, ...deployments];

const FUNCTIONS = ['Account', 'Client', 'Timer', 'Worker'];
const GRANTS = [...FUNCTIONS, 'Fleet'];
/** The roles of the library that builds images; test/image-builder.test.ts has the tests of their permissions. */
const OF_BUILDS = /^(ContainerImageBuild|DeployTimeBuild)/;

function statements(from: Template, id: string): Statement[] {
  const { Properties } = only(from, 'AWS::IAM::Policy', `Grants${id}`);
  return (Properties['PolicyDocument'] as { Statement: Statement[] }).Statement;
}

/** Returns the actions that hosts may take on resources whose ARN contains `part`. */
function ofHosts(part: string): string[] {
  const found = statements(dev, 'Fleet').filter(({ Resource }) => names(Resource).some((name) => name.includes(part)));
  return found.flatMap(({ Action }) => list(Action)).sort();
}

const HOST = join(import.meta.dirname, '../lib/host');

/** The actions that programs on a host need, by the text with which a script calls the program. */
const PROGRAMS: Record<string, string[]> = {
  'aws ecr get-login-password': ['ecr:GetAuthorizationToken'],
  'docker pull': ['ecr:BatchCheckLayerAvailability', 'ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
  '--log-driver awslogs': ['logs:CreateLogStream', 'logs:PutLogEvents'],
};

/** What the agent of Systems Manager calls, which the machine image starts. */
const AGENT = [
  'ssm:UpdateInstanceInformation',
  'ssmmessages:CreateControlChannel',
  'ssmmessages:CreateDataChannel',
  'ssmmessages:OpenControlChannel',
  'ssmmessages:OpenDataChannel',
];

/** Whether hosts pull their image from a registry of AWS, which prepare.sh recognizes by the image's name. */
function pullsFromAws(from: Template): boolean {
  const { LaunchTemplateData } = only(from, 'AWS::EC2::LaunchTemplate', 'FleetArm64').Properties;
  return /CLOUDPAR_IMAGE=(?:(?!CLOUDPAR_PYTHON=).)*\.dkr\.ecr\./.test(JSON.stringify(LaunchTemplateData));
}

/** Returns the actions that the calls in the scripts of a host need. */
function callsOfHosts(from: Template): string[] {
  const scripts = readdirSync(HOST)
    .map((name) => readFileSync(join(HOST, name), 'utf8'))
    .join('\n');
  // `lifecycle` is a function of watch.sh, whose argument is the call.
  const calls = [...scripts.matchAll(/\baws ([a-z]+) ([a-z]+-[a-z-]+)|\blifecycle ([a-z]+-[a-z-]+)/g)]
    .filter(([call]) => !(call in PROGRAMS))
    .map(([, service = 'autoscaling', call, ofHook]) => `${service}:${pascalCase(call ?? ofHook ?? '')}`);
  const others = Object.entries(PROGRAMS).filter(([text]) => scripts.includes(text));
  const needed = new Set([...calls, ...others.flatMap(([, actions]) => actions), ...AGENT]);
  return [...needed].filter((action) => pullsFromAws(from) || !action.startsWith('ecr:')).sort();
}

function pascalCase(call: string): string {
  return call.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * tests/aws/handlers/test_grants.py runs each function, to check that it has the permissions for its calls and no
 * others.
 */
describe('grants', () => {
  it.each(all)('are all in grants.ts: %s', (_name, from) => {
    const policies = Object.keys(from.findResources('AWS::IAM::Policy')).filter((id) => !OF_BUILDS.test(id));
    expect(policies.map((id) => id.replace(/[0-9A-F]{8}$/, '')).sort()).toEqual(
      GRANTS.map((name) => `Grants${name}`).sort(),
    );
    for (const [id, { Properties }] of Object.entries(from.findResources('AWS::IAM::Role'))) {
      expect(Properties).not.toHaveProperty('Policies');
      expect(OF_BUILDS.test(id) ? {} : Properties).not.toHaveProperty('ManagedPolicyArns');
    }
  });

  it.each(deployments)('of functions are the same, whatever the settings: %s', (_name, from) => {
    const ofFunctions = (each: Template) => FUNCTIONS.map((id) => statements(each, id));
    const inDev = JSON.stringify(ofFunctions(from), null, 1).replaceAll('prod', 'dev');
    expect(inDev).toBe(JSON.stringify(ofFunctions(template(DEPLOYMENTS.dev)), null, 1));
  });

  it('"*" is used only for calls that take no resource; no action is a wildcard', () => {
    const everywhere = all.flatMap(([, from]) => GRANTS.flatMap((id) => statements(from, id)));
    const unbound = everywhere
      .filter(({ Resource }) => names(Resource).includes('*'))
      .flatMap(({ Action }) => list(Action));
    expect([...new Set(unbound)].sort()).toEqual([
      'autoscaling:DescribeAutoScalingGroups',
      'autoscaling:DescribeScalingActivities',
      'ecr:GetAuthorizationToken',
      'ssmmessages:CreateControlChannel',
      'ssmmessages:CreateDataChannel',
      'ssmmessages:OpenControlChannel',
      'ssmmessages:OpenDataChannel',
      'xray:PutTelemetryRecords',
      'xray:PutTraceSegments',
    ]);
    expect(everywhere.flatMap(({ Action }) => list(Action)).filter((action) => action.includes('*'))).toEqual([]);
    expect(everywhere.every(({ Effect }) => Effect === 'Allow')).toBe(true);
  });

  it.each(all)('a host may do what its scripts and programs do, and nothing else: %s', (_name, from) => {
    const granted = statements(from, 'Fleet').flatMap(({ Action }) => list(Action));
    expect(granted.sort()).toEqual(callsOfHosts(from));
    expect(granted).toContain('autoscaling:CompleteLifecycleAction');
  });

  it('hosts pull images from AWS if the image is there', () => {
    expect(all.filter(([, from]) => pullsFromAws(from)).map(([name]) => name)).toEqual([
      'dev with an image of ECR',
      'dev with images that docker builds',
      'dev with images that CodeBuild builds',
    ]);
  });

  it('a host reads no parameter of Systems Manager', () => {
    const actions = statements(dev, 'Fleet').flatMap(({ Action }) => list(Action));
    expect(actions.filter((action) => action.startsWith('ssm:'))).toEqual(['ssm:UpdateInstanceInformation']);
  });

  it('a host reads the worker token, and neither tables nor queues nor payloads; of images only its own', () => {
    expect(['StorageWorkerToken', 'StoragePackages', 'Queue', 'StorageBlobs'].map(ofHosts)).toEqual([
      ['secretsmanager:GetSecretValue'],
      [],
      [],
      [],
    ]);
    expect(ofHosts('autoScalingGroupName/Cloudpar-dev-workers')).toEqual([
      'autoscaling:CompleteLifecycleAction',
      'autoscaling:RecordLifecycleActionHeartbeat',
      'autoscaling:TerminateInstanceInAutoScalingGroup',
    ]);
    const [pull] = statements(dev, 'Fleet').filter(({ Action }) => list(Action).includes('ecr:BatchGetImage'));
    expect(text(pull?.Resource)).toBe('arn:<?>:ecr:eu-west-1:123456789012:repository/team/worker');
    expect(JSON.stringify(statements(template({ env: 'dev' }), 'Fleet'))).not.toContain('ecr:');
  });

  it('alarms of this account publish to the topic, if there is one', () => {
    const withAlarms = template({ env: 'dev', alarmEmail: 'operator@example.com' });
    const { Properties } = only(withAlarms, 'AWS::SNS::TopicPolicy');
    const { Statement } = Properties['PolicyDocument'] as { Statement: PublicStatement[] };
    const allowed = Statement.filter(({ Effect }) => Effect === 'Allow');
    expect(allowed).toMatchObject([{ Action: 'sns:Publish', Principal: { Service: 'cloudwatch.amazonaws.com' } }]);
    const from = allowed.map(({ Condition }) => text(Condition?.ArnLike?.['aws:SourceArn']));
    expect(from).toEqual(['arn:<?>:cloudwatch:<?>:<?>:alarm:*']);
    dev.resourceCountIs('AWS::SNS::TopicPolicy', 0);
  });

  it.each(all)('functions are called by the API and the schedule only: %s', (_name, from) => {
    const permissions = Object.values(from.findResources('AWS::Lambda::Permission')).map(
      ({ Properties }) => Properties,
    );
    expect(permissions.map(({ Principal }) => Principal).sort()).toEqual([
      'apigateway.amazonaws.com',
      'apigateway.amazonaws.com',
      'events.amazonaws.com',
    ]);
    expect(permissions.every(({ SourceArn }) => SourceArn !== undefined)).toBe(true);
  });
});
