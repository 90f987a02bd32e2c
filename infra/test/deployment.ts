import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Aspects } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks, ServerlessChecks } from 'cdk-nag';
import { readSettings } from '../lib/settings';
import { CloudparStack } from '../lib/stack';
import { freshFolder } from './folder';

export type Resource = { Type: string; Properties: Record<string, unknown>; [attribute: string]: unknown };
export type Context = Record<string, unknown>;

/** Makes a folder like the one that functions/bundle.sh makes. */
export function stubBundle(): string {
  const folder = freshFolder();
  writeFileSync(join(folder, 'handler.py'), '');
  return folder;
}

const BUNDLE = stubBundle();

/** Synthesizes the stack of an environment. The context names a worker image, so that no test builds one. */
export function synthesize(context: Context, { nag = false } = {}): CloudparStack {
  const all: Context = { bundle: BUNDLE, workerImage: 'example/worker:1', ...context };
  const app = new App({ outdir: freshFolder() });
  const stack = new CloudparStack(
    app,
    readSettings((name) => all[name], Object.keys(all)),
  );
  if (nag) {
    Aspects.of(app).add(new AwsSolutionsChecks());
    Aspects.of(app).add(new ServerlessChecks());
  }
  return stack;
}

const WATCHED = { alarmEmail: 'operator@example.com', tracing: true };
const NETWORK = { vpcId: 'vpc-0123abcd', subnetIds: 'subnet-0123abcd,subnet-4567cdef' };
const VARIANT = { env: 'dev', retain: true, ...WATCHED };

/** The contexts of deployments that have other resources, or another order of them, than the others. */
export const DEPLOYMENTS = {
  dev: { env: 'dev', ...WATCHED },
  prod: { env: 'prod', ...WATCHED },
  'dev with images that docker builds': { ...VARIANT, workerImage: '' },
  'dev with images that CodeBuild builds': {
    ...VARIANT,
    workerImage: '',
    imageBuild: 'codebuild',
    pythons: '3.12,3.13',
  },
  'dev in an existing network': { ...VARIANT, ...NETWORK },
  'dev with a private API': { ...VARIANT, ...NETWORK, apiVpcEndpoint: 'vpce-0123abcd' },
} satisfies Record<string, Context>;

const templates = new Map<string, Template>();

/** Returns the template of the stack with this context. Each template is made only once. */
export function template(context: Context): Template {
  const key = JSON.stringify(context, (_name, value) => value ?? null);
  const known = templates.get(key);
  if (known) {
    return known;
  }
  const made = Template.fromStack(synthesize(context));
  templates.set(key, made);
  return made;
}

/** Returns the only resource of a type whose logical id starts with `prefix`. */
export function only(from: Template, type: string, prefix = ''): Resource {
  const found = Object.entries(from.findResources(type)).filter(([id]) => id.startsWith(prefix));
  const [first] = found;
  if (found.length !== 1 || first === undefined) {
    throw new Error(`${found.length} resources of type ${type} start with ${prefix || 'anything'}`);
  }
  return first[1] as Resource;
}

/** Joins the texts of a CloudFormation function, with <?> for values that only CloudFormation knows. */
export function text(value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  const joined = value as { 'Fn::Join'?: [string, unknown[]]; 'Fn::Base64'?: unknown };
  if (joined['Fn::Base64'] !== undefined) {
    return text(joined['Fn::Base64']);
  }
  if (joined['Fn::Join'] !== undefined) {
    return joined['Fn::Join'][1].map(text).join(joined['Fn::Join'][0]);
  }
  return '<?>';
}
