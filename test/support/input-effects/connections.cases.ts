import { expect } from 'vitest';
import { startOAuthServer } from '../oauth-server.ts';
import { caller } from '../person.ts';
import { startTarget } from '../target-server.ts';
import { makeClient, makeInstance, makeMarkedInstance, makeTool } from '../tool-instance.ts';
import { makeEndUserConnection } from '../world.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

/** An authorization that was begun at a provider, and what the provider sends back. */
async function begun({ app, world, closeLater }: Lab): Promise<{ code: string; state: string; iss: string }> {
  const server = await startOAuthServer();
  closeLater(server);
  const owner = caller(app, world.accounts.owner);
  const client = await makeClient(owner, server);
  const toolInstanceId = await makeInstance(owner, {
    toolId: await makeTool(owner, { ...server.service, issuer: server.url }),
    client,
  });
  const given = { orgId: owner.orgId, workspaceId: owner.workspaceId, input: { toolInstanceId } };
  const started = await mutateOk(app, 'initiateWorkspaceConnection', given, owner.accessToken);
  const { authorizationUrl, state } = started as { authorizationUrl: string; state: string };
  return { code: server.consent(authorizationUrl), state, iss: server.url };
}

/** The key that is given is the one that the service uses at the provider, in its place. */
const usesKey =
  (mutation: string, place: { namespaceId?: string }) =>
  async ({ app, world }: Lab): Promise<void> => {
    const { org_id: orgId, workspace_id: workspaceId, namespace_id } = world.ids;
    const namespaceId = place.namespaceId === undefined ? null : namespace_id!;
    const toolInstanceId = await makeMarkedInstance(app, world);
    const apiKey = `key of ${toolInstanceId}`;
    const given = { orgId, workspaceId, ...(namespaceId && { namespaceId }), input: { toolInstanceId, apiKey } };
    await mutateOk(app, mutation, given, world.accounts.owner.accessToken);
    const use = { orgId: orgId!, toolInstanceId, namespaceId };
    expect(await app.services.connectionCredentials.credentialFor(use)).toMatchObject({ secret: apiKey });
  };

/** What the page of a link shows of what was given with it. */
const showsOnPage =
  (field: string, value: string) =>
  async ({ app, world }: Lab): Promise<void> => {
    const { orgId, workspaceId, accessToken } = world.accounts.owner;
    const toolInstanceId = await makeMarkedInstance(app, world);
    const place = { orgId, workspaceId };
    const addresses = ['https://unusual.example.test/done'];
    await mutateOk(app, 'setReturnAddresses', { ...place, id: toolInstanceId, input: { addresses } }, accessToken);
    const given = { ...place, id: toolInstanceId, input: { endUserId: 'an-end-user', [field]: value } };
    const { url } = (await mutateOk(app, 'createConnectLink', given, accessToken)) as { url: string };
    const { pathname, search } = new URL(url);
    const { statusCode, body } = await app.server.inject({ method: 'GET', url: `${pathname}${search}` });
    expect([statusCode, body]).toEqual([200, expect.stringContaining(value.replace(/^https:..|.done$/g, ''))]);
  };

/** An end user who is connected to an instance. */
async function endUserOf({ app, world }: Lab, instanceId: string): Promise<string> {
  const id = await makeEndUserConnection(app, { ...world, ids: { ...world.ids, instance_id: instanceId } });
  const { endUserId } = await app.database.prisma.connection.findUniqueOrThrow({ where: { id } });
  return endUserId!;
}

const newInstance = async ({ app, world }: Lab) => ({
  given: { input: { toolInstanceId: await makeMarkedInstance(app, world) } },
});

/** An instance whose two actions call a server that tells what it was asked. */
async function callable({ app, world, closeLater }: Lab) {
  const server = await startTarget((_request, response) => response.end('{}'));
  closeLater(server);
  const { orgId, workspaceId, accessToken } = world.accounts.owner;
  const id = await makeMarkedInstance(app, world);
  const url_template = `http://127.0.0.1:${server.port}/{{word}}`;
  const parameters = [{ name: 'word', default: 'usual' }];
  const actions = ['one', 'two', 'asking', 'paged'].map((name) => ({
    name,
    method: 'GET',
    url_template,
    parameters,
    is_read_only: true,
    requires_confirmation: name === 'asking',
    ...(name === 'paged' && { pagination: { type: 'page' } }),
  }));
  await app.database.pool.query(
    `update tools set action_schemas = $2, credential_schema = '[]', supports_connection = false
      where id = (select tool_id from tool_instances where id = $1)`,
    [id, JSON.stringify(actions)],
  );
  const test = async (input: object) =>
    (await mutateOk(app, 'testToolInstance', { orgId, workspaceId, id, input }, accessToken)) as {
      details: Record<string, unknown>;
    };
  return { server, id, test };
}

