import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import contract from '../lib/contract.json';
import { SettingsError } from '../lib/settings';
import { only, template, text } from './deployment';

const dev = template({ env: 'dev' });
const FUNCTION = 'AWS::Lambda::Function';

const ENVIRONMENT = [...contract.environment, 'LOG_LEVEL', 'POWERTOOLS_METRICS_NAMESPACE', 'POWERTOOLS_SERVICE_NAME'];

interface Environment {
  readonly Variables: Record<string, string>;
}

describe('functions', () => {
  it.each(['client', 'worker', 'account', 'timer'])('%s', (name) => {
    const { Properties } = only(dev, FUNCTION, `Services${name.charAt(0).toUpperCase()}${name.slice(1)}`);
    expect(Properties).toMatchObject({
      Handler: `cloudpar_handlers.${name}.handle`,
      Runtime: 'python3.13',
      Architectures: ['arm64'],
      TracingConfig: { Mode: 'PassThrough' },
      LoggingConfig: { LogGroup: { Ref: expect.stringMatching(/^Services.*Log/) } },
    });
    const { Variables } = Properties['Environment'] as { Variables: Record<string, unknown> };
    expect(Object.keys(Variables).sort()).toEqual(
      [...ENVIRONMENT, ...(['client', 'timer'].includes(name) ? contract.fleetEnvironment : [])].sort(),
    );
    // Code of an earlier release does not start with values that only a later release knows.
    expect(JSON.parse(Variables['CLOUDPAR_POLICY'] as string)).toEqual({});
    expect(Properties).not.toHaveProperty('ReservedConcurrentExecutions');
  });

  it('are traced if the operator wants it, except the timer', () => {
    const traced = template({ env: 'dev', tracing: 'true' }).findResources(FUNCTION, {
      Properties: { TracingConfig: { Mode: 'Active' } },
    });
    const ids = Object.keys(traced).map((id) => id.replace(/[0-9A-F]{8}$/, ''));
    expect(ids.sort()).toEqual(['ServicesAccount', 'ServicesClient', 'ServicesWorker']);
  });

  it('limit accounts by the settings', () => {
    const asked = { env: 'dev', runningPackages: '7', taskTimeoutS: '7200' };
    const strict = only(template(asked), FUNCTION, 'ServicesClient');
    const { Variables } = strict.Properties['Environment'] as Environment;
    const policy = JSON.parse(Variables['CLOUDPAR_POLICY'] as string);
    expect(policy).toEqual({ running_packages: 7, task_timeout_s: 7200 });
  });

  it('log less when the settings say so, but all actions of administrators', () => {
    const quiet = template({ env: 'dev', logLevel: 'ERROR' });
    const levels = ['Client', 'Worker', 'Account', 'Timer'].map((id) => {
      const { Variables } = only(quiet, FUNCTION, `Services${id}`).Properties['Environment'] as Environment;
      return Variables['LOG_LEVEL'];
    });
    expect(levels).toEqual(['ERROR', 'ERROR', 'INFO', 'ERROR']);
  });

  it('reserve concurrency by the settings', () => {
    const reserved = template({ env: 'dev', reservedConcurrency: '1' });
    for (const id of ['ServicesClient', 'ServicesWorker']) {
      expect(only(reserved, FUNCTION, id).Properties['ReservedConcurrentExecutions']).toBe(1);
    }
  });

  it('keep their logs for as long as the environment says', () => {
    for (const [env, days] of Object.entries({ dev: 7, staging: 14, prod: 90 })) {
      const groups = Object.values(template({ env }).findResources('AWS::Logs::LogGroup'));
      expect(groups).toHaveLength(6);
      expect(groups.every((group) => group['Properties'].RetentionInDays === days)).toBe(true);
    }
  });

  it('need a bundle, and say how to build it', () => {
    expect(() => template({ env: 'dev', bundle: '/nowhere' })).toThrow(SettingsError);
    expect(() => template({ env: 'dev', bundle: '/nowhere' })).toThrow(/functions\/bundle.sh/);
  });
});

