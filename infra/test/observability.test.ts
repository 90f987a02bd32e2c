import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { only, template } from './deployment';

const RUNBOOK = join(import.meta.dirname, '../../docs/runbook.md');
const ALARM = 'AWS::CloudWatch::Alarm';

const RECIPIENT = { alarmEmail: 'operator@example.com' };

interface Alarm {
  AlarmDescription: string;
  Metrics?: unknown;
  AlarmActions?: unknown[];
}

function alarms(context: Record<string, unknown>): Alarm[] {
  return Object.values(template(context).findResources(ALARM)).map(({ Properties }) => Properties);
}

describe('alarms', () => {
  it('are four, and link to the runbook', () => {
    const all = alarms({ env: 'prod', ...RECIPIENT });
    expect(all).toHaveLength(4);
    for (const { AlarmDescription, AlarmActions } of all) {
      expect(AlarmDescription).toMatch(/See docs\/runbook\.md#[a-z-]+$/);
      expect(AlarmActions).toHaveLength(1);
    }
  });

  it.runIf(existsSync(RUNBOOK))('link to existing headings', () => {
    const headings = readFileSync(RUNBOOK, 'utf8').match(/^#+ .*$/gm) ?? [];
    const anchors = headings.map((heading) =>
      heading
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replace(/\s/g, '-'),
    );
    const linked = alarms({ env: 'dev', ...RECIPIENT }).map(({ AlarmDescription }) => AlarmDescription.split('#')[1]);
    expect(anchors).toEqual(expect.arrayContaining(linked));
  });

  it('report lost chunks by their age, since a message on which the timer fails is hardly ever visible', () => {
    expect(only(template({ env: 'dev', ...RECIPIENT }), ALARM, 'ObservabilityLostChunks').Properties).toMatchObject({
      MetricName: 'ApproximateAgeOfOldestMessage',
      Statistic: 'Maximum',
      Threshold: 900,
      EvaluationPeriods: 1,
    });
  });

  it('exist only if an address gets them', () => {
    template({ env: 'dev' }).resourceCountIs('AWS::SNS::Topic', 0);
    template({ env: 'dev', ...RECIPIENT }).resourceCountIs('AWS::SNS::Topic', 1);
    for (const context of [{ env: 'dev' }, { env: 'dev', ...RECIPIENT }]) {
      const idle = alarms(context).filter(({ AlarmActions = [] }) => AlarmActions.length === 0);
      expect(idle.map(({ AlarmDescription }) => AlarmDescription)).toEqual([]);
    }
  });

  it('are also possible on an emulator without metric math, and read one metric each', () => {
    for (const { Metrics } of alarms({ env: 'dev', ...RECIPIENT })) {
      expect(Metrics).toBeUndefined();
    }
  });

  it('report a timer that does not run, and nothing before its first run', () => {
    const { Properties } = only(template({ env: 'dev', ...RECIPIENT }), ALARM, 'ObservabilityTimer');
    expect(Properties).toMatchObject({ MetricName: 'Errors', TreatMissingData: 'missing' });
    expect(Properties['InsufficientDataActions']).toEqual(Properties['AlarmActions']);
  });
});

describe('refused requests', () => {
  it('are reported if there are 10 a second, which cost about 60 USD a month', () => {
    const found = only(template({ env: 'dev', ...RECIPIENT }), ALARM, 'ObservabilityRefusedRequests');
    expect(found.Properties).toMatchObject({
      MetricName: '4xx',
      Statistic: 'Sum',
      Period: 300,
      Threshold: 3_000,
    });
  });
});

describe('budget', () => {
  const BUDGET = 'AWS::Budgets::Budget';

  it('is there only if its amount is named, since some regions refuse a template with one', () => {
    template({ env: 'prod', ...RECIPIENT }).resourceCountIs(BUDGET, 0);
    const { Properties } = only(template({ env: 'prod', ...RECIPIENT, budgetUsd: '50' }), BUDGET);
    expect(Properties['Budget']).toMatchObject({ BudgetLimit: { Amount: 50, Unit: 'USD' }, TimeUnit: 'MONTHLY' });
    const mails = Properties['NotificationsWithSubscribers'] as { Subscribers: unknown }[];
    expect(mails).toHaveLength(2);
    for (const { Subscribers } of mails) {
      expect(Subscribers).toEqual([{ SubscriptionType: 'EMAIL', Address: RECIPIENT.alarmEmail }]);
    }
  });
});

describe('the cost model', () => {
  it('counts the metrics of the alarms in the template', () => {
    const prices = readFileSync(join(import.meta.dirname, '../../sdk/python/cloudpar/deployment/prices.py'), 'utf8');
    const model = readFileSync(join(import.meta.dirname, '../../docs/cost-model.md'), 'utf8');
    expect(prices).toContain(`alarm_metrics: int = ${alarms({ env: 'dev' }).length}\n`);
    expect(alarms({ env: 'dev', ...RECIPIENT })).toHaveLength(4);
    expect(model).toMatch(/there are four alarms\.\s+Each reads one\s+metric, so together they cost 0\.40/);
  });
});

describe('dashboard', () => {
  it('is there only on request', () => {
    template({ env: 'prod' }).resourceCountIs('AWS::CloudWatch::Dashboard', 0);
    template({ env: 'prod', dashboard: 'true' }).resourceCountIs('AWS::CloudWatch::Dashboard', 1);
  });
});

describe('at rest', () => {
  /** Types of resources that cost nothing in us-east-1 while nothing calls them, even without a free tier. */
  const FREE = new Set([
    'AWS::ApiGatewayV2::Api',
    'AWS::ApiGatewayV2::Integration',
    'AWS::ApiGatewayV2::Route',
    'AWS::ApiGatewayV2::Stage',
    'AWS::AutoScaling::AutoScalingGroup', // empty
    'AWS::AutoScaling::LifecycleHook',
    'AWS::CDK::Metadata',
    'AWS::DynamoDB::Table', // on demand, empty; the timer's reads below
    'AWS::EC2::InternetGateway',
    'AWS::EC2::LaunchTemplate',
    'AWS::EC2::Route',
    'AWS::EC2::RouteTable',
    'AWS::EC2::SecurityGroup',
    'AWS::EC2::Subnet',
    'AWS::EC2::SubnetRouteTableAssociation',
    'AWS::EC2::VPC',
    'AWS::EC2::VPCEndpoint', // gateways
    'AWS::EC2::VPCGatewayAttachment',
    'AWS::Events::Rule', // schedules of the default bus
    'AWS::IAM::InstanceProfile',
    'AWS::IAM::Policy',
    'AWS::IAM::Role',
    'AWS::Lambda::Function', // the timer's calls below
    'AWS::Lambda::Permission',
    'AWS::Logs::LogGroup', // the timer's lines below
    'AWS::S3::Bucket',
    'AWS::S3::BucketPolicy',
    'AWS::SNS::Subscription', // mails by use
    'AWS::SNS::Topic',
    'AWS::SNS::TopicPolicy',
    'AWS::SQS::Queue', // the timer's look at the dead letters below
    'AWS::SQS::QueuePolicy',
    'AWS::SSM::Parameter', // of the standard tier
  ]);
  const MINUTES = 30 * 24 * 60;
  const TIMER = {
    calls: (MINUTES * 0.2) / 1e6,
    seconds: MINUTES * 0.1 * 0.5 * 0.0000133334, // 100 ms of 512 MB on arm64
    reads: (MINUTES * (5 * 0.5 + 1) * 0.125) / 1e6, // four shards, the packages at work, and the fleet's row
    letters: (MINUTES * 0.5) / 1e6, // a look at a FIFO queue
    logs: ((MINUTES * 1_000) / 1e9) * 0.5, // a kilobyte a run
  };
  const IMAGES = 2 * 0.3 * 0.1; // 300 MB for each architecture
  const IDLE = Object.values(TIMER).reduce((sum, usd) => sum + usd) + IMAGES;

  it.each([{ env: 'dev' }, { env: 'staging' }, { env: 'prod' }, { env: 'prod', ...RECIPIENT }])(
    '%j costs at most 1.00 USD a month',
    (context) => {
      let usd = IDLE;
      for (const { Type } of Object.values(template(context).toJSON()['Resources']) as {
        Type: string;
      }[]) {
        if (Type === ALARM) {
          usd += 0.1;
        } else if (Type === 'AWS::SecretsManager::Secret') {
          usd += 0.4;
        } else {
          expect(FREE).toContain(Type);
        }
      }
      expect(usd).toBeGreaterThan(0.5);
      expect(usd).toBeLessThanOrEqual(1);
    },
  );
});