/** An instance of a tool that lets its instances have actions of their own, made or changed so that it has one. */
const hasCustomAction =
  (isChanged: boolean) =>
  async ({ app, world }: Lab): Promise<void> => {
    const { orgId, workspaceId, accessToken } = world.accounts.owner;
    const toolId = await makeTool(caller(app, world.accounts.owner));
    await mutateOk(app, 'updateTool', { orgId, id: toolId, input: { customActionType: 'custom_rest' } }, accessToken);
    const customActions = [{ name: 'more', method: 'GET', url_template: 'https://example.test/more' }];
    const place = { orgId, workspaceId };
    const input = { toolId, name: 'with actions', ...(isChanged ? {} : { customActions }) };
    const made = (await mutateOk(app, 'createToolInstance', { ...place, input }, accessToken)) as { id: string };
    const given = { ...place, id: made.id, input: { customActions } };
    const read = isChanged ? await mutateOk(app, 'updateToolInstance', given, accessToken) : made;
    expect(read).toMatchObject({ customActions });
  };

/** An instance that is connected with a key, in its workspace or in a namespace. */
const connectedBy =
  (mutation: string, isInNamespace: boolean) =>
  async ({ app, world }: Lab) => {
    const { org_id: orgId, workspace_id: workspaceId, namespace_id: namespaceId } = world.ids;
    const toolInstanceId = await makeMarkedInstance(app, world);
    const place = { orgId, workspaceId, ...(isInNamespace && { namespaceId }) };
    const input = { toolInstanceId, apiKey: 'a key of theirs' };
    await mutateOk(app, mutation, { ...place, input }, world.accounts.owner.accessToken);
    return { given: { ...place, toolInstanceId } };
  };

/** The record of a credential that was taken has the reason. */
const recordsReason =
  (mutation: string, prepare: ReturnType<typeof connectedBy>) =>
  async (lab: Lab): Promise<void> => {
    const { given } = await prepare(lab);
    const { app, world } = lab;
    const taken = await mutateOk(app, mutation, { ...given, reason: 'Run 7' }, world.accounts.owner.accessToken);
    const { connectionId } = taken as { connectionId: string };
    const records = await app.database.prisma.activity.findMany({
      where: { resourceId: connectionId, action: 'reveal' },
    });
    expect(records.map(({ metadata }) => metadata)).toEqual([expect.objectContaining({ reason: 'Run 7' })]);
  };

/** The fields of an execution, of an instance whose actions call a server that tells what it was asked. */
const executed = (mutation: string, isInNamespace: boolean): InputCase => {
  const lab = async (given: Lab) => {
    const { server, id } = await callable(given);
    const { org_id: orgId, workspace_id: workspaceId, namespace_id: namespaceId } = given.world.ids;
    const { accessToken } = given.world.accounts.owner;
    const place = { orgId, workspaceId, ...(isInNamespace && { namespaceId }), id };
    const run = async (input: object) =>
      (await mutateOk(given.app, mutation, { ...place, input }, accessToken)) as Record<string, unknown>;
    return { server, run };
  };
  return {
    prepare: async ({ app, world }) => ({
      given: { id: await makeMarkedInstance(app, world), input: { action: 'get' } },
    }),
    effects: {
      'input.action': async (given) => {
        const { run } = await lab(given);
        for (const action of ['one', 'two']) expect(await run({ action })).toMatchObject({ action });
      },
      'input.parameters': async (given) => {
        const { server, run } = await lab(given);
        await run({ action: 'one', parameters: { word: 'unusual' } });
        expect(server.requests.map(({ path }) => path)).toEqual(['/unusual']);
      },
      'input.endUserId': async (given) => {
        const { run } = await lab(given);
        const { id } = await run({ action: 'one', dryRun: true }).then(({ toolInstanceId }) => ({
          id: toolInstanceId,
        }));
        const endUserId = await endUserOf(given, String(id));
        expect(await run({ action: 'one', dryRun: true, endUserId })).toMatchObject({ code: 'dry_run' });
        await expect(run({ action: 'one', dryRun: true, endUserId: 'nobody' })).rejects.toThrow('unknown_end_user');
      },
      'input.dryRun': async (given) => {
        const { server, run } = await lab(given);
        expect(await run({ action: 'one', dryRun: true })).toMatchObject({ code: 'dry_run' });
        expect(server.requests).toEqual([]);
      },
      'input.maxPages': async (given) => {
        const { run } = await lab(given);
        expect(await run({ action: 'paged' })).toMatchObject({ code: 'ok' });
        // the answer is an object, and has no list to read page by page
        expect(await run({ action: 'paged', maxPages: 2 })).toMatchObject({ code: 'schema_mismatch' });
      },
      'input.confirmation': async (given) => {
        const { server, run } = await lab(given);
        const { confirmation } = await run({ action: 'asking' });
        expect(server.requests).toEqual([]);
        expect(await run({ action: 'asking', confirmation })).toMatchObject({ code: 'ok' });
        expect(server.requests).toHaveLength(1);
      },
    },
  };
};

