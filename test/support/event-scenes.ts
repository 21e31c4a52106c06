import { randomBytes } from 'node:crypto';
import type { EventType } from '../../src/kernel/resources.ts';
import { openIdCompany } from '../identity/sso/companies.ts';
import { startOpenIdServer } from '../identity/sso/openid-server.ts';
import type { TestApp } from './app.ts';
import { operationAt } from './operations.ts';
import { addToWorkspace, createUser, type Person } from './person.ts';
import { keepOpen } from './prepared.ts';
import type { Parts } from './requests.ts';
import { issueToken } from './tokens.ts';
import { makeMarkedInstance } from './tool-instance.ts';
import { findKey, makeNotification, makeOne, type World } from './world.ts';

/** What a case makes before its request. */
export interface Scene {
  app: TestApp;
  world: World;
  owner: Person;
  /** The request, which is valid already where a route answers it. Without a route, `body` has the arguments. */
  parts: Parts;
}

/** A request of a mutation, and what it emits beside the events of every success. */
export interface EventCase {
  /** What is special, for the title. */
  when?: string;
  /** Exactly these of the events that come sometimes. Default: none. */
  emits?: readonly EventType[];
  /** `action resource` of its record, if that is not the declared one. */
  record?: string;
  /** Completes the request, which is valid already where a route answers it. */
  prepare?: (scene: Scene) => Promise<unknown>;
}

/** The usual request. */
export const usual = (when: string, emits: readonly EventType[] = []): EventCase => ({ when, emits });

type Json = Record<string, unknown>;
/** What revokes the tokens of {@link tokenHolder} emits. */
export const TOKENS = ['api_token.revoked', 'app_token.revoked'] as const;
/** A text that nothing else has. */
export const unique = () => randomBytes(6).toString('hex');
/** Sets fields of the body. */
export const give = (parts: Parts, fields: Json) => {
  parts.body = { ...(parts.body as Json), ...fields };
};
/** Sends the request as somebody else. */
export const actAs = (parts: Parts, { headers }: Pick<Person, 'headers'>) => Object.assign(parts.headers, headers);

