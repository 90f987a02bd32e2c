import { describe, expect, it } from 'vitest';
import { readSettings, SettingsError } from '../lib/settings';
import type { Context } from './deployment';

const read = (context: Context) => readSettings((name) => context[name], Object.keys(context));

describe('settings', () => {
  it.each(['dev', 'staging', 'prod'])('%s has all of them', (env) => {
    expect(read({ env })).toMatchObject({
      env,
      maxInstances: 4,
      onDemandBase: 0,
      dashboard: false,
      reservedConcurrency: 0,
    });
  });

  it('retains the data of prod, and of no other environment', () => {
    expect(['dev', 'staging', 'prod'].map((env) => read({ env }).retain)).toEqual([false, false, true]);
    expect(['dev', 'staging', 'prod'].map((env) => read({ env }).recovery)).toEqual([false, false, true]);
  });

  it('takes text, as the command line gives it, and typed values', () => {
    const text = read({
      env: 'dev',
      logDays: '30',
      maxInstances: '8',
      dashboard: 'true',
      pythons: '3.12, 3.13',
      architectures: 'arm64',
    });
    expect(text).toMatchObject({
      logDays: 30,
      maxInstances: 8,
      dashboard: true,
      pythons: ['3.12', '3.13'],
      architectures: ['arm64'],
    });
    expect(read({ env: 'dev', maxInstances: 8, dashboard: true })).toMatchObject({ maxInstances: 8, dashboard: true });
  });

  it("leaves the CDK's own context alone", () => {
    expect(read({ env: 'dev', '@aws-cdk/core:some': true, 'aws:cdk:some': true, 'some-flag': 1 }).env).toBe('dev');
  });

  it('runs the agent on a version that the image has', () => {
    expect(read({ env: 'dev' }).python).toBe('3.13');
    expect(read({ env: 'dev', pythons: '3.11,3.12' }).python).toBe('3.12');
  });

  it('records what was given as text, without what belongs to one machine, region or call', () => {
    const given = {
      env: 'dev',
      bundle: 'b',
      unavailableFamilies: 'c8g',
      unset: 'zones',
      maxInstances: 8,
      dashboard: true,
    };
    expect(read(given).recorded).toEqual({ dashboard: 'true', maxInstances: '8' });
    expect(read({ env: 'dev', '@aws-cdk/core:some': true }).recorded).toEqual({});
  });

  it('takes the ids of an existing network', () => {
    const network = { vpcId: ' vpc-0123abcd', subnetIds: 'subnet-0123abcd, subnet-0123456789abcdef0' };
    expect(read({ env: 'dev', ...network })).toMatchObject({
      vpcId: 'vpc-0123abcd',
      subnetIds: ['subnet-0123abcd', 'subnet-0123456789abcdef0'],
    });
    expect(read({ env: 'dev' })).toMatchObject({ vpcId: undefined, subnetIds: [] });
  });

  it('leaves out families that the region lacks', () => {
    const { families } = read({ env: 'dev', unavailableFamilies: 'c8g,m7i' });
    expect(families).toContain('c7g');
    expect(families).not.toContain('c8g');
  });

  it('draws instances with the same memory for each core, 2 GiB if no other is named', () => {
    const families = (context: Context) => read({ env: 'dev', ...context }).families;
    expect(families({})).toEqual(['c8g', 'c7g', 'c6g', 'c7i', 'c7a', 'c6i', 'c6a']);
    expect(families({ memoryPerCore: '4' })).toEqual(['m8g', 'm7g', 'm6g', 'm7i', 'm7a', 'm6i', 'm6a']);
  });

  it('uses the families that a free plan permits only if they are named', () => {
    expect(read({ env: 'dev' }).families).not.toContain('c7i-flex');
    const named = { env: 'dev', families: 'c7i-flex,m7i-flex', architectures: 'x86_64' };
    expect(read(named).families).toEqual(['c7i-flex', 'm7i-flex']);
  });

  it.each([
    [{}, /no environment: add -c env=NAME/],
    [{ env: 'test' }, /env=test is no environment: use one of dev, staging, prod/],
    [{ env: 'toString' }, /is no environment/],
    [{ env: 'dev', maxInstances: '0' }, /maxInstances=0 must be a whole number from 1 to 1000/],
    [{ env: 'dev', maxInstances: '' }, /maxInstances= must be a whole number/],
    [{ env: 'dev', volumeGib: '20.5' }, /volumeGib=20.5 must be a whole number/],
    [{ env: 'dev', onDemandBase: '5' }, /onDemandBase=5 must be a whole number from 0 to 4/],
    [{ env: 'dev', dashboard: 'yes' }, /dashboard=yes must be true or false/],
    [{ env: 'dev', instanceSize: 'huge' }, /instanceSize=huge must be one of large, xlarge/],
    [{ env: 'dev', pythons: '3.10' }, /pythons=3.10 must be a list/],
    [{ env: 'dev', architectures: 'arm64,arm64' }, /each at most once/],
    [{ env: 'dev', pythons: '3.11', python: '3.13' }, /python=3.13 must be one of 3.11/],
    [{ env: 'dev', workerImage: 'worker' }, /no image with a tag or digest/],
    [{ env: 'dev', requirements: '/nowhere.txt' }, /there is no such file/],
    [{ env: 'dev', packageTable: 'restored' }, /packageTable and accountTable belong together/],
    [{ env: 'dev', vpcId: 'vpc-0123abcd' }, /vpcId needs the subnets .* add subnetIds=subnet-/],
    [{ env: 'dev', subnetIds: 'subnet-0123abcd' }, /subnetIds needs the VPC .* add vpcId=vpc-/],
    [{ env: 'dev', vpcId: 'main', subnetIds: 'subnet-0123abcd' }, /vpcId=main is no id of AWS: write vpc-/],
    [{ env: 'dev', vpcId: 'vpc-0123abcd', subnetIds: 'a,b' }, /subnetIds=a,b must be a list of ids/],
    [
      { env: 'dev', vpcId: 'vpc-0123abcd', subnetIds: 'subnet-0123abcd,subnet-0123abcd' },
      /must be a list of ids, each at most once/,
    ],
    [
      { env: 'dev', vpcId: 'vpc-0123abcd', subnetIds: 'subnet-0123abcd', zones: '3' },
      /zones and vpcId exclude each other/,
    ],
    [{ env: 'dev', taskTimeoutS: '21601' }, /taskTimeoutS/],
    [{ env: 'dev', workerImage: 'a:1', imageBuild: 'codebuild' }, /exclude each other/],
    [{ env: 'dev', imageBuild: 'kaniko' }, /must be one of docker, codebuild/],
    [{ env: 'dev', workerImage: 'a:1', requirements: 'package.json' }, /exclude each other/],
    [{ env: 'dev', alarmEmail: 'me' }, /no e-mail address/],
    [{ env: 'dev', budgetUsd: '50' }, /budgetUsd needs an address .* add alarmEmail/],
    [{ env: 'dev', logDays: '8' }, /logDays=8 must be one of 1, 3, 5, 7, 14, /],
    [{ env: 'dev', families: 'c7g,t3' }, /families=c7g,t3 must be a list/],
    [{ env: 'dev', memoryPerCore: '4', families: 'c7g,c7i' }, /memoryPerCore and families exclude each other/],
    [{ env: 'dev', memoryPerCore: '3' }, /memoryPerCore=3 must be one of 2, 4/],
    [{ env: 'dev', families: 'c7g' }, /families=c7g has none for x86_64: add one of c7i, /],
    [
      { env: 'dev', maxInstance: 1 },
      /^maxInstance: there is no such setting; there are accountTable, alarmEmail, .*maxInstances/,
    ],
    [{ env: 'dev', bundle: 7 }, /bundle must be text/],
    [{ env: 'dev', unset: 'dashboard,alarmEmial' }, /^alarmEmial: there is no such setting/],
    [{ env: 'dev', unavailableFamilies: 'c5' }, /unavailableFamilies=c5 must be a list/],
  ])('refuses %j, and says why', (context, message) => {
    expect(() => read(context)).toThrow(SettingsError);
    expect(() => read(context)).toThrow(message);
  });
});
