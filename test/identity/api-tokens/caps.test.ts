import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
let there: TestApp;
beforeAll(async () => {
  const env = { MAX_TOKENS_PER_OWNER: '5', MAX_TOKENS_PER_ORGANIZATION: '8' };
  app = await startTestApp({ env });
  there = await app.another(env);
});
afterAll(() => app.close());

const newApp = async ({ orgId, workspaceId, headers }: Person): Promise<string> =>
  (await callsOf(app).post(`/v1/orgs/${orgId}/workspaces/${workspaceId}/apps`, { name: 'an app' }, headers)).json()
    .app_id;
const createOn = (node: TestApp, { orgId, headers }: Person, path = 'api-tokens') =>
  callsOf(node).post(`/v1/orgs/${orgId}/${path}`, { name: 'one more' }, headers);
const full = (resource_type: string, resource_id: string, limit: number) => ({
  error: 'RESOURCE_CONFLICT',
  status_code: 409,
  details: { resource_type, resource_id, reason: 'limit_reached', limit },
});

describe('live tokens', () => {
  it('of a user are so many and no more, when 50 are asked for at once on two nodes', async () => {
    const owner = await register(app);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => createOn(i % 2 ? app : there, owner)));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(5);
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 201))
      expect(answer.json()).toMatchObject(full('user', owner.userId, 5));
    expect(await app.database.prisma.apiToken.count({ where: { orgId: owner.orgId } })).toBe(5);
  });

  it('of an app are counted apart, and all of an organization together', async () => {
    const owner = await register(app);
    const path = `apps/${await newApp(owner)}/tokens`;
    for (let i = 0; i < 5; i++) expect((await createOn(app, owner, path)).statusCode).toBe(201);
    expect((await createOn(app, owner, path)).json()).toMatchObject(full('app', path.split('/')[1]!, 5));
    for (let i = 0; i < 3; i++) expect((await createOn(app, owner)).statusCode).toBe(201);
    expect((await createOn(app, owner)).json()).toMatchObject(full('organization', owner.orgId, 8));
    const colleague = await createUser(app, owner);
    expect((await createOn(app, colleague)).json()).toMatchObject(full('organization', owner.orgId, 8));
    // another organization is another matter
    expect((await createOn(app, await register(app))).statusCode).toBe(201);
  });

  it('make room when they are revoked, or cannot be refreshed any more; a refresh takes no second place', async () => {
    const owner = await register(app);
    const tokens: Awaited<ReturnType<typeof issueToken>>[] = [];
    for (let i = 0; i < 5; i++) tokens.push(await issueToken(app, owner));
    const url = `/v1/orgs/${owner.orgId}/api-tokens`;
    const refreshed = await callsOf(app).post(`${url}/refresh`, { refresh_token: tokens[0]!.refresh_token_plaintext });
    expect(refreshed.statusCode).toBe(200);
    expect((await createOn(app, owner)).statusCode).toBe(409);
    await callsOf(app).delete(`${url}/${tokens[1]!.id}`, owner.headers);
    expect((await createOn(app, owner)).statusCode).toBe(201);
    const end = (column: string) =>
      app.database.pool.query(`update api_tokens set ${column} = now() - interval '1 s' where id = $1`, [
        tokens[2]!.id,
      ]);
    await end('expires_at');
    expect((await createOn(app, owner)).statusCode).toBe(409);
    await end('refresh_expires_at');
    expect((await createOn(app, owner)).statusCode).toBe(201);
  });
});
