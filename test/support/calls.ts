import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { TestAccount } from './account.ts';
import type { TestApp } from './app.ts';

/** Short forms of `server.inject`, for tests that are about a story of several requests. */
export interface Calls {
  get: (url: string, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
  post: (url: string, payload?: object, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
  put: (url: string, payload: object, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  patch: (url: string, payload: object, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  delete: (url: string, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  graphql: (query: string, variables?: object, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
}

export function callsOf(app: TestApp): Calls {
  const call = (method: InjectOptions['method'], url: string, headers: Record<string, string> = {}, payload?: object) =>
    app.server.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
  return {
    get: (url, headers) => call('GET', url, headers),
    post: (url, payload, headers) => call('POST', url, headers, payload),
    put: (url, payload, headers) => call('PUT', url, headers, payload),
    patch: (url, payload, headers) => call('PATCH', url, headers, payload),
    delete: (url, headers) => call('DELETE', url, headers),
    graphql: (query, variables, headers) => call('POST', '/graphql', headers, { query, variables }),
  };
}

/** Body and code of an answer, without what differs from one to the next. */
export function sameness(answer: LightMyRequestResponse): { statusCode: number; body: string; headers: unknown } {
  const { 'x-trace-id': _trace, date: _date, ...headers } = answer.headers;
  return { statusCode: answer.statusCode, body: answer.body.replace(/"timestamp":"[^"]*"/, ''), headers };
}

/** The owner of an organization makes an account in it, which the organization then manages, and the account signs in. */
export async function addColleague(
  app: TestApp,
  owner: TestAccount,
  username: string,
  role = 'member',
): Promise<TestAccount> {
  const { post } = callsOf(app);
  const email = `${username}@example.test`;
  const password = `the password of ${username}`;
  const made = await post('/v1/users', { email, username, password, role }, owner.headers);
  if (made.statusCode !== 201) throw new Error(`making ${username}: ${made.statusCode} ${made.body}`);
  const { access_token, refresh_token, user } = (await post('/v1/auth/login', { username, password })).json();
  return {
    userId: user.user_id,
    username,
    email,
    password,
    orgId: owner.orgId,
    workspaceId: owner.workspaceId,
    accessToken: access_token,
    refreshToken: refresh_token,
    headers: { authorization: `Bearer ${access_token}` },
  };
}

/** Makes an existing account a member of a workspace, and so of its organization. */
export async function addToWorkspace(app: TestApp, owner: TestAccount, userId: string, role = 'member'): Promise<void> {
  const url = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/members`;
  const added = await callsOf(app).post(url, { user_id: userId, role }, owner.headers);
  if (added.statusCode !== 201) throw new Error(`adding ${userId}: ${added.statusCode} ${added.body}`);
}
