import { Aws, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as rest from 'aws-cdk-lib/aws-apigateway';
import * as http from 'aws-cdk-lib/aws-apigatewayv2';
import type * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { NagSuppressions } from 'cdk-nag';
import type { Construct } from 'constructs';
import contract from './contract.json';
import type { Settings } from './settings';

/** What the stack needs of the API, public or private. */
export interface Api {
  /** The URL to which clients and workers add /v1/NAME. */
  readonly endpoint: string;
  /** The ARN of all calls that the API makes to its functions. */
  readonly calls: string;
  metricCount(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
  metricClientError(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
  metricServerError(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
  metricLatency(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
}

/** The functions behind the API. */
interface Functions {
  readonly client: lambda.Function;
  readonly worker: lambda.Function;
}

const PRIVATE_STAGE = 'cloudpar';
const ROUTES = '/v1/*';

/** Returns the API. It is private if the settings name a VPC endpoint. */
export function makeApi(scope: Construct, settings: Settings, functions: Functions): Api {
  return settings.apiVpcEndpoint === undefined
    ? publicApi(scope, settings, functions)
    : privateApi(scope, settings, settings.apiVpcEndpoint, functions);
}

/** Makes an HTTP API, which strangers can reach, too. */
function publicApi(scope: Construct, settings: Settings, functions: Functions): Api {
  const api = new http.HttpApi(scope, 'Api', {
    description: `Cloud Parallelizer (${settings.env})`,
    createDefaultStage: false,
  });
  const integrations = {
    client: new Invocation('Client', functions.client),
    worker: new Invocation('Worker', functions.worker),
  };
  const methods = [http.HttpMethod.POST];
  const workerRoutes = contract.workerRoutes.flatMap((name) =>
    api.addRoutes({ path: `/v1/${name}`, methods, integration: integrations.worker }),
  );
  // The client function gets all other names, so that the caller of a misspelt one gets the protocol's own error.
  api.addRoutes({ path: '/v1/{name}', methods, integration: integrations.client });
  const accessLog = new logs.LogGroup(scope, 'AccessLog', {
    retention: settings.logDays,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const stage = new http.HttpStage(scope, 'Stage', {
    httpApi: api,
    stageName: '$default',
    autoDeploy: true,
    throttle: { rateLimit: settings.rateLimit, burstLimit: settings.burstLimit },
    accessLogSettings: {
      destination: new http.LogGroupLogDestination(accessLog),
      format: rest.AccessLogFormat.custom(ACCESS_LOG_LINE),
    },
  });
  throttleWorkers(stage, workerRoutes, settings);
  NagSuppressions.addResourceSuppressions(api, [{ id: 'AwsSolutions-APIG4', reason: OWN_TOKENS }], true);
  return Object.assign(api, { endpoint: api.apiEndpoint, calls: api.arnForExecuteApi('POST', ROUTES, '$default') });
}

/**
 * Makes a REST API that only the VPC endpoint reaches: HTTP APIs cannot be private. The API's address contains the
 * endpoint's id, so that it works without the endpoint's private DNS, and from networks that are connected to the VPC.
 */
function privateApi(scope: Construct, settings: Settings, endpointId: string, functions: Functions): Api {
  const endpoint = ec2.InterfaceVpcEndpoint.fromInterfaceVpcEndpointAttributes(scope, 'ApiEndpoint', {
    vpcEndpointId: endpointId,
    port: 443,
  });
  const { workerRateLimit } = settings;
  const ofWorkers = { throttlingRateLimit: workerRateLimit, throttlingBurstLimit: 2 * workerRateLimit };
  const api = new rest.RestApi(scope, 'PrivateApi', {
    // The name is the only dimension of a REST API's metrics, so no API of another deployment may have it.
    restApiName: Stack.of(scope).stackName,
    description: `Cloud Parallelizer (${settings.env})`,
    endpointConfiguration: { types: [rest.EndpointType.PRIVATE], vpcEndpoints: [endpoint] },
    policy: new iam.PolicyDocument({
      statements: [
        new iam.PolicyStatement({
          principals: [new iam.AnyPrincipal()],
          actions: ['execute-api:Invoke'],
          resources: ['execute-api:/*'],
          conditions: { StringEquals: { 'aws:SourceVpce': endpointId } },
        }),
      ],
    }),
    // Messages are binary. API Gateway passes bodies of these types on as base64, and decodes the answers.
    binaryMediaTypes: ['*/*'],
    // The role for logs belongs to the whole AWS account and region, so a stack must not set it.
    cloudWatchRole: false,
    deployOptions: {
      stageName: PRIVATE_STAGE,
      throttlingRateLimit: settings.rateLimit,
      throttlingBurstLimit: settings.burstLimit,
      methodOptions: Object.fromEntries(contract.workerRoutes.map((name) => [`/v1/${name}/POST`, ofWorkers])),
    },
  });
  api.node.tryRemoveChild('Endpoint'); // an output whose address only the endpoint's private DNS knows
  const version = api.root.addResource('v1');
  for (const name of contract.workerRoutes) {
    version.addResource(name).addMethod('POST', invocation(functions.worker));
  }
  version.addResource('{name}').addMethod('POST', invocation(functions.client));
  NagSuppressions.addResourceSuppressions(
    api,
    [
      { id: 'AwsSolutions-APIG4', reason: OWN_TOKENS },
      { id: 'AwsSolutions-COG4', reason: OWN_TOKENS },
      { id: 'AwsSolutions-APIG2', reason: 'The functions validate messages, which are MessagePack and not JSON.' },
      { id: 'AwsSolutions-APIG1', reason: 'Logs need a role of the whole account. The functions log each request.' },
      { id: 'AwsSolutions-APIG6', reason: 'Logs need a role of the whole account. The functions log each request.' },
      { id: 'Serverless-APIGWAccessLogging', reason: 'As for AwsSolutions-APIG1.' },
      { id: 'Serverless-APIGWXrayEnabled', reason: 'The setting `tracing` has the functions traced.' },
      { id: 'AwsSolutions-APIG3', reason: 'Only one VPC endpoint reaches the API; a web ACL costs 5 USD a month.' },
    ],
    true,
  );
  const host = `${api.restApiId}-${endpointId}.execute-api.${Stack.of(scope).region}.${Aws.URL_SUFFIX}`;
  return Object.assign(api, {
    endpoint: `https://${host}/${PRIVATE_STAGE}`,
    calls: api.arnForExecuteApi('POST', ROUTES, PRIVATE_STAGE),
  });
}

/**
 * Gives each route of the workers a throttle of its own. With the stage's throttle alone, a client or a stranger that
 * sends too many requests would use up the workers' share, too: their leases would expire, and tasks would run again.
 */
function throttleWorkers(stage: http.HttpStage, routes: http.HttpRoute[], { workerRateLimit }: Settings): void {
  const limits = { ThrottlingRateLimit: workerRateLimit, ThrottlingBurstLimit: 2 * workerRateLimit };
  (stage.node.defaultChild as http.CfnStage).routeSettings = Object.fromEntries(
    contract.workerRoutes.map((name) => [`POST /v1/${name}`, limits]),
  );
  // API Gateway refuses a stage whose settings name a route that does not exist yet.
  stage.node.addDependency(...routes);
}

const OWN_TOKENS = 'The functions check the tokens (users, workers): an authorizer would read the same item once more.';

/**
 * A line of the access log. It contains no token and no payload. The function's own line with the same request id names
 * the account and the packages.
 */
const ACCESS_LOG_LINE = JSON.stringify({
  requestId: '$context.requestId',
  time: '$context.requestTimeEpoch',
  ip: '$context.identity.sourceIp',
  route: '$context.routeKey',
  status: '$context.status',
  requestBytes: '$context.requestLength',
  responseBytes: '$context.responseLength',
  latencyMs: '$context.responseLatency',
  error: '$context.integrationErrorMessage',
});

/** Calls a function; the CDK's own class would grant the call here instead of in grants.ts. */
class Invocation extends http.HttpRouteIntegration {
  constructor(
    id: string,
    private readonly called: lambda.Function,
  ) {
    super(id);
  }

  override bind(): http.HttpRouteIntegrationConfig {
    return {
      type: http.HttpIntegrationType.AWS_PROXY,
      uri: this.called.functionArn,
      payloadFormatVersion: http.PayloadFormatVersion.VERSION_2_0,
    };
  }
}

/** Returns an integration of a REST API that calls a function; see Invocation. */
function invocation(called: lambda.Function): rest.Integration {
  const path = `2015-03-31/functions/${called.functionArn}/invocations`;
  return new rest.Integration({
    type: rest.IntegrationType.AWS_PROXY,
    integrationHttpMethod: 'POST',
    uri: `arn:${Aws.PARTITION}:apigateway:${Aws.REGION}:lambda:path/${path}`,
  });
}