/** The answer of a request that must succeed. @throws Error with the answer of one that does not */
export async function called(
  who: Person,
  method: 'POST' | 'PUT' | 'DELETE',
  url: string,
  payload?: object,
): Promise<Json> {
  const { status, body } = await who.call<Json>(method, url, payload);
  if (status >= 300) throw new Error(`${method} ${url} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** Somebody with a token of their own and one for the app of the world. */
export async function tokenHolder({ app, world, owner }: Scene): Promise<Person> {
  const holder = await createUser(app, owner, { name: 'holder', role: 'admin' });
  await issueToken(app, holder);
  await issueToken(app, holder, { app_id: world.ids.app_id });
  return holder;
}

/** Makes somebody a member of the workspace of the world. */
export async function inWorkspace(scene: Scene, somebody: Promise<Person>): Promise<Person> {
  const person = await somebody;
  await addToWorkspace(scene.app, scene.owner, person.userId);
  return person;
}

/** A member of the workspace who has done nothing yet. */
export const newcomer = (scene: Scene) => inWorkspace(scene, createUser(scene.app, scene.owner, { name: 'newcomer' }));

/** Makes something by its route, with other ids than those of the world. */
export const makeAt = ({ app, world }: Scene, path: string, ids: Record<string, string> = {}): Promise<Json> =>
  makeOne(app, { ...world, ids: { ...world.ids, ...ids } }, operationAt('POST', path));

/** An artifact, and the source that it was promoted to. */
export async function promotedArtifact({ owner, world: { ids } }: Scene, namespaceId = ids.namespace_id!) {
  const url = `${owner.home}/namespaces/${namespaceId}/artifacts`;
  const { artifact_id } = await called(owner, 'POST', url, { name: 'notes', content: 'Some text.' });
  const { promoted_to_source_id } = await called(owner, 'POST', `${url}/${String(artifact_id)}/promote`, {});
  return { artifact_id: String(artifact_id), source_id: String(promoted_to_source_id) };
}

/** Stores a secret in a part of the workspace. */
export const storeSecret = ({ owner }: Scene, place: object) =>
  called(owner, 'POST', `/v1/orgs/${owner.orgId}/secrets`, {
    name: `in a place ${unique()}`,
    secret_type: 'api_key',
    value: { api_key: 'x' },
    workspace_id: owner.workspaceId,
    ...place,
  });

/** Makes a release of an app. @returns its id */
export const makeRelease = async ({ owner }: Scene, appId: string): Promise<string> =>
  String((await called(owner, 'POST', `${owner.home}/apps/${appId}/releases`, { version: unique() })).release_id);

/** Deploys a release. */
export const deploy = ({ owner }: Scene, environmentId: string, appId: string, releaseId: string) =>
  called(owner, 'POST', `${owner.home}/environments/${environmentId}/deploy`, { app_id: appId, release_id: releaseId });

const ORGANIZATION = '/v1/orgs/{org_id}';
/** The route of a workspace. */
export const WORKSPACE = `${ORGANIZATION}/workspaces/{workspace_id}`;

/** A model at an account of its own, which the workspace may use. */
export async function ownModel(scene: Scene) {
  const provider_account_id = findKey(await makeAt(scene, `${ORGANIZATION}/provider-accounts`), [
    'provider_account_id',
  ])!;
  const model = await makeAt(scene, `${ORGANIZATION}/model-catalog`, { provider_account_id });
  const logical_model_id = String(model.logical_model_id);
  await makeAt(scene, `${WORKSPACE}/model-entitlements`, { logical_model_id });
  const [{ model_name }] = model.targets as [{ model_name: string }];
  const usage = `${scene.owner.home}/models/${logical_model_id}/usage`;
  return { logical_model_id, usage, report: { provider_account_id, model_name } };
}

/** Reports requests to a model of its own: the first ones here, the last one by the mutation. */
export const reporting =
  (...outcomes: string[]) =>
  async (scene: Scene) => {
    const { owner, parts } = scene;
    const { logical_model_id, usage, report } = await ownModel(scene);
    for (const outcome of outcomes.slice(0, -1)) await called(owner, 'POST', usage, { ...report, outcome });
    parts.params.logical_model_id = logical_model_id;
    parts.body = { ...report, outcome: outcomes.at(-1) };
  };

/**
 * Takes an instance that has no connection, or one that must be authorized again.
 * @param broken the path that makes the connection
 */
export async function connecting({ app, world, parts, owner }: Scene, broken?: string): Promise<void> {
  const tool_instance_id = await makeMarkedInstance(app, world);
  give(parts, { tool_instance_id });
  if (broken === undefined) return;
  const path = broken.replace('{namespace_id}', world.ids.namespace_id!);
  await called(owner, 'POST', `${owner.home}/${path}`, { tool_instance_id, api_key: 'key' });
  const text = `update connections set status = 'needs_reauth' where tool_instance_id = $1`;
  await app.database.pool.query(text, [tool_instance_id]);
}

/** Signs the same person in at an OpenID provider: with groups before, and then by the mutation. */
export const signingIn =
  (...logins: string[][]) =>
  async ({ app, parts }: Scene) => {
    const server = keepOpen(Object.assign(await startOpenIdServer(), { keepsCodes: true }));
    const { domain, owner, url } = await openIdCompany(app, server);
    await called(owner, 'PUT', url, {
      group_mappings: [
        { group: 'leads', role_id: 'admin' },
        { group: 'staff', role_id: 'viewer', workspace_id: owner.workspaceId },
        { group: 'leads', role_id: 'editor', workspace_id: owner.workspaceId },
      ],
    });
    const email = `by-group@${domain}`;
    for (const [at, groups] of logins.entries()) {
      server.account = { sub: 'by-group', email, email_verified: true, groups };
      const request = { method: 'POST', url: '/v1/auth/sso/initiate', payload: { email } } as const;
      const begun = (await app.server.inject(request)).json<{ redirect_url: string }>();
      const { pathname, search, searchParams } = server.authorize(begun.redirect_url);
      if (at === logins.length - 1) parts.query = Object.fromEntries(searchParams);
      else await app.server.inject({ method: 'GET', url: `${pathname}${search}` });
    }
  };

/** Takes a notification of the owner, after these moves. */
export const takeNotification = async (
  { app, world, owner, parts }: Scene,
  ...moves: ['POST' | 'DELETE', string][]
) => {
  const id = await makeNotification(app, world, 'owner');
  for (const [method, path] of moves) await called(owner, method, `/v1/notifications/${id}${path}`);
  parts.params.notification_id = id;
  parts.body = { id };
};
/** Marks a notification as read. */
export const READ: ['POST', string] = ['POST', '/read'];
/** Archives a notification. */
export const ARCHIVED: ['DELETE', string] = ['DELETE', ''];

/** Takes a domain of a provider, whose proof is started here or by the mutation. */
export async function takeDomain({ app, owner, parts }: Scene, isStarted: boolean): Promise<void> {
  const domain = `d${unique()}.example.test`;
  const providers = `/v1/orgs/${owner.orgId}/identity-providers`;
  const { idp_id } = await called(owner, 'POST', providers, {
    name: 'P',
    protocol: 'oidc',
    verified_domains: [domain],
  });
  const start = { orgId: owner.orgId, id: idp_id, input: { domain, method: 'mail' } };
  parts.body = start;
  if (!isStarted) return;
  await owner.ask(
    `mutation ($orgId: ID!, $id: ID!, $input: StartDomainProofInput!) {
      startDomainProof(orgId: $orgId, id: $id, input: $input) { domain } }`,
    start,
  );
  await app.jobsDone();
  const { text } = app.mails.findLast(({ to }) => to === `postmaster@${domain}`)!;
  parts.body = { ...start, input: { domain, code: /^([\w-]{43})$/m.exec(text)![1] } };
}

/** Somebody who may be linked at the provider of the world. */
export const linkable = async ({ app, owner, world }: Scene) => {
  const { userId } = await createUser(app, owner, { name: 'linked' });
  return { orgId: owner.orgId, id: world.ids.idp_id, userId, subject: unique() };
};
