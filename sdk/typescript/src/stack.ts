// The AWS SDK is optional: it is loaded only to read a deployed stack. It finds region and credentials by itself, as
// the AWS command line does.

import type { Address } from './connection.ts';
import { ConfigurationError } from './errors.ts';

/** A deployment, and the secret with the user's token. */
export interface Stack {
  readonly stack: string;
  readonly tokenSecret: string | undefined;
}

/**
 * Reads a stack's outputs, and the token if a secret is named.
 *
 * @throws ConfigurationError when the AWS SDK is not installed, the stack or the secret does not exist or lacks what is
 *   read, or AWS refuses.
 */
export async function describeStack({ stack, tokenSecret }: Stack): Promise<Address | { endpoint: string }> {
  const endpoint = await readEndpoint(stack);
  return tokenSecret ? { endpoint, token: await readToken(tokenSecret) } : { endpoint };
}

async function readEndpoint(stack: string): Promise<string> {
  const aws = await loadCloudFormation();
  const client = new aws.CloudFormationClient();
  try {
    const command = new aws.DescribeStacksCommand({ StackName: stack });
    const outputs = await client.send(command).then(({ Stacks }) => Stacks?.[0]?.Outputs ?? []);
    const endpoint = outputs.find(({ OutputKey }) => OutputKey === 'Endpoint')?.OutputValue;
    if (!endpoint) {
      throw new Error('it has no output Endpoint: is it a stack of `cloudpar deploy`, and is it deployed?');
    }
    return endpoint;
  } catch (error) {
    throw refusal(`the stack ${stack}`, error);
  } finally {
    client.destroy();
  }
}

/** Reads a token: the secret's text, or the field "token" of JSON. */
async function readToken(tokenSecret: string): Promise<string> {
  const aws = await loadSecretsManager();
  const client = new aws.SecretsManagerClient();
  try {
    const command = new aws.GetSecretValueCommand({ SecretId: tokenSecret });
    const text = (await client.send(command)).SecretString?.trim() ?? '';
    const token: unknown = text.startsWith('{') ? (JSON.parse(text) as { token?: unknown }).token : text;
    if (typeof token !== 'string' || token === '') {
      throw new Error('it holds no token: store the token as its text, or as {"token": "..."}');
    }
    return token;
  } catch (error) {
    throw refusal(`the secret ${tokenSecret}`, error);
  } finally {
    client.destroy();
  }
}

// Each import is in a `try` with its literal name, so that bundlers take a missing package for an optional one.

async function loadCloudFormation() {
  try {
    return await import('@aws-sdk/client-cloudformation');
  } catch (error) {
    throw missing('@aws-sdk/client-cloudformation', error);
  }
}

async function loadSecretsManager() {
  try {
    return await import('@aws-sdk/client-secrets-manager');
  } catch (error) {
    throw missing('@aws-sdk/client-secrets-manager', error);
  }
}

function missing(name: string, cause: unknown): ConfigurationError {
  return new ConfigurationError(`a stack is read by ${name}, which is not installed here: npm install ${name}`, {
    cause,
  });
}

function refusal(what: string, error: unknown): ConfigurationError {
  const { name, message } = error as Error;
  return new ConfigurationError(
    `${what} cannot be read: ${name}: ${message}; check its name, AWS_REGION and the credentials (aws sts ` +
      'get-caller-identity), or give endpoint and token',
    { cause: error },
  );
}
