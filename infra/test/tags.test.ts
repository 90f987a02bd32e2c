import { type CfnResource, TagManager } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { synthesize } from './deployment';

const PARTS = ['storage', 'queue', 'master', 'fleet', 'observability'];

function taggable(context: Record<string, unknown>): Map<string, Record<string, string>> {
  const stack = synthesize(context);
  Template.fromStack(stack); // the CDK adds the tags while it makes the template
  return new Map(
    stack.node.findAll().flatMap((each) => {
      const tags = TagManager.of(each);
      const isResource = 'cfnResourceType' in each;
      return tags && isResource
        ? [[`${(each as CfnResource).cfnResourceType} ${each.node.path}`, tags.tagValues()] as const]
        : [];
    }),
  );
}

describe.each([{ env: 'dev' }, { env: 'prod', dashboard: true, alarmEmail: 'operator@example.com', budgetUsd: 50 }])(
  'cost allocation tags in %j',
  (context) => {
    const found = taggable(context);

    it('every resource that can have tags names its environment and its part', () => {
      expect(found.size).toBeGreaterThan(30);
      const bare = [...found].filter(
        ([, tags]) => tags['cloudpar:environment'] !== context.env || !PARTS.includes(tags['cloudpar:part'] as string),
      );
      expect(bare.map(([name]) => name)).toEqual([]);
    });

    it('each part has resources of its own', () => {
      const parts = new Set([...found.values()].map((tags) => tags['cloudpar:part']));
      expect([...parts].toSorted()).toEqual(
        PARTS.filter((part) => part !== 'observability' || 'alarmEmail' in context).toSorted(),
      );
    });
  },
);

describe('instances', () => {
  it('pass the tags on to their volumes, which cost money, too', () => {
    const template = Template.fromStack(synthesize({ env: 'dev' }));
    const tags = expect.arrayContaining([
      { Key: 'cloudpar:environment', Value: 'dev' },
      { Key: 'cloudpar:part', Value: 'fleet' },
    ]);
    for (const { Properties } of Object.values(template.findResources('AWS::EC2::LaunchTemplate'))) {
      const specifications = Properties.LaunchTemplateData.TagSpecifications;
      for (const ResourceType of ['instance', 'volume']) {
        expect(specifications).toContainEqual({ ResourceType, Tags: tags });
      }
    }
  });
});
