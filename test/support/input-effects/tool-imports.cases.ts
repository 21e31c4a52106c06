import { expect } from 'vitest';
import { startMcpServer } from '../mcp-server.ts';
import { caller } from '../person.ts';
import { startTarget } from '../target-server.ts';
import { makeInstance, makeTool } from '../tool-instance.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

const ELSEWHERE = 'https://elsewhere.example.com/v3';
const operation = (summary: string) => ({ summary, responses: { 200: { description: 'OK' } } });
const documentOf = (title: string) =>
  JSON.stringify({
    openapi: '3.0.0',
    info: { title, version: '1' },
    servers: [{ url: 'https://api.example.com' }],
    paths: { '/one': { get: operation('first') }, '/two': { get: operation('second') } },
  });
let count = 0;

/** The four mutations in one lab: what each answers. */
function asking({ app, world }: Lab) {
  const owner = caller(app, world.accounts.owner);
  const { orgId } = owner;
  const ask = async (mutation: string, args: object) =>
    (await mutateOk(app, mutation, { orgId, ...args }, owner.accessToken)) as Record<string, unknown>;
  return {
    preview: (input: object) => ask('previewToolImport', { input }),
    import: (input: object) =>
      ask('importTool', { input: { slug: `effect-${++count}`, operations: ['GET /one'], ...input } }),
    again: (id: unknown, input: object) => ask('previewToolReimport', { id, input }),
    reimport: (id: unknown, input: object) =>
      ask('reimportTool', { id, input: { operations: ['GET /two'], ...input } }),
    edit: (id: unknown) =>
      ask('updateTool', { id, input: { actionSchemas: [{ name: 'get_one', description: 'Ours.' }] } }),
  };
}
const urlsIn = (tool: Record<string, unknown>) =>
  (tool.actionSchemas as { url_template: string }[]).map(({ url_template }) => url_template);

/** A document that is served at an address. */
async function served({ closeLater }: Lab, title: string): Promise<string> {
  const server = await startTarget((_request, response) => response.end(documentOf(title)));
  closeLater(server);
  return `http://127.0.0.1:${server.port}/openapi.json`;
}

/** An MCP server, which wants a key in a header of its own if that is said. */
async function mcpServer({ closeLater }: Lab, wants: [string, string] | null = null) {
  const server = await startMcpServer('both');
  server.wants = wants;
  closeLater(server);
  return { kind: 'mcp', url: server.url };
}
const KEY = 'a-key-of-theirs';

/** A tool of a server that wants a key, and an instance that is connected with it. */
async function connectedTool(lab: Lab) {
  const { app, world } = lab;
  const given = await mcpServer(lab, byBearer);
  const { id } = await asking(lab).import({ ...given, operations: ['echo'], credential: KEY });
  const owner = caller(app, world.accounts.owner);
  const toolInstanceId = await makeInstance(owner, { toolId: String(id), client: null });
  const { orgId, workspaceId } = owner;
  const connection = { orgId, workspaceId, input: { toolInstanceId, apiKey: KEY } };
  await mutateOk(app, 'createWorkspaceConnection', connection, owner.accessToken);
  return { id, toolInstanceId };
}
const byBearer: [string, string] = ['authorization', `Bearer ${KEY}`];
const inHeader: [string, string] = ['x-key', KEY];

const document = documentOf('Given');
const nobodys = '0'.repeat(64);
// a document is needed, or its address: no field says so
const withDocument = async () => ({ given: { input: { kind: 'openapi', document } } });
const withTool = async ({ app, world }: Lab) => ({
  given: {
    id: await makeTool(caller(app, world.accounts.owner)),
    input: { kind: 'openapi', document, operations: ['GET /one'] },
  },
});
const beside = async (lab: Lab) => {
  const { given } = await withTool(lab);
  return { given: { id: given.id, input: { kind: 'openapi', document } } };
};

