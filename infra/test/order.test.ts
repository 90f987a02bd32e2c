/**
 * AWS checks some things only when it creates or deletes a resource, and no emulator does. So the template must state
 * which resources have to exist before which others. Each rule here is about all resources of a type. To show that the
 * rules find violations, a test applies them to a template without order.
 */
import { describe, expect, it } from 'vitest';
import { template } from './deployment';
import { Graph } from './graph';

const ENVIRONMENTS = ['dev', 'prod'];
const graphs = new Map(
  ENVIRONMENTS.map((env) => [env, Graph.of(template({ env, alarmEmail: 'operator@example.com', tracing: true }))]),
);
const dev = graphs.get('dev') as Graph;

/** The policies of the roles that a resource refers to, in its own properties or by an instance profile. */
function policies(graph: Graph, id: string): string[] {
  const roles = [id, ...graph.before(id)].filter((each) => graph.resources[each]?.Type === 'AWS::IAM::Role');
  return graph.ids('AWS::IAM::Policy', ({ Roles }) => graph.references(Roles).some((role) => roles.includes(role)));
}

/** Lambda refuses to create a function if its role may not yet write traces, or receive from a queue. */
function functionsBeforeTheirPolicies(graph: Graph): string[] {
  return graph.ids('AWS::Lambda::Function').flatMap((id) => {
    const [role] = graph.references(graph.properties(id)['Role']);
    return graph.late(
      id,
      graph.ids('AWS::IAM::Policy', ({ Roles }) => graph.references(Roles).includes(role as string)),
    );
  });
}

function tracedWithoutPermission(graph: Graph): string[] {
  const traced = graph.ids(
    'AWS::Lambda::Function',
    ({ TracingConfig }) => (TracingConfig as { Mode?: string } | undefined)?.Mode === 'Active',
  );
  expect(traced).toHaveLength(3);
  return traced.filter(
    (id) =>
      ![...graph.before(id)].some((each) => {
        const { Type, Properties } = graph.resources[each] as { Type: string; Properties: object };
        return Type === 'AWS::IAM::Policy' && JSON.stringify(Properties).includes('"xray:PutTraceSegments"');
      }),
  );
}

/**
 * While instances with public addresses run, AWS detaches no gateway. Without their routes, workers cannot publish the
 * results of the tasks that run.
 */
function groupsBeforeTheirNetwork(graph: Graph): string[] {
  return graph.ids('AWS::AutoScaling::AutoScalingGroup').flatMap((id) => {
    const subnets = graph.references(graph.properties(id)['VPCZoneIdentifier']);
    const associations = graph.ids('AWS::EC2::SubnetRouteTableAssociation', ({ SubnetId }) =>
      graph.references(SubnetId).some((subnet) => subnets.includes(subnet)),
    );
    const tables = associations.flatMap((each) => graph.references(graph.properties(each)['RouteTableId']));
    const routes = graph.ids('AWS::EC2::Route', ({ RouteTableId }) =>
      graph.references(RouteTableId).some((table) => tables.includes(table)),
    );
    expect(subnets.length).toBeGreaterThan(1);
    expect([associations, routes].map((each) => each.length)).toEqual([subnets.length, subnets.length]);
    return graph.late(id, [...graph.ids('AWS::EC2::VPCGatewayAttachment'), ...associations, ...routes]);
  });
}

/** An instance reads a secret when it boots, so its role must have its policies by then. */
function groupsBeforeTheirPolicies(graph: Graph): string[] {
  return graph.ids('AWS::AutoScaling::AutoScalingGroup').flatMap((id) => graph.late(id, policies(graph, id)));
}

/** Lambda makes a log group for such a function. This group never deletes a line, and no stack deletes the group. */
function functionsWithoutALog(graph: Graph): string[] {
  return graph.ids('AWS::Lambda::Function').filter((id) => {
    const { LogGroup } = (graph.properties(id)['LoggingConfig'] ?? {}) as { LogGroup?: unknown };
    return !graph.references(LogGroup).some((each) => graph.resources[each]?.Type === 'AWS::Logs::LogGroup');
  });
}

/**
 * If the first creation of a stack fails, CloudFormation deletes what it has made. It leaves retained resources behind
 * at each attempt. A protected resource, which it cannot delete, blocks the stack.
 */
function leftBehindByAFailedCreation(graph: Graph): string[] {
  return Object.entries(graph.resources)
    .filter(
      ([, { DeletionPolicy, Properties }]) =>
        DeletionPolicy === 'Retain' || Properties['DeletionProtectionEnabled'] === true,
    )
    .map(([id]) => id);
}

function logsWithoutAnEnd(graph: Graph): string[] {
  return graph.ids('AWS::Logs::LogGroup', ({ RetentionInDays }) => typeof RetentionInDays !== 'number');
}

describe.each(ENVIRONMENTS)('in %s', (env) => {
  const graph = graphs.get(env) as Graph;

  it.each([
    ['a function waits for all policies of its role', functionsBeforeTheirPolicies],
    ['a traced function may write traces when it is created', tracedWithoutPermission],
    ['the group of instances waits for its gateway and routes, and ends before them', groupsBeforeTheirNetwork],
    ['the group of instances waits for the policies of its hosts', groupsBeforeTheirPolicies],
    ['a function has a log group of the stack', functionsWithoutALog],
    ['logs end', logsWithoutAnEnd],
    ['a first creation that fails leaves nothing behind', leftBehindByAFailedCreation],
  ])('%s', (_, violations) => {
    expect(violations(graph)).toEqual([]);
  });
});

describe('a template without order', () => {
  const names = (violations: string[]) => violations.map((text) => text.replaceAll(/[0-9A-F]{8}\b/g, ''));

  it('has functions that AWS may refuse', () => {
    expect(names(functionsBeforeTheirPolicies(dev.unordered))).toEqual(
      ['Client', 'Worker', 'Account', 'Timer'].map((each) => `Services${each} does not wait for Grants${each}`),
    );
    expect(names(tracedWithoutPermission(dev.unordered))).toEqual(
      ['Client', 'Worker', 'Account'].map((each) => `Services${each}`),
    );
  });

  it('has instances without a network and without permissions', () => {
    expect(names(groupsBeforeTheirPolicies(dev.unordered))).toEqual([
      expect.stringMatching(/^FleetGroup\w* does not wait for GrantsFleet$/),
    ]);
    expect(groupsBeforeTheirNetwork(dev.unordered).length).toBeGreaterThan(4);
  });
});
