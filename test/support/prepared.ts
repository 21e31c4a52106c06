import { newBrowser, openIdCompany, samlAnswer, samlCompany } from '../identity/sso/companies.ts';
import { startOpenIdServer } from '../identity/sso/openid-server.ts';
import { usualIdpKey } from '../identity/sso/saml-idp.ts';
import type { TestApp } from './app.ts';
import { Authenticator } from './authenticator.ts';
import { type Beginning, challengeOf, originOf, withCode, withPasskey, withTotp } from './factors.ts';
import { startOAuthServer } from './oauth-server.ts';
import { operationAt } from './operations.ts';
import { createUser, platformAdmin, register, signIn } from './person.ts';
import { expectOk, type Parts } from './requests.ts';
import { startTarget } from './target-server.ts';
import { issueToken } from './tokens.ts';
import { makeMarkedInstance } from './tool-instance.ts';
import { deliveryOf, findKey, makeOne, type World } from './world.ts';

/** Where providers send their answers: the `PUBLIC_URL` of an app whose changes are prepared here. */
export const PUBLIC_URL = 'http://service.test';

const providers: { close(): Promise<unknown> }[] = [];

/** Keeps a provider until all of them end. */
export function keepOpen<Provider extends { close(): Promise<unknown> }>(provider: Provider): Provider {
  providers.push(provider);
  return provider;
}

/** Ends the providers that prepared changes call. */
export async function closeProviders(): Promise<void> {
  for (const provider of providers.splice(0)) await provider.close();
}

/** Makes what a request needs, and completes the request. */
export type Prepare = (app: TestApp, world: World, parts: Parts) => Promise<void>;

/** The token in the last mail to an address with such a subject. */
export const mailed = async (app: TestApp, address: string, subject: RegExp): Promise<string> => {
  await app.jobsDone();
  const mail = app.mails.findLast(({ to, subject: of }) => to === address && subject.test(of));
  return new URL(mail?.link ?? `http://nothing.mailed/${address}`).searchParams.get('token')!;
};
const inBody = (parts: Parts, fields: object) => {
  parts.body = { ...(parts.body as object), ...fields };
};
const asUser = (parts: Parts, token: string) => {
  parts.headers.authorization = `Bearer ${token}`;
};

/** Names an instance that is active: that of the world may have been switched off. */
const activeInstance: Prepare = async (app, world, { params }) => {
  params.instance_id = await makeMarkedInstance(app, world);
};

/** Connects an active instance with a key, at a path of its workspace. */
async function withKey(app: TestApp, world: World, { params }: Parts, path: string): Promise<void> {
  const tool_instance_id = await makeMarkedInstance(app, world);
  params['tool_instance_id' in params ? 'tool_instance_id' : 'instance_id'] = tool_instance_id;
  const url = `/v1/orgs/${params.org_id}/workspaces/${params.workspace_id}${path}`;
  const payload = { tool_instance_id, api_key: `key of ${world.marker}` };
  await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload });
}