/** Tools of OpenAPI documents. */
export const toolImportCases: Readonly<Record<string, InputCase>> = {
  previewToolImport: {
    prepare: withDocument,
    effects: {
      'input.kind': async (lab) => {
        const given = await mcpServer(lab);
        expect(await asking(lab).preview(given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.credential': async (lab) => {
        const given = { ...(await mcpServer(lab, byBearer)), credential: KEY };
        expect(await asking(lab).preview(given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.credentialHeader': async (lab) => {
        const given = { ...(await mcpServer(lab, inHeader)), credential: KEY, credentialHeader: 'x-key' };
        expect(await asking(lab).preview(given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.document': async (lab) =>
        expect(await asking(lab).preview({ document })).toMatchObject({ title: 'Given' }),
      'input.url': async (lab) => {
        const url = await served(lab, 'Served');
        expect(await asking(lab).preview({ url })).toMatchObject({ title: 'Served', url });
      },
      'input.search': async (lab) =>
        expect(await asking(lab).preview({ document, search: 'second' })).toMatchObject({ matching: 1 }),
    },
  },
  importTool: {
    prepare: async () => ({ given: { input: { kind: 'openapi', document, operations: ['GET /one'] } } }),
    demands: { 'input.documentDigest': nobodys },
    effects: {
      'input.kind': async (lab) => {
        const given = await mcpServer(lab);
        const tool = await asking(lab).import({ ...given, operations: ['echo'] });
        expect(tool).toMatchObject({ customActionType: 'mcp' });
      },
      'input.credential': async (lab) => {
        const given = { ...(await mcpServer(lab, byBearer)), credential: KEY };
        const tool = await asking(lab).import({ ...given, operations: ['echo'] });
        expect(tool).toMatchObject({ customActionType: 'mcp' });
      },
      'input.credentialHeader': async (lab) => {
        const given = { ...(await mcpServer(lab, inHeader)), credential: KEY, credentialHeader: 'x-key' };
        const tool = await asking(lab).import({ ...given, operations: ['echo'] });
        expect(tool).toMatchObject({ customActionType: 'mcp' });
      },
      'input.document': async (lab) => expect(await asking(lab).import({ document })).toMatchObject({ name: 'Given' }),
      'input.url': async (lab) =>
        expect(await asking(lab).import({ url: await served(lab, 'Served') })).toMatchObject({ name: 'Served' }),
      'input.baseUrl': async (lab) =>
        expect(urlsIn(await asking(lab).import({ document, baseUrl: ELSEWHERE }))).toEqual([`${ELSEWHERE}/one`]),
      'input.operations': async (lab) =>
        expect(urlsIn(await asking(lab).import({ document, operations: ['GET /two'] }))).toEqual([
          'https://api.example.com/two',
        ]),
    },
  },
  previewToolReimport: {
    prepare: beside,
    variants: () => [{ 'input.toolInstanceId': leftOut }],
    effects: {
      'input.toolInstanceId': async (lab) => {
        const { id, toolInstanceId } = await connectedTool(lab);
        expect(await asking(lab).again(id, { toolInstanceId })).toMatchObject({ total: 3 });
      },
      'input.kind': async (lab) => {
        const given = await mcpServer(lab);
        const { id } = await asking(lab).import({ document });
        expect(await asking(lab).again(id, given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.credential': async (lab) => {
        const given = { ...(await mcpServer(lab, byBearer)), credential: KEY };
        const { id } = await asking(lab).import({ document });
        expect(await asking(lab).again(id, given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.credentialHeader': async (lab) => {
        const given = { ...(await mcpServer(lab, inHeader)), credential: KEY, credentialHeader: 'x-key' };
        const { id } = await asking(lab).import({ document });
        expect(await asking(lab).again(id, given)).toMatchObject({ kind: 'mcp', total: 3 });
      },
      'input.document': async (lab) => {
        const { id } = await asking(lab).import({ document });
        expect(await asking(lab).again(id, { document: documentOf('Later') })).toMatchObject({ title: 'Later' });
      },
      'input.url': async (lab) => {
        const { id } = await asking(lab).import({ document });
        expect(await asking(lab).again(id, { url: await served(lab, 'Served') })).toMatchObject({ title: 'Served' });
      },
      'input.search': async (lab) => {
        const { id } = await asking(lab).import({ document });
        expect((await asking(lab).again(id, { document })).changes).toHaveLength(1);
        expect((await asking(lab).again(id, { document, search: 'nothing' })).changes).toEqual([]);
      },
    },
  },
  reimportTool: {
    prepare: withTool,
    demands: { 'input.documentDigest': nobodys },
    variants: () => [{ 'input.toolInstanceId': leftOut }],
    effects: {
      'input.toolInstanceId': async (lab) => {
        const { id, toolInstanceId } = await connectedTool(lab);
        const tool = await asking(lab).reimport(id, { toolInstanceId, operations: ['erase'] });
        expect(tool.actionSchemas).toHaveLength(2);
      },
      'input.kind': async (lab) => {
        const given = await mcpServer(lab);
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { ...given, operations: ['echo'] });
        expect(tool.importSource).toMatchObject({ kind: 'mcp' });
      },
      'input.credential': async (lab) => {
        const given = { ...(await mcpServer(lab, byBearer)), credential: KEY };
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { ...given, operations: ['echo'] });
        expect(tool.importSource).toMatchObject({ kind: 'mcp' });
      },
      'input.credentialHeader': async (lab) => {
        const given = { ...(await mcpServer(lab, inHeader)), credential: KEY, credentialHeader: 'x-key' };
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { ...given, operations: ['echo'] });
        expect(tool.importSource).toMatchObject({ kind: 'mcp' });
      },
      'input.document': async (lab) => {
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { document: documentOf('Later') });
        expect(tool.importSource).toMatchObject({ title: 'Later' });
      },
      'input.url': async (lab) => {
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { url: await served(lab, 'Served') });
        expect(tool.importSource).toMatchObject({ title: 'Served' });
      },
      'input.baseUrl': async (lab) => {
        const { id } = await asking(lab).import({ document });
        const tool = await asking(lab).reimport(id, { document, baseUrl: ELSEWHERE });
        expect(urlsIn(tool)).toEqual(['https://api.example.com/one', `${ELSEWHERE}/two`]);
      },
      'input.operations': async (lab) => {
        const { id } = await asking(lab).import({ document });
        expect(urlsIn(await asking(lab).reimport(id, { document }))).toHaveLength(2);
      },
      'input.overwrite': async (lab) => {
        const { id } = await asking(lab).import({ document });
        await asking(lab).edit(id);
        const both = { document, baseUrl: ELSEWHERE, operations: ['GET /one'], overwrite: ['GET /one'] };
        expect(urlsIn(await asking(lab).reimport(id, both))).toEqual([`${ELSEWHERE}/one`]);
      },
    },
  },
};