/** Fields of an instance that only make sense together with its tool. */
const instanceVariant = { 'input.mcpActionFilter': ['get'], 'input.customActions': leftOut };

/** Tool instances, their connections and their calls. */
export const connectionCases: Readonly<Record<string, InputCase>> = {
  createNamespaceConnection: {
    prepare: newInstance,
    effects: { 'input.apiKey': usesKey('createNamespaceConnection', { namespaceId: 'its' }) },
  },
  createWorkspaceConnection: {
    prepare: newInstance,
    effects: { 'input.apiKey': usesKey('createWorkspaceConnection', {}) },
  },
  initiateNamespaceConnection: { prepare: newInstance },
  initiateWorkspaceConnection: { prepare: newInstance },
  exchangeConnection: {
    prepare: async (lab) => ({ given: await begun(lab) }),
    demands: { code: 'nobody-was-given-this-code', state: 'nobody-began-this', iss: 'https://other.example.com' },
  },
  createToolInstance: {
    variants: () => [{ ...instanceVariant, 'input.authMode': 'oauth2' }],
    effects: { 'input.customActions': hasCustomAction(false) },
  },
  updateToolInstance: {
    variants: () => [{ ...instanceVariant, 'input.authMode': 'api_key' }],
    effects: { 'input.customActions': hasCustomAction(true) },
  },
  testToolInstance: {
    effects: {
      'input.action': async (lab) => {
        const { test } = await callable(lab);
        for (const action of ['one', 'two']) expect((await test({ action })).details).toMatchObject({ action });
      },
      'input.parameters': async (lab) => {
        const { server, test } = await callable(lab);
        await test({ action: 'one', parameters: { word: 'unusual' } });
        expect(server.requests.map(({ path }) => path)).toEqual(['/unusual']);
      },
      'input.dryRun': async (lab) => {
        const { server, test } = await callable(lab);
        await test({ action: 'one', dryRun: true });
        expect(server.requests).toEqual([]);
        await test({ action: 'one', dryRun: false });
        expect(server.requests).toHaveLength(1);
      },
    },
  },
  issueWorkspaceConnectionToken: {
    prepare: connectedBy('createWorkspaceConnection', false),
    demands: { endUserId: 'nobody-connected-this' },
    effects: {
      reason: recordsReason('issueWorkspaceConnectionToken', connectedBy('createWorkspaceConnection', false)),
    },
  },
  issueNamespaceConnectionToken: {
    prepare: connectedBy('createNamespaceConnection', true),
    demands: { endUserId: 'nobody-connected-this' },
    effects: { reason: recordsReason('issueNamespaceConnectionToken', connectedBy('createNamespaceConnection', true)) },
  },
  createConnectLink: {
    effects: {
      'input.name': showsOnPage('name', 'Unusual Name'),
      'input.email': showsOnPage('email', 'unusual@example.test'),
      'input.returnTo': showsOnPage('returnTo', 'https://unusual.example.test/done'),
    },
  },
  setReturnAddresses: { readAs: { 'input.addresses': 'returnAddresses' } },
  refreshWorkspaceConnection: { prepare: connectedBy('createWorkspaceConnection', false) },
  refreshNamespaceConnection: { prepare: connectedBy('createNamespaceConnection', true) },
  executeToolAction: executed('executeToolAction', false),
  executeNamespaceToolAction: executed('executeNamespaceToolAction', true),
  upgradeToolInstance: {
    prepare: async ({ app, world }) => {
      await app.database.pool.query(
        `update tools set current_schema_version = current_schema_version + 1
          where id = (select tool_id from tool_instances where id = $1)`,
        [world.ids.instance_id],
      );
      return { given: { id: world.ids.instance_id } };
    },
    readAs: { 'input.configuration': 'instance.configuration' },
  },
  updateTool: { variants: () => [{ 'input.minSchemaVersion': leftOut }, { 'input.minSchemaVersion': 2 }] },
};
