import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../src/infra/logger.ts';
import { startTestApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ logger: createLogger({ logLevel: 'error' }) });
});
afterAll(() => app.close());

test('slice', async () => {
  const reg = await app.server.inject({ method: 'POST', url: '/v1/auth/register', payload: { email: 'Ann@example.com', username: 'ann', password: 'correct horse' } });
  console.log(reg.statusCode, reg.body);
  const { access_token, user } = reg.json();
  const headers = { authorization: `Bearer ${access_token}` };
  const org = user.settings.current_org_id;
  for (const url of ['/v1/auth/me', `/v1/orgs/${org}/workspaces`, `/v1/orgs/${org}/workspaces/${user.default_workspace_id}`, `/v1/orgs/${org}/workspaces/${user.default_workspace_id}/members`, `/v1/users?workspace_id=${user.default_workspace_id}`, '/v1/orgs/org_x/workspaces', '/v1/orgs/x/workspaces?limit=1000&cursor=xx', '/healthz', '/readyz', '/nope']) {
    const res = await app.server.inject({ url, headers });
    console.log(url, res.statusCode, res.body.slice(0, 600));
  }
  const gql = await app.server.inject({ method: 'POST', url: '/graphql', headers: { ...headers, 'content-type': 'application/json' }, payload: { query: '{ me { id username roles settings } bad: me { nope } }' } });
  console.log(gql.statusCode, gql.body);
  const gql2 = await app.server.inject({ method: 'POST', url: '/graphql', headers: { ...headers, 'content-type': 'application/json' }, payload: { query: `{ me { id username roles settings } workspaces(orgId: "${org}") { totalCount nodes { id name } edges { cursor } } }` } });
  console.log(gql2.statusCode, gql2.body);
  const c = await app.server.inject({ method: 'POST', url: `/v1/orgs/${org}/workspaces`, headers, payload: { organization_id: 'x', name: '' } });
  console.log(c.statusCode, c.body);
  console.log((await app.server.inject({ method: 'POST', url: `/v1/orgs/${org}/workspaces`, headers, payload: { organization_id: org, name: 'Two' } })).body);
  await app.services.activity.flush();
  console.log(await app.database.prisma.activity.findMany({ select: { action: true, resourceType: true, statusCode: true, path: true, errorCode: true } }));
  console.log(await app.database.pool.query('select seq, xid::text, type, actor, resource_id from events').then((r) => r.rows));
  console.log(app.mails);
  expect(reg.statusCode).toBe(201);
});
