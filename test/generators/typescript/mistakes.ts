// What the types refuse: a document that says too little would let these pass.
import createClient from 'openapi-fetch';
import type { paths } from './api.d.ts';

/** Never called: each mistake is one that the compiler finds. */
export async function mistakes(): Promise<void> {
  const api = createClient<paths>({ baseUrl: 'http://127.0.0.1' });
  const params = { path: { org_id: 'org_1' } };
  // @ts-expect-error there is no such route
  await api.GET('/v1/orgs/{org_id}/nothing', { params });
  // @ts-expect-error a parameter of the path is missing
  await api.GET('/v1/orgs/{org_id}/workspaces', {});
  // @ts-expect-error a required field is missing
  await api.POST('/v1/orgs/{org_id}/workspaces', { params, body: { organization_id: 'org_1' } });
  // @ts-expect-error a limit is a number
  await api.GET('/v1/orgs/{org_id}/workspaces', { params: { ...params, query: { limit: 'ten' } } });
  const { data } = await api.GET('/v1/orgs/{org_id}/workspaces', { params });
  // @ts-expect-error an answer has no such field
  data?.workspaces.map(({ owner }) => owner);
}
