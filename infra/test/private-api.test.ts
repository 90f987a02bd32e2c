import { describe, expect, it } from 'vitest';
import contract from '../lib/contract.json';
import { SettingsError } from '../lib/settings';
import { only, type Resource, template } from './deployment';

const NETWORK = { vpcId: 'vpc-0123abcd', subnetIds: 'subnet-0123abcd,subnet-4567cdef' };
const VPCE = 'vpce-0123456789abcdef0';
const made = template({ env: 'dev', ...NETWORK, apiVpcEndpoint: VPCE });

describe('a private API', () => {
  it('is reached by its VPC endpoint only', () => {
    expect(made.findResources('AWS::ApiGatewayV2::Api')).toEqual({});
    expect(only(made, 'AWS::ApiGateway::RestApi').Properties).toMatchObject({
      EndpointConfiguration: { Types: ['PRIVATE'], VpcEndpointIds: [VPCE] },
      BinaryMediaTypes: ['*/*'],
      Policy: {
        Statement: [
          {
            Effect: 'Allow',
            Principal: { AWS: '*' },
            Action: 'execute-api:Invoke',
            Resource: 'execute-api:/*',
            Condition: { StringEquals: { 'aws:SourceVpce': VPCE } },
          },
        ],
      },
    });
  });

  it('has an address that needs no private DNS, and one output has it', () => {
    const addresses = Object.values(made.findOutputs('*')).filter((each) =>
      JSON.stringify(each).includes('execute-api'),
    );
    expect(addresses).toHaveLength(1);
    const { Value } = made.findOutputs('Endpoint')['Endpoint'] as { Value: unknown };
    const text = JSON.stringify(Value);
    expect(text).toMatch(/^\{"Fn::Join":\["",\["https:\/\/",\{"Ref":"ServicesPrivateApi[0-9A-F]{8}"\},/);
    expect(text).toContain(`"-${VPCE}.execute-api."`);
    expect(text).toContain('"/cloudpar"');
  });

  it('has the routes of the public one, each with its function and its throttle', () => {
    const paths = new Map(
      Object.entries(made.findResources('AWS::ApiGateway::Resource')).map(([id, each]) => [
        id,
        (each as Resource).Properties['PathPart'],
      ]),
    );
    const routes = Object.values(made.findResources('AWS::ApiGateway::Method')).map((each) => {
      const { ResourceId, HttpMethod, Integration } = (each as Resource).Properties as {
        ResourceId: { Ref: string };
        HttpMethod: string;
        Integration: { Type: string; IntegrationHttpMethod: string; Uri: unknown };
      };
      expect([HttpMethod, Integration.Type, Integration.IntegrationHttpMethod]).toEqual(['POST', 'AWS_PROXY', 'POST']);
      const called = JSON.stringify(Integration.Uri).includes('ServicesWorker') ? 'worker' : 'client';
      return [paths.get(ResourceId.Ref), called];
    });
    expect(Object.fromEntries(routes)).toEqual({
      '{name}': 'client',
      ...Object.fromEntries(contract.workerRoutes.map((name) => [name, 'worker'])),
    });
    const { MethodSettings } = only(made, 'AWS::ApiGateway::Stage').Properties as {
      MethodSettings: { ResourcePath: string; ThrottlingRateLimit: number }[];
    };
    expect(MethodSettings.map((each) => each.ResourcePath).toSorted()).toEqual(
      ['/*', ...contract.workerRoutes.map((name) => `/~1v1~1${name}`)].toSorted(),
    );
    expect(MethodSettings.every((each) => each.ThrottlingRateLimit > 0)).toBe(true);
  });

  it('may call its functions, and nothing else may', () => {
    const callers = Object.values(made.findResources('AWS::Lambda::Permission')).map((each) => {
      const { Principal, SourceArn } = (each as Resource).Properties;
      return `${Principal} ${JSON.stringify(SourceArn).includes('/cloudpar/POST/v1/*')}`;
    });
    expect(callers.toSorted()).toEqual([
      'apigateway.amazonaws.com true',
      'apigateway.amazonaws.com true',
      'events.amazonaws.com false',
    ]);
  });

  it('has the alarms of the public one', () => {
    const alarmed = template({ env: 'dev', ...NETWORK, apiVpcEndpoint: VPCE, alarmEmail: 'operator@example.com' });
    for (const [id, metric] of Object.entries({ ApiErrors: '5XXError', RefusedRequests: '4XXError' })) {
      expect(only(alarmed, 'AWS::CloudWatch::Alarm', `Observability${id}`).Properties).toMatchObject({
        MetricName: metric,
        // The name is the only dimension of a REST API's metrics, so no API of another deployment may have it.
        Dimensions: [{ Name: 'ApiName', Value: 'Cloudpar-dev' }],
      });
    }
    expect(only(alarmed, 'AWS::ApiGateway::RestApi').Properties['Name']).toBe('Cloudpar-dev');
  });

  it('sets nothing that belongs to the whole AWS account', () => {
    expect(made.findResources('AWS::ApiGateway::Account')).toEqual({});
  });

  it('needs the VPC of its endpoint', () => {
    expect(() => template({ env: 'dev', apiVpcEndpoint: VPCE })).toThrow(SettingsError);
    expect(() => template({ env: 'dev', apiVpcEndpoint: VPCE })).toThrow(/add vpcId=vpc-\.\.\. and subnetIds=/);
    expect(() => template({ env: 'dev', ...NETWORK, apiVpcEndpoint: 'vpc-0123abcd' })).toThrow(/vpce-/);
  });
});

describe('the public API', () => {
  it('keeps its name in the template, since another one would have another address', () => {
    const [api] = Object.keys(template({ env: 'dev' }).findResources('AWS::ApiGatewayV2::Api'));
    expect(api).toBe('ServicesApi2ED41191');
  });
});
