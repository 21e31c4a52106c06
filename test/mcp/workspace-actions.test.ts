import { expect, test } from 'vitest';
import { ApiError } from '../../src/kernel/errors.ts';
import { nameOf, WorkspaceActions } from '../../src/mcp/workspace-actions.ts';

const WORKSPACE = { orgId: 'org_1', workspaceId: 'ws_1' };
const idOf = (at: number) => `ti_01M81B6EWGF6W861YY${String(at).padStart(8, '0')}`;
const context = { caller: { principal: { userId: 'usr_1' } } } as never;

/** A workspace with instances, of which it says which were read, in pages or alone. */
function workspaceWith(instances: number, actions = 60) {
  const read: string[] = [];
  const charged: number[] = [];
  const instanceOf = (at: number) => ({
    id: idOf(at),
    name: 'Tickets',
    toolName: 'Tickets',
    toolSlug: 'tickets',
    authMode: 'none',
    isActive: true,
    configuration: {},
    credentialFields: [],
    effectiveActionSchemas: Array.from({ length: actions }, (_, of) => ({ name: `run_${of}`, method: 'GET' })),
    mcpMaxCallsPerTurn: null,
  });
  const documents = {
    add: () => undefined,
    async execute(document: { definitions: { name: { value: string } }[] }, _context: never, variables: never) {
      const { id, first = 0, after } = variables as { id?: string; first?: number; after?: string | null };
      const name = document.definitions[0]!.name.value;
      read.push(id ?? `${name} ${first}`);
      const start = Number(after ?? 0);
      const nodes = Array.from({ length: Math.min(first, instances - start) }, (_, at) => instanceOf(start + at));
      const pageInfo = { hasNextPage: start + first < instances, endCursor: String(start + first) };
      const toolInstance = instanceOf(Number(id?.slice(-8)));
      return Promise.resolve({ data: id === undefined ? { toolInstances: { nodes, pageInfo } } : { toolInstance } });
    },
  };
  const limit = {
    demandRest: (_caller: unknown, cost: number) => {
      charged.push(cost);
      if (charged.length > 9) throw new ApiError('RATE_LIMIT_EXCEEDED');
    },
  };
  return { actions: new WorkspaceActions(documents as never, limit as never), read, charged };
}
const toolOf = (at: number, action = 'run_7') => nameOf({ id: idOf(at), toolSlug: 'tickets' }, action);

test('a call loads the actions of one instance of many', async () => {
  const { actions, read, charged } = workspaceWith(500);
  expect(await actions.find(context, WORKSPACE, toolOf(402))).toMatchObject({ action: 'run_7', instanceId: idOf(402) });
  expect(read).toEqual([...Array<string>(5).fill('McpToolInstanceIds 100'), idOf(402)]);
  expect(charged).toEqual([2, 2, 2, 2]);
  read.length = 0;
  expect(await actions.find(context, WORKSPACE, toolOf(3))).toMatchObject({ instanceId: idOf(3) });
  expect(await actions.find(context, WORKSPACE, toolOf(3, 'unknown'))).toBeNull();
  expect(await actions.find(context, WORKSPACE, 'nothing')).toBeNull();
  expect(read).toEqual([idOf(3), idOf(3)]);
});

test('unknown names are looked for once at a time, and further pages need a rate', async () => {
  const { actions, read } = workspaceWith(500);
  const look = () => actions.find(context, WORKSPACE, toolOf(700));
  expect(await Promise.all(Array.from({ length: 10 }, look))).toEqual(Array(10).fill(null));
  expect(read).toHaveLength(5);
  await look();
  expect(await look()).toMatchObject({ error: { errors: [{ code: 'RATE_LIMIT_EXCEEDED' }] } });
});

test('a list ends where it is too long to show, and a search looks through it once', async () => {
  const { actions, read } = workspaceWith(500);
  expect(await actions.list(context, WORKSPACE, { isReadOnly: false, most: 40 })).toBeNull();
  expect(read).toEqual(['McpToolInstances 20']);
  read.length = 0;
  const search = (word: string) => actions.search(context, WORKSPACE, { words: [word], limit: 3, isReadOnly: false });
  const [found] = await Promise.all([search('run_59'), search('tickets')]);
  expect(found).toMatchObject({ found: 500, isComplete: true, tools: [{}, {}, {}] });
  expect(read.filter((one) => one.startsWith('Mcp'))).toHaveLength(6);
  const many = workspaceWith(100, 700);
  expect(await many.actions.search(context, WORKSPACE, { words: [], limit: 1, isReadOnly: true })).toMatchObject({
    isComplete: false,
  });
});