/** What a change needs to succeed that its types do not tell. THE place to add one when a new operation fails. */
export const prepared: Record<string, Prepare> = {
  'POST /v1/auth/verify-email': async (app, { accounts: { owner } }, parts) =>
    inBody(parts, { token: await mailed(app, owner.email, /Confirm/) }),
  'POST /v1/auth/resend-verification': async (_app, { stranger }, parts) => inBody(parts, { email: stranger.email }),
  'POST /v1/auth/forgot-password': async (_app, { guest }, parts) => inBody(parts, { email: guest.email }),
  'POST /v1/auth/reset-password': async (app, { accounts: { viewer } }, parts) => {
    await expectOk(app, { method: 'POST', url: '/v1/auth/forgot-password', payload: { email: viewer.email } });
    inBody(parts, { token: await mailed(app, viewer.email, /Reset/) });
  },
  'POST /v1/orgs/{org_id}/members/{member_user_id}/resume-api-tokens': async (app, { accounts: { owner } }, parts) => {
    const member = await createUser(app, owner, { name: 'suspended', role: 'admin' });
    const { id } = await issueToken(app, member);
    await app.database.pool.query('update api_tokens set suspended_at = now() where id = $1', [id]);
    parts.params.member_user_id = member.userId;
  },
  'POST /v1/auth/refresh': async (_app, { accounts: { editor } }, parts) =>
    inBody(parts, { refresh_token: editor.refreshToken }),
  'POST /v1/auth/login/complete': async (app, _world, parts) => {
    const person = await register(app);
    const { secret } = await withTotp(app, person);
    inBody(parts, { challenge: await challengeOf(app, person), credential: undefined });
    parts.body = withCode(parts.body as object, secret);
  },
  'POST /v1/auth/factors/totp': async (app, _world, parts) => {
    const person = await register(app);
    inBody(parts, { current_password: person.password });
    asUser(parts, person.accessToken);
  },
  'POST /v1/auth/factors/totp/confirm': async (app, _world, parts) => {
    const person = await register(app);
    const request = { method: 'POST', url: '/v1/auth/factors/totp', headers: person.headers } as const;
    const { secret } = await expectOk<{ secret: string }>(app, {
      ...request,
      payload: { current_password: person.password },
    });
    parts.body = withCode(parts.body as object, secret);
    asUser(parts, person.accessToken);
  },
  'DELETE /v1/auth/factors/totp': async (app, _world, parts) => {
    const person = await register(app);
    await withTotp(app, person);
    asUser(parts, person.accessToken);
  },
  'POST /v1/auth/factors/proof': async (app, _world, parts) => {
    const person = await register(app);
    const { secret } = await withTotp(app, person);
    parts.body = withCode({}, secret);
    asUser(parts, person.accessToken);
  },
  'POST /v1/auth/passkeys': async (app, _world, parts) => {
    const person = await register(app);
    const request = { method: 'POST', url: '/v1/auth/passkeys/begin', headers: person.headers } as const;
    const { challenge, options } = await expectOk<Beginning>(app, {
      ...request,
      payload: { current_password: person.password },
    });
    inBody(parts, { challenge, credential: new Authenticator(originOf(app)).create(options) });
    asUser(parts, person.accessToken);
  },
  'POST /v1/auth/passkeys/sign-in': async (app, _world, parts) => {
    const { authenticator } = await withPasskey(app, await register(app));
    const url = '/v1/auth/passkeys/sign-in/begin';
    const { challenge, options } = await expectOk<Beginning>(app, { method: 'POST', url });
    inBody(parts, { challenge, credential: authenticator.get(options) });
  },
  'POST /v1/auth/logout': async (app, { accounts: { member } }, parts) =>
    asUser(parts, (await signIn(app, member)).accessToken),
  'POST /v1/auth/sso/logout': async (app, { accounts: { member } }, parts) =>
    asUser(parts, (await signIn(app, member)).accessToken),
  'PUT /v1/orgs/{org_id}/storage': async (app, _world, parts) => asUser(parts, (await platformAdmin(app)).accessToken),
  'POST /v1/auth/switch-org': async (app, { marker, accounts: { admin } }, parts) => {
    const headers = { authorization: `Bearer ${admin.accessToken}` };
    const made = await expectOk(app, {
      method: 'POST',
      url: '/v1/orgs',
      headers,
      payload: { name: `${marker} other` },
    });
    inBody(parts, { org_id: findKey(made, ['org_id', 'id']) });
    asUser(parts, admin.accessToken);
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/model-entitlements': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/model-catalog'));
    inBody(parts, { logical_model_id: made.logical_model_id });
  },
  'PUT /v1/users/{user_id}': async (app, world, parts) => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`;
    const payload = { user_id: parts.params.user_id, role: 'viewer' };
    await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload });
  },
  'POST /v1/invitations/accept': async (app, world, parts) => {
    const invited = await register(app, { name: `${world.marker}-invited` });
    const url = `/v1/orgs/${world.ids.org_id}/invitations`;
    await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { email: invited.email } });
    inBody(parts, { token: await mailed(app, invited.email, /invit/i) });
    asUser(parts, invited.accessToken);
  },
  'POST /v1/orgs/{org_id}/api-tokens/refresh': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/api-tokens'));
    inBody(parts, { refresh_token: made.refresh_token_plaintext });
  },
  'POST /v1/orgs/{org_id}/webhooks/{webhook_id}/redeliver': async (app, world, parts) => {
    // what else there is may be over in one database and not yet in the other
    const id = await deliveryOf(app, { ...world, ids: { ...world.ids, webhook_id: parts.params.webhook_id! } });
    const text = `update webhook_deliveries set created_at = '2021-01-01T12:00:00Z' where id = $1`;
    await app.database.pool.query(text, [id]);
    parts.body = { since: '2021-01-01T00:00:00Z', until: '2021-01-02T00:00:00Z' };
  },
  'POST /v1/orgs/{org_id}/secrets/{secret_id}/restore': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/secrets'));
    parts.params.secret_id = made.secret_id as string;
    const url = `/v1/orgs/${world.ids.org_id}/secrets/${parts.params.secret_id}`;
    await expectOk(app, { method: 'DELETE', url, headers: world.as('owner') });
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/restore': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/workspaces'));
    parts.params.workspace_id = made.workspace_id as string;
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${parts.params.workspace_id}`;
    await expectOk(app, { method: 'DELETE', url, headers: world.as('owner') });
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts/{artifact_id}/restore': async (
    app,
    world,
    parts,
  ) => {
    const artifacts = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts';
    const made = await makeOne(app, world, operationAt('POST', artifacts));
    parts.params.artifact_id = made.artifact_id as string;
    const { org_id, workspace_id, namespace_id } = world.ids;
    const shelf = `/v1/orgs/${org_id}/workspaces/${workspace_id}/namespaces/${namespace_id}/artifacts`;
    await expectOk(app, { method: 'DELETE', url: `${shelf}/${parts.params.artifact_id}`, headers: world.as('owner') });
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/map-missing': async (app, world, parts) => {
    const { org_id, workspace_id, app_id, instance_id } = world.ids;
    const tool_slug = `${world.marker}-theirs`;
    const stages = [{ name: world.marker, steps: [{ name: world.marker, step_type: 'tool', tool_slug }] }];
    await expectOk(app, {
      method: 'POST',
      url: `/v1/orgs/${org_id}/workspaces/${workspace_id}/apps/${app_id}/augmentations`,
      headers: world.as('owner'),
      payload: { name: world.marker, stages },
    });
    inBody(parts, { tools: { [tool_slug]: instance_id } });
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/namespaces/{namespace_id}/entities/{entity_id}/merge':
    async (app, world, parts) => {
      const entities = '/v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/namespaces/{namespace_id}/entities';
      const made = await makeOne(app, world, operationAt('POST', entities));
      inBody(parts, { merged_entity_ids: [made.entity_id] });
    },
  'POST /v1/connections/oauth/exchange': async (app, world, parts) => {
    const server = keepOpen(await startOAuthServer());
    const body = { access_token: 'access', refresh_token: 'refresh', token_type: 'bearer', expires_in: 3_600 };
    server.misbehave.push({ status: 200, body }, { status: 200, body });
    const id = await makeMarkedInstance(app, world, server.service);
    const begun = await expectOk<{ state: string }>(app, {
      method: 'POST',
      url: `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/connections/oauth/initiate`,
      headers: world.as('owner'),
      payload: { tool_instance_id: id },
    });
    parts.query = { code: 'code', state: begun.state };
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/upgrade': async (app, world) => {
    await app.database.pool.query(
      `update tools set current_schema_version = current_schema_version + 1
        where id = (select tool_id from tool_instances where id = $1)`,
      [world.ids.instance_id],
    );
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/test': async (app, world, parts) => {
    const server = keepOpen(await startTarget((_request, response) => response.end('{}')));
    const url_template = `http://127.0.0.1:${server.port}/`;
    const actions = [{ name: 'ping', method: 'GET', url_template, is_read_only: true }];
    await app.database.pool.query(
      'update tools set action_schemas = $2 where id = (select tool_id from tool_instances where id = $1)',
      [world.ids.instance_id, JSON.stringify(actions)],
    );
    parts.body = { action: 'ping' };
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/sync/presence/leave': async (app, world) => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/sync/presence/join`;
    await expectOk(app, { method: 'POST', url, headers: world.as('owner') });
  },
  'POST /v1/auth/sso/initiate': async (app, _world, parts) => {
    const { domain } = await samlCompany(app, usualIdpKey());
    parts.body = { email: `ann@${domain}` };
  },
  'GET /v1/auth/sso/callback/oidc': async (app, _world, parts) => {
    const server = keepOpen(Object.assign(await startOpenIdServer(), { keepsCodes: true }));
    const { domain } = await openIdCompany(app, server);
    server.account = { sub: 'callback', email: `by-callback@${domain}`, email_verified: true };
    const payload = { email: `by-callback@${domain}` };
    const { redirect_url: begun } = await expectOk<{ redirect_url: string }>(app, {
      method: 'POST',
      url: '/v1/auth/sso/initiate',
      payload,
    });
    parts.query = Object.fromEntries(server.authorize(begun).searchParams);
  },
  'POST /v1/auth/sso/callback/saml': async (app, _world, parts) => {
    const key = usualIdpKey();
    const { message, relayState } = await samlAnswer(app, await samlCompany(app, key), key);
    parts.body = { saml_response: message, relay_state: relayState };
  },
  'POST /v1/auth/sso/exchange': async (app, _world, parts) => {
    const server = keepOpen(await startOpenIdServer());
    const { domain } = await openIdCompany(app, server);
    server.account = { sub: 'ann', email: `ann@${domain}`, email_verified: true };
    const browser = newBrowser(app);
    const begun = await browser.begin(`ann@${domain}`, { redirect_uri: `${PUBLIC_URL}/account/sign-in` });
    const { pathname, search } = server.authorize(begun);
    const { headers } = await browser.send('GET', `${pathname}${search}`);
    parts.body = { code: new URL(headers.location ?? '').searchParams.get('code') };
    // it is good for a minute: on a busy machine its turn comes later. And it is of no browser, as for a front end
    const text = `update sso_codes set expires_at = expires_at + interval '1 hour', browser_hash = null`;
    await app.database.pool.query(text);
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/connections/{tool_instance_id}/token': async (app, world, parts) =>
    withKey(app, world, parts, '/connections/api-key'),
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/connections/{instance_id}/token': async (
    app,
    world,
    parts,
  ) => withKey(app, world, parts, `/namespaces/${parts.params.namespace_id}/connections`),
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/connections/{tool_instance_id}/refresh': async (
    app,
    world,
    parts,
  ) => withKey(app, world, parts, '/connections/api-key'),
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/connections/{instance_id}/refresh':
    async (app, world, parts) => withKey(app, world, parts, `/namespaces/${parts.params.namespace_id}/connections`),
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/execute': activeInstance,
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/tool-instances/{instance_id}/execute':
    activeInstance,
  'DELETE /v1/orgs/{org_id}': async (app, world, parts) => {
    parts.params.org_id = findKey(await makeOne(app, world, operationAt('POST', '/v1/orgs')), ['org_id', 'id'])!;
  },
};
