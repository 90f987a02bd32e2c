import { type CfnCondition, type CfnResource, Duration } from 'aws-cdk-lib';
import * as autoscaling from 'aws-cdk-lib/aws-autoscaling';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { AutoScalingAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { runbook } from './runbook';
import { EXECUTORS, type Settings } from './settings';

export interface ScalingProps {
  readonly settings: Settings;
  readonly group: autoscaling.AutoScalingGroup;
  readonly tasks: sqs.IQueue;
  readonly warmUp: Duration;
  readonly mathAlarms: CfnCondition;
}

const LOOK = Duration.minutes(1);
/** Below: an executor in two has nothing to do. */
const IDLE = 0.5;

/**
 * Instances by backlog: chunks that wait, or wait and run, for each executor that there is or soon will be.
 *
 * Step scaling with two alarms, since target tracking can say neither "to zero" nor "from zero", and its own alarms
 * cost as much. From zero start_tasks wakes the group at once; the alarm makes up for a wake-up that failed.
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
      // Only what waits: more executors do nothing for a chunk that runs. No instance: any chunk is a reason.
      expression: `IF(desired < 1, waiting * 1000, waiting / (desired * ${executors}))`,
      threshold: settings.backlogPerExecutor,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
      minutes: 1,
      meaning: 'There is more work than the instances can do soon: the group grows, up to its maximum. Normal.',
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
      // -1: nothing at all is left. The last instance stays as long as there is anything.
      expression:
        'IF(desired < 1, 1, IF(waiting + running < 1, -1, ' +
        `IF(desired < 2, 1, (waiting + running) / (desired * ${executors}))))`,
      threshold: IDLE,
      comparisonOperator: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
      minutes: settings.idleMinutes,
      meaning: 'There is too little work for the instances: the group shrinks, to none when none is left. Normal.',
    });
    const remove = new autoscaling.StepScalingAction(this, 'Remove', {
      autoScalingGroup: props.group,
      adjustmentType: autoscaling.AdjustmentType.PERCENT_CHANGE_IN_CAPACITY,
      minAdjustmentMagnitude: 1,
    });
    // Bounds count from the threshold: from 0 to 0.5 a quarter goes, at -1 everything.
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
      meaning: string;
    },
  ): cloudwatch.Alarm {
    const { settings } = this.props;
    const metrics = Object.entries(this.metrics()).filter(([name]) => options.expression.includes(name));
    const alarm = new cloudwatch.Alarm(this, name, {
      alarmDescription: `Cloud Parallelizer (${settings.env}): ${options.meaning} ${runbook('scaling')}`,
      metric: new cloudwatch.MathExpression({
        label: 'chunks for each executor',
        // A queue that sleeps reports nothing: it is empty.
        expression: options.expression.replaceAll(/waiting|running/g, 'FILL($&, 0)'),
        period: LOOK,
        usingMetrics: Object.fromEntries(metrics),
      }),
      threshold: options.threshold,
      comparisonOperator: options.comparisonOperator,
      evaluationPeriods: options.minutes,
      datapointsToAlarm: options.minutes,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    (alarm.node.defaultChild as CfnResource).cfnOptions.condition = this.props.mathAlarms;
    return alarm;
  }

  private metrics(): Record<string, cloudwatch.Metric> {
    const { tasks, group } = this.props;
    const metric = (namespace: string, metricName: string, dimensionsMap: Record<string, string>) =>
      new cloudwatch.Metric({
        namespace,
        metricName,
        dimensionsMap,
        statistic: cloudwatch.Stats.MAXIMUM,
        period: LOOK,
      });
    const queue = { QueueName: tasks.queueName };
    return {
      waiting: metric('AWS/SQS', 'ApproximateNumberOfMessagesVisible', queue),
      running: metric('AWS/SQS', 'ApproximateNumberOfMessagesNotVisible', queue),
      desired: metric('AWS/AutoScaling', 'GroupDesiredCapacity', { AutoScalingGroupName: group.autoScalingGroupName }),
    };
  }
}
