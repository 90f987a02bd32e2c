import { type CfnCondition, type CfnResource, Duration } from 'aws-cdk-lib';
import * as autoscaling from 'aws-cdk-lib/aws-autoscaling';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { AutoScalingAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { Queue } from './queue';
import { runbook } from './runbook';
import { EXECUTORS, type Settings } from './settings';

export interface ScalingProps {
  readonly settings: Settings;
  readonly group: autoscaling.AutoScalingGroup;
  readonly queue: Queue;
  readonly warmUp: Duration;
  readonly mathAlarms: CfnCondition;
}

const LOOK = Duration.minutes(1);
/**
 * How many of the last minutes the alarm for growing reads; one breach among them is enough. SQS sometimes reports a
 * minute late, which looks like an empty queue here.
 */
const LATE_MINUTES = 3;
/** Below this many running chunks for each executor, more than half of the executors are idle. */
const IDLE = 0.5;

/**
 * Scales by the chunks of both queues. The group grows by the number of chunks that wait, divided by the number of
 * executors that exist or were requested. It shrinks by the number of chunks that run, divided by the executors of the
 * instances in service.
 *
 * It is step scaling with two alarms, since target tracking supports neither "to zero" nor "from zero", and its own
 * alarms cost as much. From zero, start_tasks wakes the group at once; if that fails, the alarm does it.
 */
export class Scaling extends Construct {
  readonly grow: cloudwatch.Alarm;
  readonly shrink: cloudwatch.Alarm;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: ScalingProps,
  ) {
    super(scope, id);
    const { settings } = props;
    const executors = EXECUTORS[settings.instanceSize];

    this.grow = this.alarm('Grow', {
      // Only waiting chunks count: more executors do not help a running chunk. Without an instance, any waiting chunk
      // is a reason.
      expression:
        'IF(desired < 1, (waiting + waitingExpress) * 1000, ' +
        `(waiting + waitingExpress) / (desired * ${executors}))`,
      threshold: settings.backlogPerExecutor,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
      minutes: LATE_MINUTES,
      breaching: 1,
      meaning: 'There are more chunks than the instances can soon run: the group grows, up to its maximum. Normal.',
    });
    const add = new autoscaling.StepScalingAction(this, 'Add', {
      autoScalingGroup: props.group,
      adjustmentType: autoscaling.AdjustmentType.CHANGE_IN_CAPACITY,
      estimatedInstanceWarmup: props.warmUp,
    });
    const step = settings.backlogPerExecutor;
    add.addAdjustment({ adjustment: 1, lowerBound: 0, upperBound: 3 * step });
    add.addAdjustment({ adjustment: Math.ceil(settings.maxInstances / 2), lowerBound: 3 * step, upperBound: 9 * step });
    add.addAdjustment({ adjustment: settings.maxInstances, lowerBound: 9 * step });
    this.grow.addAlarmAction(new AutoScalingAction(add));

    this.shrink = this.alarm('Shrink', {
      // -1 means that instances are in service and no chunk runs. If that lasts for all minutes of the alarm, waiting
      // chunks cannot run there, so they keep no instance. Instances that were only requested do not count: while none
      // can start, chunks wait and none runs. The last instance stays while any chunk runs. Each metric costs as much
      // as an alarm, so the waiting chunks are not read.
      expression:
        'IF(there < 1, 1, IF(running + runningExpress < 1, -1, ' +
        `IF(there < 2, 1, (running + runningExpress) / (there * ${executors}))))`,
      threshold: IDLE,
      comparisonOperator: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
      minutes: settings.idleMinutes,
      breaching: settings.idleMinutes,
      meaning: 'There are too few chunks for the instances: the group shrinks, to zero without chunks. Normal.',
    });
    const remove = new autoscaling.StepScalingAction(this, 'Remove', {
      autoScalingGroup: props.group,
      adjustmentType: autoscaling.AdjustmentType.PERCENT_CHANGE_IN_CAPACITY,
      minAdjustmentMagnitude: 1,
    });
    // Bounds count from the threshold: between 0 and 0.5 a quarter of the instances ends, at -1 all of them.
    remove.addAdjustment({ adjustment: -25, lowerBound: -1, upperBound: 0 });
    remove.addAdjustment({ adjustment: -100, upperBound: -1 });
    this.shrink.addAlarmAction(new AutoScalingAction(remove));
  }

  private alarm(
    name: string,
    options: {
      expression: string;
      threshold: number;
      comparisonOperator: cloudwatch.ComparisonOperator;
      minutes: number;
      breaching: number;
      meaning: string;
    },
  ): cloudwatch.Alarm {
    const { settings } = this.props;
    const metrics = Object.entries(this.metrics()).filter(([name]) => options.expression.includes(name));
    const alarm = new cloudwatch.Alarm(this, name, {
      alarmDescription: `Cloud Parallelizer (${settings.env}): ${options.meaning} ${runbook('scaling')}`,
      metric: new cloudwatch.MathExpression({
        label: 'chunks for each executor',
        // An inactive queue reports no value: it is empty.
        expression: options.expression.replaceAll(/(waiting|running)(Express)?/g, 'FILL($&, 0)'),
        period: LOOK,
        usingMetrics: Object.fromEntries(metrics),
      }),
      threshold: options.threshold,
      comparisonOperator: options.comparisonOperator,
      evaluationPeriods: options.minutes,
      datapointsToAlarm: options.breaching,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    (alarm.node.defaultChild as CfnResource).cfnOptions.condition = this.props.mathAlarms;
    return alarm;
  }

  private metrics(): Record<string, cloudwatch.Metric> {
    const { queue, group } = this.props;
    const metric = (namespace: string, metricName: string, dimensionsMap: Record<string, string>) =>
      new cloudwatch.Metric({
        namespace,
        metricName,
        dimensionsMap,
        statistic: cloudwatch.Stats.MAXIMUM,
        period: LOOK,
      });
    const ofQueue = (queue: IQueue, state: 'Visible' | 'NotVisible') =>
      metric('AWS/SQS', `ApproximateNumberOfMessages${state}`, { QueueName: queue.queueName });
    const ofGroup = (name: string) =>
      metric('AWS/AutoScaling', name, { AutoScalingGroupName: group.autoScalingGroupName });
    return {
      waiting: ofQueue(queue.tasks, 'Visible'),
      waitingExpress: ofQueue(queue.express, 'Visible'),
      running: ofQueue(queue.tasks, 'NotVisible'),
      runningExpress: ofQueue(queue.express, 'NotVisible'),
      desired: ofGroup('GroupDesiredCapacity'),
      there: ofGroup('GroupInServiceInstances'),
    };
  }
}
