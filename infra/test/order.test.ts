/**
 * AWS checks some things only when it creates or deletes a resource, and no emulator does. So the template must state
 * which resources have to exist before which others. Each rule here is about all resources of a type. To show that the
 * rules find violations, a test applies them to a template without order.
 */
import { describe, expect, it } from 'vitest';
import contract from '../lib/contract.json';
import { DEPLOYMENTS, template } from './deployment';
import { Graph } from './graph';

const graphOf = (name: keyof typeof DEPLOYMENTS) => Graph.of(template(DEPLOYMENTS[name]));
const dev = graphOf('dev');

/** The policies of those of these resources that are roles. */
function policies(graph: Graph, resources: Iterable<string>): string[] {
  const roles = [...resources].filter((each) => graph.resources[each]?.Type === 'AWS::IAM::Role');
  return graph.ids('AWS::IAM::Policy', ({ Roles }) => graph.references(Roles).some((role) => roles.includes(role)));
}

/** Lambda refuses to create a function if its role may not yet write traces, or receive from a queue. */
function functionsBeforeTheirPolicies(graph: Graph): string[] {
  return graph.ids('AWS::Lambda::Function').flatMap((id) => {
    const roles = graph.references(graph.properties(id)['Role']);
    return graph.late(id, policies(graph, roles));
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
 * results of the tasks that run. An existing network has its routes already, and keeps them.
 */
function groupsBeforeTheirNetwork(graph: Graph): string[] {
  return graph.ids('AWS::AutoScaling::AutoScalingGroup').flatMap((id) => {
    const zones = graph.properties(id)['VPCZoneIdentifier'] as unknown[];
    const subnets = graph.references(zones);
    const associations = graph.ids('AWS::EC2::SubnetRouteTableAssociation', ({ SubnetId }) =>
      graph.references(SubnetId).some((subnet) => subnets.includes(subnet)),
    );
    const tables = associations.flatMap((each) => graph.references(graph.properties(each)['RouteTableId']));
    const routes = graph.ids('AWS::EC2::Route', ({ RouteTableId }) =>
      graph.references(RouteTableId).some((table) => tables.includes(table)),
    );
    expect(zones.length).toBeGreaterThan(1);
    expect(subnets).toHaveLength(graph.ids('AWS::EC2::VPC').length * zones.length);
    expect([associations, routes].map((each) => each.length)).toEqual([subnets.length, subnets.length]);
    return graph.late(id, [...graph.ids('AWS::EC2::VPCGatewayAttachment'), ...associations, ...routes]);
  });
}

/** An instance reads a secret when it boots, so its role must have its policies by then. */
function groupsBeforeTheirPolicies(graph: Graph): string[] {
  return graph
    .ids('AWS::AutoScaling::AutoScalingGroup')
    .flatMap((id) => graph.late(id, policies(graph, graph.before(id))));
}

/** CloudFormation calls the function that starts a build, and the build pushes an image. Each has its own role. */
function buildsBeforeTheirPolicies(graph: Graph): string[] {
  return graph.ids('Custom::CDKContainerImageBuild').flatMap((id) => {
    const used = graph.references(graph.properties(id)).flatMap((each) => graph.references(graph.properties(each)));
    return graph.late(id, policies(graph, used));
  });
}

/** A deployment of a REST API is a copy: it never gets a method that is made later. */
function deploymentsBeforeTheirMethods(graph: Graph): string[] {
  const methods = graph.ids('AWS::ApiGateway::Method');
  return graph.ids('AWS::ApiGateway::Deployment').flatMap((id) => graph.late(id, methods));
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

describe.each(Object.entries(DEPLOYMENTS))('%s:', (_name, context) => {
  const graph = Graph.of(template(context));

  it.each([
    ['a function waits for all policies of its role', functionsBeforeTheirPolicies],
    ['a traced function may write traces when it is created', tracedWithoutPermission],
    ['the group of instances waits for its gateway and routes, and ends before them', groupsBeforeTheirNetwork],
    ['the group of instances waits for the policies of its hosts', groupsBeforeTheirPolicies],
    ['a build waits for the policies of its roles', buildsBeforeTheirPolicies],
    ['a deployment of the API waits for its methods', deploymentsBeforeTheirMethods],
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

  it('has builds without permissions', () => {
    const late = buildsBeforeTheirPolicies(graphOf('dev with images that CodeBuild builds').unordered);
    // The library's names contain its ids, which it never changes.
    expect(names(late).map((text) => text.replaceAll(/(db740fd5|e83729fe)\w+/g, ''))).toEqual([
      'FleetImageBuilderArm64 does not wait for DeployTimeBuildCustomResourceHandler',
      'FleetImageBuilderArm64 does not wait for ContainerImageBuildArm64',
      'FleetImageBuilderX86 does not wait for DeployTimeBuildCustomResourceHandler',
      'FleetImageBuilderX86 does not wait for ContainerImageBuildAmd64',
    ]);
  });

  it('has an API without its methods', () => {
    const late = deploymentsBeforeTheirMethods(graphOf('dev with a private API').unordered);
    expect(late).toHaveLength(contract.workerRoutes.length + 1);
  });
});
