import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { issueToken, type TokenRecord } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const listed = async (path: string, owner: Person, headers = owner.headers): Promise<TokenRecord[]> => {
  const answer = await callsOf(app).get(`/v1/orgs/${owner.orgId}/${path}`, headers);
  expect(answer.statusCode).toBe(200);
  return answer.json().tokens;
};

describe('a list of tokens', () => {
  it('holds every live one, also behind more revoked ones than it shows', async () => {
    const owner = await register(app);
    const oldest = await issueToken(app, owner);
    // as a program leaves behind that refreshes its token all the time
    await fill(
      app,
      `insert into api_tokens (id, org_id, family_id, token_type, owner_type, owner_id,
         created_by_user_id, name, prefix, token_hash, refresh_hash, issued_at, expires_at, revoked_at, revoked_reason)
       select 'tok_Z' || lpad(n::text, 25, '0'), org_id, family_id, token_type, owner_type, owner_id,
         created_by_user_id, name, prefix, token_hash || n, refresh_hash || n, issued_at, expires_at,
         now() - interval '1 day', 'rotated'
       from api_tokens, generate_series(1, 10100) n where id = $1`,
      [oldest.id],
    );
    for (const path of ['api-tokens', 'api-tokens/admin']) {
      const tokens = await listed(path, owner);
      expect(tokens).toHaveLength(5_001);
      expect(tokens[0]!.token_id).toMatch(/10100$/);
      expect(tokens.at(-1)!.token_id).toBe(oldest.id);
    }
    const { data } = (
      await callsOf(app).graphql(
        `{ apiTokens(orgId: "${owner.orgId}", first: 1) { totalCount }
           organization(id: "${owner.orgId}") { apiTokens(first: 1) { totalCount } } }`,
        {},
        owner.headers,
      )
    ).json();
    expect(data).toEqual({ apiTokens: { totalCount: 5_001 }, organization: { apiTokens: { totalCount: 5_001 } } });
  });

  it('shows a token of an app itself and its user’s others of that app, no other token of the user', async () => {
    const owner = await register(app);
    const newApp = async (): Promise<string> =>
      (
        await callsOf(app).post(
          `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/apps`,
          { name: 'an app' },
          owner.headers,
        )
      ).json().app_id;
    const [app_id, other] = [await newApp(), await newApp()];
    const mine = await issueToken(app, owner, { name: 'of the user' });
    const permissions = ['api_token:read', 'app_token:read'];
    const [first, second] = [
      await issueToken(app, owner, { app_id, permissions }),
      await issueToken(app, owner, { app_id }),
    ];
    await issueToken(app, owner, { app_id: other });
    const expected = [second.id, first.id];
    expect((await listed('api-tokens', owner, first.headers)).map(({ token_id }) => token_id)).toEqual(expected);
    const { data, errors } = (
      await callsOf(app).graphql(
        `{ organization(id: "${owner.orgId}") { apiTokens { totalCount nodes { id } } }
           node(id: "${mine.id}") { id } }`,
        {},
        first.headers,
      )
    ).json();
    expect(data.organization.apiTokens).toEqual({ totalCount: 2, nodes: expected.map((id) => ({ id })) });
    expect([data.node, errors]).toEqual([null, undefined]);
    expect((await listed('api-tokens', owner)).map(({ token_id }) => token_id)).toEqual([mine.id]);
  });
});
