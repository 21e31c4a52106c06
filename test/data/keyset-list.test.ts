import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { bucketsMade } from '../support/buckets.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';

let app: TestApp;
let log: QueryLog;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000' } });
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

const EVERYTHING = `query ($orgs: Int!, $first: Int!) {
  organizations(first: $orgs) { nodes {
    id role
    members(first: $first) { totalCount nodes { userId } }
    invitations(first: $first) { totalCount nodes { id } }
    workspaces(first: $first) { totalCount nodes {
      id
      organization { id name }
      owner { id username roles }
      members(first: $first) { totalCount nodes { userId } }
      namespaces(first: $first) { totalCount nodes { id workspace { id }
        threads(first: $first) { totalCount nodes { id namespace { id } } } } }
      apps(first: $first) { totalCount pageInfo { endCursor hasNextPage }
        nodes { id releases(first: $first) { totalCount nodes { number app { id } } } } }
    } }
  } }
}`;

/** An organization with `n` workspaces, each with `n` apps of two releases and a thread. */
async function fill(owner: Person, n: number): Promise<string> {
  const { org_id } = (await owner.call<{ org_id: string }>('POST', '/v1/orgs', { name: 'Filled' })).body;
  for (let i = 0; i < n; i++) {
    const { workspace_id } = (
      await owner.call<{ workspace_id: string }>('POST', `/v1/orgs/${org_id}/workspaces`, {
        organization_id: org_id,
        name: `w${i}`,
      })
    ).body;
    const home = `/v1/orgs/${org_id}/workspaces/${workspace_id}`;
    await owner.call('POST', `${home}/namespaces/default/threads`, {});
    for (let k = 0; k < n; k++) {
      const { app_id } = (await owner.call<{ app_id: string }>('POST', `${home}/apps`, { name: `a${k}` })).body;
      for (let m = 0; m < 2; m++) await owner.call('POST', `${home}/apps/${app_id}/releases`, {});
    }
  }
  await owner.call('POST', `/v1/orgs/${org_id}/invitations`, { email: `${org_id}@example.test` });
  return org_id;
}

interface Answer {
  organizations: {
    nodes: {
      id: string;
      workspaces: {
        totalCount: number;
        nodes: {
          id: string;
          owner: { id: string };
          apps: {
            totalCount: number;
            nodes: { id: string; releases: { totalCount: number; nodes: { number: number; app: { id: string } }[] } }[];
          };
        }[];
      };
    }[];
  };
}

test('the number of SQL statements does not depend on how many parents nested lists and objects have', async () => {
  const ann = await register(app, { name: 'ann' });
  const ids = [ann.orgId];
  for (let i = 0; i < 3; i++) ids.push(await fill(ann, 3));
  // new workspaces get their buckets in the background, with statements of its own
  await bucketsMade(app);
  /** The fewest statements of some runs: other background tasks send some in between. */
  const measure = async (variables: { orgs: number; first: number }) => {
    let fewest = Infinity;
    let answer: { data: Answer; errors?: unknown } | undefined;
    for (let run = 0; run < 5; run++) {
      // cached access of the previous run would hide statements
      for (const id of ids) app.services.access.facts.organizationDeleted(id);
      const statements = await log.during(async () => (answer = await ann.ask<Answer>(EVERYTHING, variables)));
      fewest = Math.min(fewest, statements.length);
    }
    expect(answer?.errors).toBeUndefined();
    return { fewest, organizations: answer!.data.organizations.nodes };
  };
  const few = await measure({ orgs: 2, first: 2 });
  const many = await measure({ orgs: 4, first: 10 });
  expect(many.fewest).toBe(few.fewest);
  expect(many.organizations.map(({ id }) => id)).toEqual(ids);
  for (const { workspaces } of many.organizations.slice(1)) {
    expect(workspaces.totalCount).toBe(4);
    expect(workspaces.nodes.map(({ apps }) => apps.totalCount)).toEqual([3, 3, 3, 0]);
    for (const { owner, apps } of workspaces.nodes) {
      expect(owner.id).toBe(ann.userId);
      for (const { id, releases } of apps.nodes) {
        expect(releases).toMatchObject({
          totalCount: 2,
          nodes: [
            { number: 2, app: { id } },
            { number: 1, app: { id } },
          ],
        });
      }
    }
  }
});

