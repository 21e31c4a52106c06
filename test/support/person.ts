import { randomBytes } from 'node:crypto';
import type { Role } from '../../src/kernel/roles.ts';
import type { TestApp } from './app.ts';
import { expectOk, graphqlRequest } from './requests.ts';

/** The password of whoever is not made by this module, and of everybody in a world. */
export const PASSWORD = 'correct horse battery staple';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Body = Record<string, never>;

export interface Answer<T = Body> {
  status: number;
  body: T;
}

/** An account that is signed in, with the organization and the workspace that it works in. */
export interface Account {
  userId: string;
  username: string;
  email: string;
  password: string;
  orgId: string;
  workspaceId: string;
  accessToken: string;
  refreshToken: string;
}

/** An account that calls the service. */
export interface Person extends Account {
  headers: { authorization: string };
  /** Path of their workspace. */
  home: string;
  /** A REST request; the body of an empty answer is `null`. */
  call<T = Body>(method: Method, url: string, payload?: object): Promise<Answer<T>>;
  /** A GraphQL request. */
  ask<T = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<{ data: T; errors?: { extensions: { code: string; details?: { reason?: string } } }[] }>;
}

/** What may be given of a new account; the rest is made up. */
export interface Given {
  /** What the username begins with, where none is given. */
  name?: string;
  username?: string;
  email?: string;
  password?: string;
  fullName?: string;
}

/** What signing in answers. */
export interface SignedIn {
  access_token: string;
  refresh_token: string;
  user: {
    user_id: string;
    username: string;
    email: string;
    default_workspace_id: string;
    settings: { current_org_id: string };
  };
}

/** Registers an account with an organization and a workspace of its own. */
export async function register(app: TestApp, given: Given = {}): Promise<Person> {
  const { password, ...names } = identityOf(given);
  const payload = { ...names, password };
  const body = await expectOk<SignedIn>(app, { method: 'POST', url: '/v1/auth/register', payload });
  return personOf(app, body, password, names.email);
}

/** Registers an account and proves its address, as the link in its first mail does: it may invite others. */
export async function registerProven(app: TestApp, given: Given = {}): Promise<Person> {
  const person = await register(app, given);
  await prove(app, [person]);
  return person;
}

/** Proves the addresses of accounts. */
export async function prove(app: TestApp, people: readonly Pick<Account, 'userId'>[]): Promise<void> {
  const ids = people.map(({ userId }) => userId);
  await app.database.pool.query('update users set is_verified = true where id = any($1)', [ids]);
  app.services.authentication.sessionsChanged(); // what a node knows of callers is some moments old
}

/** An account that administers the platform. */
export async function platformAdmin(app: TestApp): Promise<Person> {
  const person = await register(app, { name: 'platform' });
  await app.database.pool.query('update users set is_platform_admin = true where id = $1', [person.userId]);
  app.services.authentication.sessionsChanged(); // as above
  return person;
}

/** Signs in. */
export async function signIn(
  app: TestApp,
  { username, password }: Pick<Account, 'username' | 'password'>,
): Promise<Person> {
  const payload = { username, password };
  const body = await expectOk<SignedIn>(app, { method: 'POST', url: '/v1/auth/login', payload });
  return personOf(app, body, password);
}

/** Makes an account in the owner's organization, which then manages it; it signs in, and works where the owner does. */
export async function createUser(
  app: TestApp,
  owner: Account,
  { role = 'member', ...given }: Given & { role?: Role } = {},
): Promise<Person> {
  const identity = identityOf(given);
  await expectOk(app, { method: 'POST', url: '/v1/users', headers: bearer(owner), payload: { ...identity, role } });
  const { orgId, workspaceId } = owner;
  const somebody = await signIn(app, identity);
  return caller(app, { ...somebody, email: identity.email, orgId, workspaceId });
}

/**
 * Somebody who has an organization of their own and joins the owner's and its workspace, with the same role in both.
 */
export async function colleague(app: TestApp, owner: Account, role: Role): Promise<Person> {
  const somebody = await register(app, { name: role });
  const url = `/v1/orgs/${owner.orgId}/members`;
  await expectOk(app, { method: 'POST', url, headers: bearer(owner), payload: { user_id: somebody.userId, role } });
  await addToWorkspace(app, owner, somebody.userId, role);
  return somebody;
}

/** Makes an account a member of the owner's workspace, and so of its organization. */
export async function addToWorkspace(
  app: TestApp,
  owner: Account,
  userId: string,
  role: Role = 'member',
): Promise<void> {
  const url = `${homeOf(owner)}/members`;
  await expectOk(app, { method: 'POST', url, headers: bearer(owner), payload: { user_id: userId, role } });
}

/** The calls of an account that is there already: at this app, and with the token that it names. */
export function caller(app: TestApp, account: Account): Person {
  const headers = bearer(account);
  return {
    ...account,
    headers,
    home: homeOf(account),
    async call(method, url, payload) {
      const response = await app.server.inject({ method, url, headers, ...(payload ? { payload } : {}) });
      return { status: response.statusCode, body: (response.body === '' ? null : response.json()) as never };
    },
    async ask(query, variables) {
      return (await app.server.inject(graphqlRequest(query, variables, headers.authorization))).json();
    },
  };
}

/** The account that signing in answered with. */
export function personOf(app: TestApp, body: SignedIn, password: string, email = body.user.email): Person {
  const { access_token, refresh_token, user } = body;
  return caller(app, {
    userId: user.user_id,
    username: user.username,
    email,
    password,
    orgId: user.settings.current_org_id,
    workspaceId: user.default_workspace_id,
    accessToken: access_token,
    refreshToken: refresh_token,
  });
}

function identityOf({ name = 'user', username, email, password, fullName }: Given) {
  const unique = username ?? `${name}-${randomBytes(6).toString('hex')}`;
  return {
    username: unique,
    email: email ?? `${unique}@example.test`,
    password: password ?? `the password of ${unique}`,
    ...(fullName === undefined ? {} : { full_name: fullName }),
  };
}

const bearer = ({ accessToken }: Pick<Account, 'accessToken'>) => ({ authorization: `Bearer ${accessToken}` });
const homeOf = ({ orgId, workspaceId }: Pick<Account, 'orgId' | 'workspaceId'>) =>
  `/v1/orgs/${orgId}/workspaces/${workspaceId}`;

/** Types of the events that tell of a resource, in order. */
export async function eventsOf(app: TestApp, resourceId: string, orgId?: string): Promise<string[]> {
  const events = await app.database.prisma.event.findMany({
    where: { resourceId, orgId },
    orderBy: { seq: 'asc' },
    select: { type: true },
  });
  return events.map(({ type }) => type);
}

/** What the audit trail holds of changes of a resource, in order. */
export async function changesOf(app: TestApp, resourceId: string) {
  return app.database.prisma.activity.findMany({
    // what failed is recorded a moment after its answer
    where: { resourceId, success: true, action: { notIn: ['read', 'list'] } },
    orderBy: { id: 'asc' },
    select: {
      action: true,
      resourceType: true,
      orgId: true,
      workspaceId: true,
      userId: true,
      statusCode: true,
      metadata: true,
    },
  });
}