describe('API', () => {
  const target = (route: { Properties: { Target: unknown } }) => JSON.stringify(route.Properties.Target);

  it('sends worker routes to the worker function, all others to the client function', () => {
    const routes = Object.values(dev.findResources('AWS::ApiGatewayV2::Route'));
    const integrations = dev.findResources('AWS::ApiGatewayV2::Integration');
    const called = (key: string) => {
      const route = routes.find(({ Properties }) => Properties.RouteKey === key);
      const id = Object.keys(integrations).find((name) => target(route as never).includes(name)) as string;
      return JSON.stringify(integrations[id]?.['Properties'].IntegrationUri);
    };
    expect(routes.map(({ Properties }) => Properties.RouteKey).sort()).toEqual(
      ['POST /v1/{name}', ...contract.workerRoutes.map((name) => `POST /v1/${name}`)].sort(),
    );
    expect(called('POST /v1/{name}')).toContain('ServicesClient');
    for (const name of contract.workerRoutes) {
      expect(called(`POST /v1/${name}`)).toContain('ServicesWorker');
    }
    for (const { Properties } of Object.values(integrations)) {
      expect(Properties).toMatchObject({ IntegrationType: 'AWS_PROXY', PayloadFormatVersion: '2.0' });
    }
  });

  it('the worker routes are those of the protocol', () => {
    const openapi = JSON.parse(readFileSync(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8'));
    const workers = Object.entries(openapi.paths as Record<string, { post: { tags: string[] } }>)
      .filter(([, { post }]) => post.tags.includes('worker'))
      .map(([path]) => path.replace('/v1/', ''));
    expect(workers).toEqual(contract.workerRoutes);
  });

  it('is throttled, and logs neither tokens nor bodies', () => {
    const { Properties } = only(dev, 'AWS::ApiGatewayV2::Stage');
    expect(Properties).toMatchObject({
      StageName: '$default',
      AutoDeploy: true,
      DefaultRouteSettings: { ThrottlingRateLimit: 50, ThrottlingBurstLimit: 200 },
    });
    const { Format } = Properties['AccessLogSettings'] as { Format: string };
    expect(Format).toContain('$context.requestId');
    expect(Format).not.toMatch(/authoriz|header|body/i);
  });
});

describe("the workers' routes", () => {
  const settings = (context: Record<string, unknown>) =>
    only(template(context), 'AWS::ApiGatewayV2::Stage').Properties['RouteSettings'] as Record<string, unknown>;
  const keys = contract.workerRoutes.map((name) => `POST /v1/${name}`);

  it('have throttles of their own, so that requests to other routes use up none of them', () => {
    expect(Object.keys(settings({ env: 'dev' }))).toEqual(keys);
    for (const limits of Object.values(settings({ env: 'dev' }))) {
      expect(limits).toEqual({ ThrottlingRateLimit: 20, ThrottlingBurstLimit: 40 });
    }
  });

  it('accept what the largest fleet sends, or what a setting says', () => {
    const route = keys[0] as string;
    expect(settings({ env: 'prod', maxInstances: '100', instanceSize: '8xlarge' })[route]).toMatchObject({
      ThrottlingRateLimit: 6_400,
    });
    expect(settings({ env: 'prod', workerRateLimit: '7' })[route]).toMatchObject({ ThrottlingRateLimit: 7 });
  });

  it('exist before the stage names them, since API Gateway refuses a stage that names a missing route', () => {
    const routes = Object.entries(dev.findResources('AWS::ApiGatewayV2::Route'));
    const named = routes.filter(([, { Properties }]) => keys.includes(Properties.RouteKey)).map(([id]) => id);
    expect(named).toHaveLength(keys.length);
    expect(only(dev, 'AWS::ApiGatewayV2::Stage')['DependsOn']).toEqual(expect.arrayContaining(named));
  });
});

describe('functions without a route', () => {
  it('the timer runs every minute', () => {
    expect(only(dev, 'AWS::Events::Rule').Properties).toMatchObject({
      ScheduleExpression: 'rate(1 minute)',
      Targets: [{ Arn: { 'Fn::GetAtt': [expect.stringMatching(/^ServicesTimer/), 'Arn'] } }],
    });
  });

  it('no queue calls a function: Lambda would poll it all the time, which costs more than half of all else at rest', () => {
    dev.resourceCountIs('AWS::Lambda::EventSourceMapping', 0);
  });
});

describe('outputs', () => {
  it('are those that the CLI and the SDKs read', () => {
    const outputs = dev.toJSON()['Outputs'] as Record<string, { Value: unknown }>;
    expect(Object.keys(outputs)).toEqual([
      'Endpoint',
      'PackageTable',
      'AccountTable',
      'QueueUrl',
      'ExpressQueueUrl',
      'DeadLetterQueueUrl',
      'Bucket',
      'AccountFunction',
      'WorkerRole',
      'WorkerTokenSecret',
      'FleetGroup',
      'CreateFirstAccount',
      'Region',
    ]);
    expect(text(outputs['CreateFirstAccount']?.Value)).toBe(
      'cloudpar account create NAME --hours 10 --stack Cloudpar-dev',
    );
    expect(outputs['FleetGroup']?.Value).toBe('Cloudpar-dev-workers');
  });
});