test('an app and a namespace lead back to their workspace', async () => {
  const ann = await register(app, { name: 'ann' });
  await ann.call('POST', `${ann.home}/apps`, { name: 'App' });
  const place = { orgId: ann.orgId, workspaceId: ann.workspaceId };
  const query = `query ($orgId: ID!, $workspaceId: ID!) {
    apps(orgId: $orgId, workspaceId: $workspaceId) { nodes { workspace { id name } } }
    namespaces(orgId: $orgId, workspaceId: $workspaceId) { nodes { workspace { id name } } }
  }`;
  const nodes = [{ workspace: { id: ann.workspaceId, name: 'Default workspace' } }];
  expect((await ann.ask(query, place)).data).toEqual({ apps: { nodes }, namespaces: { nodes } });
});

test('a nested list has the rows, the order and the cursors of the root list', async () => {
  const bob = await register(app, { name: 'bob' });
  const orgId = await fill(bob, 3);
  const [workspaceId] = (
    await bob.ask<{ workspaces: { nodes: { id: string }[] } }>(
      'query ($orgId: ID!) { workspaces(orgId: $orgId) { nodes { id } } }',
      { orgId },
    )
  ).data.workspaces.nodes.map(({ id }) => id);
  const rootList =
    'query ($orgId: ID!, $workspaceId: ID!, $after: String) { apps(orgId: $orgId, workspaceId: $workspaceId, ' +
    'first: 2, after: $after) { totalCount pageInfo { hasNextPage endCursor } edges { cursor node { id } } } }';
  const nestedList =
    'query ($orgId: ID!, $workspaceId: ID!, $after: String) { workspace(orgId: $orgId, id: $workspaceId) ' +
    '{ apps(first: 2, after: $after) { totalCount pageInfo { hasNextPage endCursor } ' +
    'edges { cursor node { id } } } } }';
  interface List {
    pageInfo: { endCursor: string | null };
  }
  let after: string | null = null;
  for (let page = 0; page < 2; page++) {
    const root: List = (await bob.ask<{ apps: List }>(rootList, { orgId, workspaceId, after })).data.apps;
    const nested: List = (await bob.ask<{ workspace: { apps: List } }>(nestedList, { orgId, workspaceId, after })).data
      .workspace.apps;
    expect(nested).toEqual(root);
    expect(root).toMatchObject({ totalCount: 3, edges: { length: 2 - page } });
    after = root.pageInfo.endCursor;
  }
  expect(after).toBeNull();
});

test('workspaces nested below organizations are those of the root list, for each role', async () => {
  const owner = await register(app, { name: 'owner' });
  await owner.call('POST', `/v1/orgs/${owner.orgId}/workspaces`, { organization_id: owner.orgId, name: 'Closed' });
  const nested = '{ organizations { nodes { id workspaces { totalCount nodes { id } } } } }';
  const root = 'query ($orgId: ID!) { workspaces(orgId: $orgId) { totalCount nodes { id } } }';
  interface Nested {
    organizations: { nodes: { id: string; workspaces: { totalCount: number } }[] };
  }
  const counts: Record<string, number> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin', 'owner'] as const) {
    const who = role === 'owner' ? owner : await colleague(app, owner, role);
    for (const { id: orgId, workspaces } of (await who.ask<Nested>(nested)).data.organizations.nodes) {
      expect(workspaces).toEqual((await who.ask<{ workspaces: object }>(root, { orgId })).data.workspaces);
      if (orgId === owner.orgId) counts[role] = workspaces.totalCount;
    }
  }
  expect(counts).toEqual({ viewer: 1, member: 1, editor: 1, admin: 2, owner: 2 });
});

test('invitations of an organization that one does not administer: null with an error, all else intact', async () => {
  const owner = await register(app, { name: 'owner' });
  const member = await colleague(app, owner, 'member');
  const answer = await member.ask<{ organizations: { nodes: object[] } }>(
    '{ organizations { nodes { id invitations { totalCount } } } }',
  );
  expect(answer.data.organizations.nodes).toEqual([
    { id: owner.orgId, invitations: null },
    { id: member.orgId, invitations: { totalCount: 0 } },
  ]);
  expect(answer.errors).toMatchObject([
    { extensions: { code: 'FORBIDDEN', details: { required_permission: 'invitation:read' } } },
  ]);
});

test('the owner of a workspace is shown only while a member of the organization', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  await ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: bob.userId, role: 'owner' });
  const query = 'query ($orgId: ID!, $id: ID!) { workspace(orgId: $orgId, id: $id) { ownerId owner { username } } }';
  const variables = { orgId: ann.orgId, id: ann.workspaceId };
  expect((await bob.ask(query, variables)).data).toEqual({
    workspace: { ownerId: ann.userId, owner: { username: ann.username } },
  });
  await ann.call('POST', `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}/members`, {
    user_id: bob.userId,
    role: 'owner',
  });
  expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${ann.userId}`)).status).toBe(204);
  expect((await bob.ask(query, variables)).data).toEqual({ workspace: { ownerId: ann.userId, owner: null } });
});
