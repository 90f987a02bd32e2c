import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stack } from 'aws-cdk-lib';
import * as assets from 'aws-cdk-lib/aws-ecr-assets';
import type { Construct } from 'constructs';
import { ImageBuilder } from './image-builder';
import type { Architecture, Settings } from './settings';

const REPOSITORY = join(import.meta.dirname, '..', '..');
/** All files that worker/Dockerfile copies. */
const SOURCES = [
  'pyproject.toml',
  'README.md',
  'LICENSE',
  'sdk/protocol',
  'sdk/python',
  'functions/cloudpar_master',
  'worker',
];
const CACHES = /(^|\/)(__pycache__|\.[^/]+|.*\.pyc)$/;

/** An image, and the ARN of its repository if hosts need a permission to pull the image. */
export interface WorkerImage {
  readonly uri: string;
  readonly repositoryArn?: string;
}

/** How the image of an architecture is made from a folder, which has the files that worker/Dockerfile reads. */
export interface ImageBuild {
  readonly directory: string;
  readonly file: string;
  readonly platform: assets.Platform;
  readonly pythons: readonly string[];
}

/**
 * Returns the image for each architecture: the image that the settings name, or one that is built from
 * worker/Dockerfile at the deployment, by docker on this machine or by CodeBuild.
 */
export function workerImages(scope: Construct, settings: Settings): Map<Architecture, WorkerImage> {
  const { workerImage, architectures, pythons } = settings;
  if (workerImage) {
    const arn = repositoryArn(scope, workerImage);
    return new Map(architectures.map((name) => [name, { uri: workerImage, ...(arn && { repositoryArn: arn }) }]));
  }
  const builder = settings.imageBuild === 'codebuild' ? new ImageBuilder(scope, 'ImageBuilder', settings) : undefined;
  const directory = buildContext(settings.requirements);
  const images = new Map(
    architectures.map((architecture) => {
      const platform = architecture === 'arm64' ? assets.Platform.LINUX_ARM64 : assets.Platform.LINUX_AMD64;
      const build = { directory, file: 'worker/Dockerfile', platform, pythons };
      return [architecture, builder?.build(architecture, build) ?? local(scope, architecture, build)];
    }),
  );
  rmSync(directory, { recursive: true }); // the CDK has made its own copy
  return images;
}

function local(scope: Construct, architecture: Architecture, build: ImageBuild): WorkerImage {
  const { pythons, ...options } = build;
  const asset = new assets.DockerImageAsset(scope, architecture === 'arm64' ? 'ImageArm64' : 'ImageX86', {
    ...options,
    buildArgs: { PYTHONS: pythons.join(' ') },
    displayName: `Cloud Parallelizer worker, ${architecture}`,
  });
  return { uri: asset.imageUri, repositoryArn: asset.repository.repositoryArn };
}

/** Copies exactly the files that the Dockerfile reads, so that a change of any other file makes no new image. */
export function buildContext(requirements: string | undefined): string {
  const context = mkdtempSync(join(tmpdir(), 'cloudpar-worker-image-'));
  for (const source of SOURCES) {
    cpSync(join(REPOSITORY, source), join(context, source), {
      recursive: true,
      filter: (path) => !CACHES.test(path.slice(REPOSITORY.length)),
    });
  }
  mkdirSync(join(context, 'user'));
  if (requirements) {
    cpSync(requirements, join(context, 'user', 'requirements.txt'));
  } else {
    writeFileSync(join(context, 'user', 'requirements.txt'), '');
  }
  return context;
}

function repositoryArn(scope: Construct, image: string): string | undefined {
  const found = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\/([^:@]+)/.exec(image);
  if (!found) {
    return undefined; // the registry is not one of AWS, so pulling needs no permission of AWS
  }
  const [, account, region, resourceName] = found;
  return Stack.of(scope).formatArn({ service: 'ecr', account, region, resource: 'repository', resourceName });
}
