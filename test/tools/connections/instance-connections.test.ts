import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { type Person, register } from '../../support/person.ts';
import { logQueries, type QueryLog } from '../../support/query-log.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { issueToken } from '../../support/tokens.ts';
import { makeInstance, makeTool } from '../../support/tool-instance.ts';

let app: TestApp;
let log: QueryLog;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000' } });
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

interface Made {
  connection_id: string;
}

const newNamespace = async (person: Person, name: string): Promise<string> =>
  (await person.call<{ namespace_id: string }>('POST', `${person.home}/namespaces`, { name })).body.namespace_id;

/** Connects an instance for the workspace, or for a namespace. @returns the id of the connection */
async function connectByKey(person: Person, instanceId: string, namespaceId?: string): Promise<string> {
  const url = namespaceId ? `namespaces/${namespaceId}/connections` : 'connections/api-key';
  const payload = { tool_instance_id: instanceId, api_key: 'k' };
  return (await person.call<Made>('POST', `${person.home}/${url}`, payload)).body.connection_id;
}

interface Shown {
  totalCount: number;
  nodes: { id: string }[];
  pageInfo: { endCursor: string | null; hasNextPage: boolean };
}
const LIST = `query ($orgId: ID!, $workspaceId: ID!, $id: ID!, $first: Int! = 20, $after: String) {
  toolInstance(orgId: $orgId, workspaceId: $workspaceId, id: $id) {
    connections(first: $first, after: $after) { totalCount nodes { id } pageInfo { endCursor hasNextPage } } } }`;

/** An instance with three connections, one of another instance, and who asks for them. */
async function connected() {
  const ann = await register(app, { name: 'ann' });
  const [notes, others] = [await newNamespace(ann, 'Notes'), await newNamespace(ann, 'Others')];
  const [id, another] = [await makeInstance(ann), await makeInstance(ann)];
  await connectByKey(ann, another, notes);
  const ids = [await connectByKey(ann, id), await connectByKey(ann, id, notes), await connectByKey(ann, id, others)];
  const ask = async (authorization = ann.headers.authorization, more: object = {}) => {
    const variables = { orgId: ann.orgId, workspaceId: ann.workspaceId, id, ...more };
    const answer = await app.server.inject(graphqlRequest(LIST, variables, authorization));
    return answer.json<{
      data: { toolInstance: { connections: Shown } } | null;
      errors?: { extensions: { code: string; details: object } }[];
    }>();
  };
  return { ann, notes, id, ids, ask };
}

test('an instance lists its connections, newest first, by pages', async () => {
  const { ids, ask } = await connected();
  const newestFirst = ids.toReversed().map((id) => ({ id }));
  const { data } = await ask();
  expect(data!.toolInstance.connections).toMatchObject({ totalCount: 3, nodes: newestFirst });
  const first = (await ask(undefined, { first: 2 })).data!.toolInstance.connections;
  expect([first.nodes, first.pageInfo.hasNextPage]).toEqual([newestFirst.slice(0, 2), true]);
  const last = (await ask(undefined, { first: 2, after: first.pageInfo.endCursor })).data!.toolInstance.connections;
  expect([last.nodes, last.pageInfo.hasNextPage]).toEqual([newestFirst.slice(2), false]);
});

test('a token sees the connections of its namespaces and the workspace, and none without permission', async () => {
  const { ann, notes, ids, ask } = await connected();
  const permissions = ['tool_instance:read', 'connection:read'];
  const { headers } = await issueToken(app, ann, { permissions, namespace_ids: [notes] });
  const { data } = await ask(headers.authorization);
  expect(data!.toolInstance.connections).toMatchObject({
    totalCount: 2,
    nodes: [{ id: ids[1] }, { id: ids[0] }],
  });
  const without = await issueToken(app, ann, { permissions: ['tool_instance:read'] });
  expect((await ask(without.headers.authorization)).errors).toMatchObject([
    { extensions: { code: 'FORBIDDEN', details: { required_permission: 'connection:read' } } },
  ]);
});

test('tools, instances and connections take as many statements a level for 50 rows as for two', async () => {
  const ann = await register(app, { name: 'ann' });
  const notes = await newNamespace(ann, 'Notes');
  for (let i = 0; i < 50; i++) {
    const id = await makeInstance(ann, { toolId: await makeTool(ann), namespaceId: i % 2 ? notes : undefined });
    await connectByKey(ann, id);
    await connectByKey(ann, id, notes);
  }
  stopAges(); // a slow run would outlast what access checks keep
  const count = async (levels: string, shown: (data: never) => unknown[]) => {
    const least = async (first: number) => {
      const runs: number[] = [];
      for (let run = 0; run < 4; run++) {
        const statements = await log.during(async () => {
          const { data, errors } = await ann.ask(`query ($first: Int!) { ${levels} }`, { first });
          expect(errors).toBeUndefined();
          expect(shown(data as never)).toHaveLength(first);
        });
        runs.push(statements.length);
      }
      // what access checks keep for a moment must not blur the count
      return Math.min(...runs);
    };
    return [await least(2), await least(50)];
  };
  interface Page {
    nodes: unknown[];
  }
  const place = `orgId: "${ann.orgId}", id: "${ann.workspaceId}"`;
  const ofWorkspace = (inner: string) =>
    count(
      `workspace(${place}) { toolInstances(first: $first) { nodes { id ${inner} } } }`,
      ({ workspace }: { workspace: { toolInstances: Page } }) => workspace.toolInstances.nodes,
    );
  const ofTools = (inner: string) =>
    count(
      `organization(id: "${ann.orgId}") { tools(first: $first) { nodes { id ${inner} } } }`,
      ({ organization }: { organization: { tools: Page } }) => organization.tools.nodes,
    );
  const alone = await ofWorkspace('');
  const [one] = alone;
  const more = (statements: number) => [one! + statements, one! + statements];
  expect(alone).toEqual(more(0));
  expect(await ofWorkspace('tool { name }')).toEqual(more(1));
  expect(await ofWorkspace('connections { nodes { status } }')).toEqual(more(1));
  expect(await ofWorkspace('connections { totalCount nodes { status } }')).toEqual(more(2));
  expect(await ofWorkspace('tool { name } connections { nodes { status toolInstance { name } } }')).toEqual(more(3));
  const [tools] = await ofTools('');
  const beside = (statements: number) => [tools! + statements, tools! + statements];
  expect(await ofTools('instances { totalCount nodes { name } }')).toEqual(beside(2));
  expect(await ofTools('instances { nodes { connections { nodes { status } } } }')).toEqual(beside(2));
});
