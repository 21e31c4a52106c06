// What somebody writes who has only the OpenAPI document: the suite beside it generates `api.d.ts`, compiles this file
// under `tsc --strict`, and runs it. It has no cast, no `any` and no `!` that a strict reader would not write.
import createClient, { type Middleware } from 'openapi-fetch';
import type { components, paths } from './api.d.ts';

type Workspace = components['schemas']['Workspace'];

/** What the suite compares with the database and with what it knows. */
export interface Report {
  workspaceId: string;
  /** Names of all workspaces, read page by page. */
  names: string[];
  apiKey: unknown;
  renamed: string;
  /** The refusal of a change of what was changed meanwhile. */
  refusal: { status: number; error: string; traceId: string | null };
  /** The first lines of the workspace's stream. */
  stream: string;
}

/** Uses the service as a new user would. @param baseUrl its address, without a path */
export async function useTheApi(baseUrl: string, email: string): Promise<Report> {
  const api = createClient<paths>({ baseUrl });
  const session = await api.POST('/v1/auth/register', {
    body: { email, username: email.split('@')[0] ?? 'ann', password: 'correct horse battery', full_name: 'Ann' },
  });
  if (session.error) throw new Error(JSON.stringify(session.error));
  const { access_token, user } = session.data;
  api.use(bearer(access_token));
  const org_id = user.settings.current_org_id;
  if (typeof org_id !== 'string') throw new Error('A new user has an organization of their own.');

  const made = await api.POST('/v1/orgs/{org_id}/workspaces', {
    params: { path: { org_id }, header: { 'idempotency-key': 'a-typed-client' } },
    body: { organization_id: org_id, name: 'Research', tags: ['team'] },
  });
  if (made.error) throw new Error(JSON.stringify(made.error));
  const { workspace_id } = made.data;
  const path = { org_id, workspace_id };

  await api.POST('/v1/orgs/{org_id}/secrets', {
    params: { path: { org_id } },
    body: { name: 'openai', secret_type: 'api_key', value: { api_key: 'sk-1', nested: { list: [1, 'two', null] } } },
  });
  const revealed = await api.GET('/v1/orgs/{org_id}/secrets/by-name/{name}', {
    params: { path: { org_id, name: 'openai' }, query: { include_value: true } },
  });

  const etag = made.response.headers.get('etag') ?? '';
  const change = (name: string) =>
    api.PUT('/v1/orgs/{org_id}/workspaces/{workspace_id}', {
      params: { path, header: { 'if-match': etag } },
      body: { name },
    });
  const renamed = await change('Renamed');
  const late = await change('Too late');
  if (!late.error) throw new Error('A version of before was taken.');

  return {
    workspaceId: workspace_id,
    names: (await allWorkspaces(api, org_id)).map(({ name }) => name),
    apiKey: revealed.data?.value,
    renamed: renamed.data?.name ?? '',
    refusal: {
      status: late.response.status,
      error: 'error' in late.error ? late.error.error : '',
      traceId: late.response.headers.get('x-trace-id'),
    },
    stream: await beginningOfStream(api, path),
  };
}

type Api = ReturnType<typeof createClient<paths>>;

const bearer = (token: string): Middleware => ({
  onRequest: ({ request }) => {
    request.headers.set('authorization', `Bearer ${token}`);
    return request;
  },
});

async function allWorkspaces(api: Api, org_id: string): Promise<Workspace[]> {
  const all: Workspace[] = [];
  let cursor: string | undefined;
  do {
    const { data, error } = await api.GET('/v1/orgs/{org_id}/workspaces', {
      params: { path: { org_id }, query: { limit: 1, ...(cursor === undefined ? {} : { cursor }) } },
    });
    if (error) throw new Error(JSON.stringify(error));
    all.push(...data.workspaces);
    cursor = data.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

async function beginningOfStream(api: Api, path: { org_id: string; workspace_id: string }): Promise<string> {
  const { data, error } = await api.GET('/v1/orgs/{org_id}/workspaces/{workspace_id}/sync/stream', {
    params: { path },
    parseAs: 'stream',
  });
  if (error || !data) throw new Error(JSON.stringify(error));
  const reader = data.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}
