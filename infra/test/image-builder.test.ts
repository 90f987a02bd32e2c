import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEPLOYMENTS, only, template, text } from './deployment';
import { freshFolder } from './folder';
import { Graph } from './graph';

const dev = template(DEPLOYMENTS['dev with images that CodeBuild builds']);
const others = [DEPLOYMENTS.dev, DEPLOYMENTS.prod, DEPLOYMENTS['dev with images that docker builds']].map(template);
const graph = Graph.of(dev);
const [repository] = graph.ids('AWS::ECR::Repository') as [string];
const [log] = graph.ids('AWS::Logs::LogGroup').filter((id) => id.startsWith('FleetImageBuilder')) as [string];
const [handler] = graph.ids('AWS::Lambda::Function').filter((id) => id.startsWith('DeployTimeBuild')) as [string];

function builds(): Record<string, unknown>[] {
  return Object.values(dev.findResources('Custom::CDKContainerImageBuild')).map(({ Properties }) => Properties);
}

/** Returns the arguments that docker gets from a command of a build. */
function dockerArguments(command: string): string[] {
  const folder = freshFolder();
  writeFileSync(join(folder, 'docker'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 });
  const environment = { PATH: `${folder}:${process.env['PATH']}`, buildCommand: command };
  return execFileSync('bash', ['-c', 'eval "$buildCommand"'], { env: environment, encoding: 'utf8' }).split('\n');
}

/** The actions that the commands of a build need. AWS's documentation lists those of a push. */
const COMMANDS: Record<string, string[]> = {
  'aws s3 cp': ['s3:GetObject'],
  'aws ecr get-login-password': ['ecr:GetAuthorizationToken'],
  'aws ecr-public get-login-password': [], // a managed policy has them
  'docker push': [
    'ecr:BatchCheckLayerAvailability',
    'ecr:BatchGetImage',
    'ecr:CompleteLayerUpload',
    'ecr:InitiateLayerUpload',
    'ecr:PutImage',
    'ecr:UploadLayerPart',
  ],
};
const LOGS = ['logs:CreateLogStream', 'logs:PutLogEvents'];

/** Returns the actions that the policies of a role allow, each with its resource as JSON. */
function allowed(role: string): [string, string][] {
  const documents = graph
    .ids('AWS::IAM::Policy', ({ Roles }) => graph.references(Roles).includes(role))
    .map((id) => graph.properties(id)['PolicyDocument'] as { Statement: Record<'Action' | 'Resource', unknown>[] });
  return documents.flatMap(({ Statement }) =>
    Statement.flatMap(({ Action, Resource }) =>
      [Action].flat().map((action): [string, string] => [action as string, JSON.stringify(Resource)]),
    ),
  );
}

function roleOf(id: string): string {
  const { Role, ServiceRole } = graph.properties(id);
  return graph.references(Role ?? ServiceRole)[0] as string;
}

describe('images that CodeBuild builds', () => {
  it('are one for each architecture, from worker/Dockerfile, with the versions of Python', () => {
    const commands = builds().map(({ buildCommand }) => dockerArguments(String(buildCommand)));
    expect(commands.map((words) => words[words.indexOf('--platform') + 1])).toEqual(['linux/arm64', 'linux/amd64']);
    for (const words of commands) {
      expect(words[words.indexOf('--file') + 1]).toBe('worker/Dockerfile');
      expect(words[words.indexOf('--build-arg') + 1]).toBe('PYTHONS=3.12 3.13');
    }
  });

  it('have tags of their own, by architecture and versions of Python', () => {
    expect(builds().map(({ tagPrefix }) => tagPrefix)).toEqual(['arm64-3.12-3.13-', 'x86_64-3.12-3.13-']);
  });

  it('are there before the instances that pull them, which may pull them', () => {
    const [group] = graph.ids('AWS::AutoScaling::AutoScalingGroup');
    const before = [...graph.before(group as string)];
    expect(before).toEqual(expect.arrayContaining(graph.ids('Custom::CDKContainerImageBuild')));
    const { Properties } = only(dev, 'AWS::IAM::Policy', 'GrantsFleet');
    expect(graph.references(Properties)).toContain(repository);
  });

  it.each(graph.ids('AWS::CodeBuild::Project'))('are built with the permissions of the commands: %s', (project) => {
    const { BuildSpec } = graph.properties(project)['Source'] as { BuildSpec: string };
    const commands = BuildSpec.match(/\b(aws [a-z0-9-]+ [a-z-]+|docker (pull|push))/g) ?? [];
    expect(commands.toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
    const granted = allowed(roleOf(project));
    expect(granted.map(([action]) => action).toSorted()).toEqual(
      [...Object.values(COMMANDS).flat(), ...LOGS].toSorted(),
    );

    const [source] = builds().map(({ sourceS3Url }) => (sourceS3Url as { 'Fn::Sub': string })['Fn::Sub']) as [string];
    const [bucket, key] = source.replace('s3://', '').split('/');
    const arns = {
      s3: `{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":s3:::",{"Fn::Sub":"${bucket}"},"/${key}"]]}`,
      ecr: `{"Fn::GetAtt":["${repository}","Arn"]}`,
      logs: `{"Fn::GetAtt":["${log}","Arn"]}`,
    };
    for (const [action, resource] of granted) {
      const arn = action === 'ecr:GetAuthorizationToken' ? '"*"' : arns[action.split(':')[0] as keyof typeof arns];
      expect(resource).toBe(arn);
    }
    const managed = graph.properties(roleOf(project))['ManagedPolicyArns'] as unknown[];
    expect(managed.map(text)).toEqual(['arn:<?>:iam::aws:policy/AmazonElasticContainerRegistryPublicReadOnly']);
  });

  it('are started by a function that may start the builds, and cannot make its log group again', () => {
    const role = roleOf(handler);
    expect([...new Set(allowed(role).map(([action]) => action))].toSorted()).toEqual(['codebuild:StartBuild', ...LOGS]);
    expect(graph.properties(role)).not.toHaveProperty('ManagedPolicyArns');
  });

  it('cost what their tags say: every resource with tags names its part', () => {
    const tagged = Object.entries(graph.resources).filter(([, { Properties }]) => Array.isArray(Properties['Tags']));
    const bare = tagged.filter(([, { Properties }]) => !JSON.stringify(Properties['Tags']).includes('"cloudpar:part"'));
    expect(bare.map(([id]) => id)).toEqual([]);
  });

  it('leave neither images nor logs behind when the stack is deleted', () => {
    const { Properties, DeletionPolicy } = only(dev, 'AWS::ECR::Repository');
    expect([Properties['EmptyOnDelete'], DeletionPolicy]).toEqual([true, 'Delete']);
    for (const id of [handler, ...graph.ids('AWS::CodeBuild::Project')]) {
      expect(graph.references(graph.properties(id))).toContain(log);
    }
  });

  it('do not exist where docker builds them or an image is given', () => {
    for (const other of others) {
      other.resourceCountIs('AWS::CodeBuild::Project', 0);
      other.resourceCountIs('AWS::ECR::Repository', 0);
    }
  });

  it('are named in the environment of the host', () => {
    const { Properties } = only(dev, 'AWS::EC2::LaunchTemplate', 'FleetArm64');
    const { UserData } = Properties['LaunchTemplateData'] as { UserData: unknown };
    expect(text(UserData)).toMatch(/CLOUDPAR_IMAGE=<\?>\.dkr\.ecr\./);
  });
});
