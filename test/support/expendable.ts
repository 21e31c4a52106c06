import type { CompiledOperation } from '../../rest/operation.ts';
import type { Role } from '../../src/kernel/roles.ts';
import { MAX_STREAMS } from '../../src/live/audit-streams/audit-stream.words.ts';
import type { TestApp } from './app.ts';
import { operationAt, pathVariables } from './operations.ts';
import { expectOk, type Parts, type PartsOptions, partsOf } from './requests.ts';
import { openApiSample } from './samples.ts';
import { makeMarkedInstance } from './tool-instance.ts';
import {
  findKey,
  givePasskey,
  grantIn,
  makeEndUserConnection,
  makeNotification,
  makeOne,
  makePasskey,
  makeRelation,
  makerOf,
  receivedFile,
  type World,
} from './world.ts';

/**
 * What a route changes or removes, made anew for each try, where no route of its own makes it. THE place to add such a
 * thing.
 */
const fresh: Record<string, (app: TestApp, world: World, path: string, role: Role) => Promise<string>> = {
  // everybody revokes their own; the token of an app, and by the administrators' path, is somebody else's
  token_id: async (app, world, path, role) => {
    const isOwn = path === '/v1/orgs/{org_id}/api-tokens/{token_id}';
    const url = path.includes('/apps/')
      ? `/v1/orgs/${world.ids.org_id}/apps/${world.ids.app_id}/tokens`
      : `/v1/orgs/${world.ids.org_id}/api-tokens`;
    const headers = world.as(isOwn ? role : 'owner');
    const { token } = await expectOk<{ token: { token_id: string } }>(app, {
      method: 'POST',
      url,
      headers,
      payload: { name: 'to be revoked' },
    });
    return token.token_id;
  },
  member_user_id: async (app, world, path) => {
    const { user_id } = (await makeOne(app, world, operationAt('POST', '/v1/users'))) as { user_id: string };
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`;
    if (path.includes('/workspaces/'))
      await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { user_id, role: 'viewer' } });
    if (path.endsWith(RESET)) await givePasskey(app, user_id, 'to be lost');
    return user_id;
  },
  app_id: async (app, world, path) => {
    const workspace = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
    if (!path.includes('/deploy/'))
      return findKey(await makeOne(app, world, operationAt('POST', `${workspace}/apps`)), ['app_id'])!;
    await makeOne(app, world, operationAt('POST', `${workspace}/environments/{environment_id}/deploy`));
    return world.ids.app_id!;
  },
  application_grant_id: grantIn,
  relation_id: makeRelation,
  notification_id: (app, world, _path, role) => makeNotification(app, world, role),
  passkey_id: (app, world, _path, role) => makePasskey(app, world, role),
  end_user_connection_id: (app, world) => makeEndUserConnection(app, world),
  audit_stream_id: async (app, world) => {
    await makeRoomForStream(app, world);
    return findKey(await makeOne(app, world, operationAt('POST', STREAMS)), ['audit_stream_id'])!;
  },
  instance_id: (app, world) => connectedInstance(app, world, 'namespaces/{namespace_id}/connections'),
  tool_instance_id: (app, world) => connectedInstance(app, world, 'connections/api-key'),
  logical_model_id: async (app, world, path) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/model-catalog'));
    const { logical_model_id } = made as { logical_model_id: string };
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/model-entitlements`;
    if (path.includes('/workspaces/'))
      await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { logical_model_id } });
    return logical_model_id;
  },
};

/** A member loses something else than the membership. */
const RESET = '/reset-factors';

/** Everybody has only their own: each role gets one. */
const isOwn: ReadonlySet<string> = new Set(['notification_id', 'passkey_id']);

const STREAMS = '/v1/orgs/{org_id}/audit-streams';

/** An organization has only so many: where there is no room for one more, the oldest that earlier tries left go. */
async function makeRoomForStream(app: TestApp, world: World): Promise<void> {
  const url = STREAMS.replace('{org_id}', world.ids.org_id!);
  const headers = world.as('owner');
  const { audit_streams: streams } = await expectOk<{ audit_streams: { audit_stream_id: string }[] }>(app, {
    url,
    headers,
  });
  const left = streams.map(({ audit_stream_id: id }) => id).filter((id) => id !== world.ids.audit_stream_id);
  const room = MAX_STREAMS - (streams.length - left.length) - 1;
  for (const id of left.sort().slice(0, -room)) await expectOk(app, { method: 'DELETE', url: `${url}/${id}`, headers });
}

/** A tool instance with a connection to lose. */
async function connectedInstance(app: TestApp, world: World, path: string): Promise<string> {
  const tool_instance_id = await makeMarkedInstance(app, world);
  const maker = operationAt('POST', `/v1/orgs/{org_id}/workspaces/{workspace_id}/${path}`);
  await makeOne(app, { ...world, ids: { ...world.ids, tool_instance_id } }, maker);
  return tool_instance_id;
}

/** A valid request of a role, aimed at something that may be lost where it changes or removes what it names. */
export async function expendable(
  app: TestApp,
  world: World,
  operation: CompiledOperation,
  role: Role,
  options: PartsOptions = {},
): Promise<Parts> {
  const ids = { ...world.ids };
  const last = pathVariables(operation.path).at(-1);
  const isNamedLast = operation.path.endsWith('}') && operation.method !== 'GET';
  if (last && last !== 'org_id' && (isNamedLast || isOwn.has(last) || operation.path.endsWith(RESET))) {
    const maker = makerOf(last);
    const made = fresh[last]
      ? await fresh[last](app, world, operation.path, role)
      : maker
        ? findKey(await makeOne(app, world, maker), [last])
        : undefined;
    if (made) ids[last] = made;
  }
  // a file becomes one artifact, of whoever has sent it
  if (operation.path.endsWith('/uploads/finish')) ids.received_upload = await receivedFile(app, world, role);
  const parts = partsOf(operation, { ...world, ids }, { token: world.accounts[role].accessToken, ...options });
  // one of the two must be there, and neither is required by its type
  if (TOOL_IMPORT.test(operation.path)) parts.body = { document: openApiSample(world), ...(parts.body as object) };
  return parts;
}

const TOOL_IMPORT = /\/tools\/(?:\{tool_id\}\/)?import(?:\/preview)?$/;
