import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { register } from '../support/person.ts';
import { injectable, partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
/** Belongs to no organization of the world, whatever the operations do. */
let outsider: string;
let count = 0;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  outsider = (await register(app, { username: 'outsider' })).accessToken;
});
afterAll(() => app.close());

/** The status of a request and what its record says that it was about. */
async function recorded(operation: (typeof operations)[number], token: string) {
  const traceId = `named-${++count}`;
  const parts = partsOf(operation, world, { token });
  const request = injectable(operation, { ...parts, headers: { ...parts.headers, 'x-trace-id': traceId } });
  const { statusCode, body } = await app.server.inject(request);
  await app.services.activity.flush();
  const found = await app.database.prisma.activity.findMany({
    where: { traceId },
    select: {
      resourceType: true,
      resourceId: true,
      action: true,
      orgId: true,
      workspaceId: true,
      appId: true,
      named: true,
    },
  });
  // what a stranger names is in no column that lists have
  const records = found.map(({ named, ...record }) => {
    const { resource_id, workspace_id, app_id } = (named ?? {}) as Record<string, string>;
    const { resourceId, workspaceId, appId } = record;
    return {
      ...record,
      resourceId: resourceId ?? resource_id ?? null,
      workspaceId: workspaceId ?? workspace_id ?? null,
      appId: appId ?? app_id ?? null,
    };
  });
  return { statusCode, body, records, params: parts.params, query: parts.query };
}

const operations = gentlestFirst().filter(
  ({ type, isPublic, path }) => type !== 'subscription' && !isPublic && path.includes('{'),
);

test.each(operations.map((operation) => [routeOf(operation), operation] as const))(
  '%s: a refusal is recorded as being about what a success is about',
  async (_title, operation) => {
    const refused = await recorded(operation, outsider);
    const done = await recorded(operation, world.accounts.owner.accessToken);
    expect([403, 404], refused.body).toContain(refused.statusCode);
    const [failure, ...more] = refused.records;
    const success = done.records[0];
    expect([more.length, done.records.length], done.body).toEqual([0, 1]);
    // reading the values of versions is a reveal
    const action = success?.action === 'reveal' && operation.type === 'query' ? 'read' : success?.action;
    expect(failure).toMatchObject({ resourceType: success?.resourceType, action });
    // what the path and the query name is in both; what was only found or made on the way, in the success alone
    const known = Object.values({ ...done.params, ...done.query });
    const named = (id: string | null | undefined) => (known.includes(id ?? '') ? id : null);
    // an entitlement is found by its model, and recorded by an id of its own
    const isFound =
      operation.method !== 'POST' && failure?.resourceId && success?.resourceId && !named(success.resourceId);
    expect({ ...failure, orgId: named(failure?.orgId) }).toMatchObject({
      resourceId: isFound ? success.resourceId : named(success?.resourceId),
      orgId: named(success?.orgId),
      workspaceId: named(success?.workspaceId),
      appId: named(success?.appId),
    });
  },
);
