import { Duration } from 'aws-cdk-lib';
import * as budgets from 'aws-cdk-lib/aws-budgets';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as sns from 'aws-cdk-lib/aws-sns';
import * as subscriptions from 'aws-cdk-lib/aws-sns-subscriptions';
import { NagSuppressions } from 'cdk-nag';
import { Construct } from 'constructs';
import type { Fleet } from './fleet';
import type { Queue } from './queue';
import { type Anchor, runbook } from './runbook';
import type { Service, Services } from './services';
import type { Settings } from './settings';

export interface ObservabilityProps {
  readonly settings: Settings;
  readonly services: Services;
  readonly queue: Queue;
  readonly fleet: Fleet;
}

interface AlarmOptions {
  readonly anchor: Anchor;
  readonly meaning: string;
  readonly metric: cloudwatch.IMetric;
  readonly threshold: number;
  readonly periods: number;
  readonly treatMissingData?: cloudwatch.TreatMissingData;
}

const FIVE_MINUTES = Duration.minutes(5);

/**
 * Makes the alarms, if an address gets them, and the dashboard, if a setting requests it. An alarm costs 0.10 USD a
 * month for each metric, so there are few.
 */
export class Observability extends Construct {
  /** The topic to which the alarms publish. It is undefined if no address gets alarms: then there are none. */
  readonly topic: sns.Topic | undefined;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: ObservabilityProps,
  ) {
    super(scope, id);
    const { settings } = props;
    if (settings.alarmEmail) {
      this.topic = this.topicOf(settings.alarmEmail);
      this.alarms(this.topic);
      this.budget(settings.alarmEmail, settings.budgetUsd);
    }
    if (settings.dashboard) {
      this.dashboard();
    }
  }

  private topicOf(address: string): sns.Topic {
    const topic = new sns.Topic(this, 'Alarms', { enforceSSL: true });
    topic.addSubscription(new subscriptions.EmailSubscription(address));
    NagSuppressions.addResourceSuppressions(
      topic,
      [
        {
          id: 'Serverless-SNSRedrivePolicy',
          reason: 'A mail that is not delivered needs no queue: the alarm stays red.',
        },
      ],
      true,
    );
    return topic;
  }

  private alarms(topic: sns.Topic): void {
    const { services, queue } = this.props;
    this.alarm(topic, 'ApiErrors', {
      anchor: 'api-errors',
      // The API also answers with a server error if AWS throttles a function: see docs/runbook.md#throttling.
      meaning: 'the master answers with server errors, or the concurrency of its functions is used up.',
      metric: services.api.metricServerError({ period: FIVE_MINUTES, statistic: cloudwatch.Stats.SUM }),
      threshold: 5,
      periods: 2,
    });
    this.alarm(topic, 'RefusedRequests', {
      anchor: 'refused-requests',
      meaning: 'the API refuses many requests, as when strangers send them: each one costs a little.',
      metric: services.api.metricClientError({ period: FIVE_MINUTES, statistic: cloudwatch.Stats.SUM }),
      // 10 a second. At this rate refused requests cost about 60 USD a month.
      threshold: 3_000,
      periods: 3,
    });
    this.alarm(topic, 'LostChunks', {
      anchor: 'lost-chunks',
      meaning: 'chunks that were lost several times are not processed.',
      // The number of visible messages would not show that the timer fails: a message on which the timer fails is
      // nearly always in flight.
      metric: queue.lost.metricApproximateAgeOfOldestMessage({ period: FIVE_MINUTES }),
      threshold: Duration.minutes(15).toSeconds(),
      periods: 1,
    });
    const timer = this.alarm(topic, 'Timer', {
      anchor: 'timer',
      meaning: 'the timer fails or does not run, or the instances that the work needs do not start or do not work.',
      // While instances are missing or do not work, the timer fails each minute (services/fleet_keeper.py). A single
      // failure in three periods would not be worth a mail: the next run repeats what failed.
      metric: services.timer.handler.metricErrors({ period: FIVE_MINUTES }),
      threshold: 1,
      periods: 3,
      treatMissingData: cloudwatch.TreatMissingData.MISSING,
    });
    // Without a run the metric has no value, not even zero, and the alarm changes to INSUFFICIENT_DATA. A new alarm
    // starts in this state, so it reports nothing before the first run. If missing values counted as failures, a new
    // alarm would report one at once.
    timer.addInsufficientDataAction(new SnsAction(topic));
  }

  /**
   * Mails when the AWS account has spent the budget of a month, or is forecast to. The budget counts all costs of the AWS
   * account: AWS would count those with this stack's tag only after an administrator has activated the tag for billing.
   */
  private budget(address: string, usd: number): void {
    if (usd === 0) {
      return;
    }
    const subscribers = [{ subscriptionType: 'EMAIL', address }];
    new budgets.CfnBudget(this, 'Budget', {
      budget: { budgetType: 'COST', timeUnit: 'MONTHLY', budgetLimit: { amount: usd, unit: 'USD' } },
      notificationsWithSubscribers: ['ACTUAL', 'FORECASTED'].map((notificationType) => ({
        notification: { notificationType, comparisonOperator: 'GREATER_THAN', threshold: 100 },
        subscribers,
      })),
    });
  }

  private alarm(topic: sns.Topic, id: string, options: AlarmOptions): cloudwatch.Alarm {
    const alarm = new cloudwatch.Alarm(this, id, {
      alarmDescription: `Cloud Parallelizer (${this.props.settings.env}): ${options.meaning} ${runbook(options.anchor)}`,
      metric: options.metric,
      threshold: options.threshold,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: options.periods,
      datapointsToAlarm: options.periods,
      treatMissingData: options.treatMissingData ?? cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    alarm.addAlarmAction(new SnsAction(topic));
    return alarm;
  }

  private groupMetric(metricName: string, statistic: string): cloudwatch.Metric {
    return new cloudwatch.Metric({
      namespace: 'AWS/AutoScaling',
      metricName,
      dimensionsMap: { AutoScalingGroupName: this.props.fleet.group.autoScalingGroupName },
      statistic,
      period: FIVE_MINUTES,
    });
  }

  private dashboard(): void {
    const { settings, services, queue } = this.props;
    const functions: Service[] = [services.client, services.worker, services.timer];
    const graph = (title: string, left: cloudwatch.IMetric[], right: cloudwatch.IMetric[] = []) =>
      new cloudwatch.GraphWidget({ title, left, right, width: 12 });
    new cloudwatch.Dashboard(this, 'Dashboard', {
      dashboardName: `Cloudpar-${settings.env}`,
      defaultInterval: Duration.hours(3),
      widgets: [
        [
          graph(
            'Chunks that wait, run, were lost',
            [
              queue.tasks.metricApproximateNumberOfMessagesVisible({ label: 'wait' }),
              queue.express.metricApproximateNumberOfMessagesVisible({ label: 'wait in the express queue' }),
              queue.tasks.metricApproximateNumberOfMessagesNotVisible({ label: 'run' }),
              queue.express.metricApproximateNumberOfMessagesNotVisible({ label: 'run, from the express queue' }),
            ],
            [queue.lost.metricApproximateNumberOfMessagesVisible({ label: 'lost' })],
          ),
          graph('Instances', [
            this.groupMetric('GroupDesiredCapacity', cloudwatch.Stats.MAXIMUM),
            this.groupMetric('GroupInServiceInstances', cloudwatch.Stats.MAXIMUM),
          ]),
        ],
        [
          graph('Requests and errors', [services.api.metricCount()], [services.api.metricServerError()]),
          graph('Latency (ms)', [
            services.api.metricLatency({ statistic: 'p50', label: 'p50' }),
            services.api.metricLatency({ statistic: 'p99', label: 'p99' }),
          ]),
        ],
        [
          graph(
            'Function errors',
            functions.map(({ handler }) => handler.metricErrors()),
          ),
          graph(
            'Function throttles',
            functions.map(({ handler }) => handler.metricThrottles()),
          ),
        ],
      ],
    });
  }
}
