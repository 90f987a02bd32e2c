import type { Template } from 'aws-cdk-lib/assertions';

export interface Node {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
  readonly DependsOn?: string | string[];
  readonly DeletionPolicy?: string;
}

/** The resources of a template, and in which order CloudFormation creates them. It deletes them in the reverse order. */
export class Graph {
  private constructor(readonly resources: Readonly<Record<string, Node>>) {}

  static of(template: Template): Graph {
    const all = template.toJSON()['Resources'] as Record<string, Partial<Node> & { Type: string }>;
    return new Graph(
      Object.fromEntries(Object.entries(all).map(([id, each]) => [id, { Properties: {}, ...each } as Node])),
    );
  }

  /** The same resources without any DependsOn: only references give an order. */
  get unordered(): Graph {
    return new Graph(
      Object.fromEntries(Object.entries(this.resources).map(([id, { DependsOn: _, ...rest }]) => [id, rest])),
    );
  }

  ids(type: string, wanted: (properties: Record<string, unknown>) => boolean = () => true): string[] {
    return Object.entries(this.resources)
      .filter(([, { Type, Properties }]) => Type === type && wanted(Properties))
      .map(([id]) => id);
  }

  properties(id: string): Record<string, unknown> {
    return (this.resources[id] as Node).Properties;
  }

  /** The resources that a value refers to. */
  references(value: unknown): string[] {
    if (Array.isArray(value)) {
      return value.flatMap((each) => this.references(each));
    }
    if (typeof value !== 'object' || value === null) {
      return [];
    }
    const found = Object.entries(value).flatMap(([key, inner]): string[] => {
      if (key === 'Ref') {
        return [inner as string];
      }
      if (key === 'Fn::GetAtt') {
        return [Array.isArray(inner) ? inner[0] : (inner as string).split('.')[0]];
      }
      if (key === 'Fn::Sub') {
        const text = Array.isArray(inner) ? inner[0] : inner;
        return [...(text as string).matchAll(/\$\{(\w+)/g)].map(([, name]) => name as string);
      }
      return this.references(inner);
    });
    return found.filter((id) => id in this.resources);
  }

  /** All resources that CloudFormation creates before this one, and deletes after it. */
  before(id: string): ReadonlySet<string> {
    const seen = new Set<string>();
    const open = [id];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { DependsOn = [], Properties } = this.resources[next] as Node;
      for (const each of [DependsOn, this.references(Properties)].flat()) {
        if (!seen.has(each)) {
          seen.add(each);
          open.push(each);
        }
      }
    }
    return seen;
  }

  /** Returns a sentence for each of these resources that CloudFormation may create after the resource with this id. */
  late(id: string, needed: readonly string[]): string[] {
    const there = this.before(id);
    return needed.filter((each) => !there.has(each)).map((each) => `${id} does not wait for ${each}`);
  }
}
