import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { only, template, text } from './deployment';
import { freshFolder } from './folder';
import { Graph } from './graph';

const CONTEXT = { env: 'dev', workerImage: '', imageBuild: 'codebuild', pythons: '3.12,3.13', python: '3.13' };
const dev = template(CONTEXT);
const graph = Graph.of(dev);

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
    const [repository] = graph.ids('AWS::ECR::Repository');
    expect(graph.references(Properties)).toContain(repository);
  });

  it('are built by roles whose policies are there before', () => {
    for (const id of graph.ids('Custom::CDKContainerImageBuild')) {
      const policies = graph.ids('AWS::IAM::Policy', ({ PolicyName }) =>
        /^(ContainerImageBuild|DeployTimeBuild)/.test(String(PolicyName)),
      );
      const [starts] = policies.filter((each) => each.startsWith('DeployTimeBuild'));
      expect([...graph.before(id)]).toContain(starts);
    }
  });

  it('leave neither images nor logs behind when the stack is deleted', () => {
    const { Properties, DeletionPolicy } = only(dev, 'AWS::ECR::Repository');
    expect([Properties['EmptyOnDelete'], DeletionPolicy]).toEqual([true, 'Delete']);
    const [log] = graph.ids('AWS::Logs::LogGroup').filter((id) => id.startsWith('FleetImageBuilder'));
    const [handler] = graph.ids('AWS::Lambda::Function').filter((id) => id.startsWith('DeployTimeBuild'));
    for (const id of [handler as string, ...graph.ids('AWS::CodeBuild::Project')]) {
      expect(graph.references(graph.properties(id))).toContain(log);
    }
  });

  it('do not exist where docker builds them or an image is given', () => {
    for (const context of [{ env: 'dev' }, { env: 'prod' }]) {
      template(context).resourceCountIs('AWS::CodeBuild::Project', 0);
      template(context).resourceCountIs('AWS::ECR::Repository', 0);
    }
  });

  it('are named in the environment of the host', () => {
    const { Properties } = only(dev, 'AWS::EC2::LaunchTemplate', 'FleetArm64');
    const { UserData } = Properties['LaunchTemplateData'] as { UserData: unknown };
    expect(text(UserData)).toMatch(/CLOUDPAR_IMAGE=<\?>\.dkr\.ecr\./);
  });
});
