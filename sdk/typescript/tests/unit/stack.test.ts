// The real AWS SDK with a stand-in in this process: no request leaves the machine.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { describeStack } from '../../src/stack.ts';

const OUTPUTS: Record<string, string> = {
  'Cloudpar-dev': '<member><OutputKey>Endpoint</OutputKey><OutputValue>https://api.test</OutputValue></member>',
  Other: '<member><OutputKey>Region</OutputKey><OutputValue>us-east-1</OutputValue></member>',
};
const SECRETS: Record<string, string> = { plain: ' a-token\n', json: '{"token": "j-token"}', empty: '{}' };
let server: Server;

/** CloudFormation answers forms with XML, Secrets Manager JSON with JSON. */
function answer(body: string, target: string | undefined): [number, string] {
  if (target === 'secretsmanager.GetSecretValue') {
    const secret = SECRETS[(JSON.parse(body) as { SecretId: string }).SecretId];
    return secret === undefined
      ? [400, JSON.stringify({ __type: 'ResourceNotFoundException', message: 'no such secret' })]
      : [200, JSON.stringify({ SecretString: secret })];
  }
  const outputs = OUTPUTS[new URLSearchParams(body).get('StackName') ?? ''];
  return outputs === undefined
    ? [
        400,
        '<ErrorResponse><Error><Code>ValidationError</Code><Message>does not exist</Message></Error></ErrorResponse>',
      ]
    : [
        200,
        '<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>s</StackName>' +
          `<Outputs>${outputs}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
      ];
}

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => {
      const [status, text] = answer(body, request.headers['x-amz-target']?.toString());
      response.writeHead(status, { 'content-type': text.startsWith('<') ? 'text/xml' : 'application/x-amz-json-1.1' });
      response.end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
});

afterAll(async () => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test.each([
  ['plain', 'a-token'],
  ['json', 'j-token'],
])('the token of a %s secret', async (tokenSecret, token) => {
  const found = await describeStack({ stack: 'Cloudpar-dev', tokenSecret });
  expect(found).toEqual({ endpoint: 'https://api.test', token });
});

test('without a secret there is only the endpoint', async () => {
  const found = await describeStack({ stack: 'Cloudpar-dev', tokenSecret: undefined });
  expect(found).toEqual({ endpoint: 'https://api.test' });
});

test.each([
  ['Missing', undefined, /the stack Missing cannot be read: .*does not exist.*AWS_REGION/],
  ['Other', undefined, /the stack Other cannot be read: .*no output Endpoint/],
  ['Cloudpar-dev', 'missing', /the secret missing cannot be read: .*no such secret/],
  ['Cloudpar-dev', 'empty', /the secret empty cannot be read: .*it holds no token/],
])('%s with %s says what is wrong', async (stack, tokenSecret, text) => {
  await expect(describeStack({ stack, tokenSecret })).rejects.toThrow(ConfigurationError);
  await expect(describeStack({ stack, tokenSecret })).rejects.toThrow(text);
});
