import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register, type SignedIn } from '../../support/person.ts';
import { type Company, newBrowser, openIdCompany, samlAnswer, samlCompany } from '../sso/companies.ts';
import { type OpenIdServer, startOpenIdServer } from '../sso/openid-server.ts';
import { newIdpKey } from '../sso/saml-idp.ts';
import { accountOf, clientOf, entraUser, newToken, rolesOf } from './directories.ts';

/*
 * A directory makes the account, and tells nobody: the person finds the service among the applications of their
 * provider, signs in there, and is in that account with the roles of their groups (docs/decisions/0085).
 */

let app: TestApp;
let server: OpenIdServer;
const key = newIdpKey();
beforeAll(async () => {
  server = await startOpenIdServer();
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(async () => {
  await app.close();
  await server.close();
});

/** The directory of a company, with somebody in a group that gives a role there and one in a workspace. */
async function provisioned({ owner, domain, url }: Company, userName: string) {
  const { orgId, workspaceId } = owner;
  const group_mappings = [
    { group: 'Editors', role_id: 'editor' },
    { group: 'crew', role_id: 'viewer', workspace_id: workspaceId },
  ];
  expect((await owner.call('PUT', url, { group_mappings })).status).toBe(200);
  const scim = clientOf(app, `/scim/v2/${orgId}`, (await newToken(owner)).token);
  const { status, body } = await scim('POST', '/Users', entraUser(`${userName}@${domain}`));
  expect(status, JSON.stringify(body)).toBe(201);
  for (const displayName of ['Editors', 'crew'])
    expect((await scim('POST', '/Groups', { displayName, members: [{ value: body.id }] })).status).toBe(201);
  const deactivate = () =>
    scim('PATCH', `/Users/${body.id}`, { Operations: [{ op: 'Replace', path: 'active', value: 'False' }] });
  return { userId: await accountOf(app, body.id), deactivate };
}

const usersWith = async (domain: string) =>
  (await app.database.pool.query('select id from users where email like $1', [`%@${domain}`])).rows.length;

/** Signs somebody of a company in at its provider. */
const ways: Record<
  'OpenID' | 'SAML',
  (company: Company) => Promise<{ statusCode: number; body: string; json(): unknown }>
> = {
  OpenID: async ({ domain }) => {
    const email = `sam@${domain}`;
    // what the claims say of groups does not count beside the directory
    server.account = { sub: `sub of ${domain}`, email, email_verified: true, groups: ['Nobody'] };
    const browser = newBrowser(app);
    const { pathname, search } = server.authorize(await browser.begin(email));
    return browser.send('GET', `${pathname}${search}`);
  },
  SAML: async (company) => {
    const { message, relayState } = await samlAnswer(app, company, key);
    const payload = new URLSearchParams({ SAMLResponse: message, RelayState: relayState }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return app.server.inject({ method: 'POST', url: '/v1/auth/sso/callback/saml', headers, payload });
  },
};

test.each(['OpenID', 'SAML'] as const)(
  'who was made by a directory is that account at the first sign-in by %s',
  async (way) => {
    const company = way === 'OpenID' ? await openIdCompany(app, server) : await samlCompany(app, key);
    const { owner, domain } = company;
    const { userId, deactivate } = await provisioned(company, 'sam');
    const roles = { organization: 'editor', workspaces: ['viewer'] };
    expect(await rolesOf(app, owner.orgId, userId)).toEqual(roles);
    await app.jobsDone();
    expect(app.mails.filter(({ to }) => to.endsWith(domain))).toEqual([]);
    for (let times = 0; times < 2; times++) {
      const answer = await ways[way](company);
      expect(answer.statusCode, answer.body).toBe(200);
      const { user, access_token } = answer.json() as SignedIn & { access_token: string };
      expect(user.user_id).toBe(userId);
      const headers = { authorization: `Bearer ${access_token}` };
      const inside = await app.server.inject({ url: `/v1/orgs/${owner.orgId}/workspaces`, headers });
      expect([inside.statusCode, inside.json()]).toMatchObject([200, { total: 1 }]);
    }
    expect([await rolesOf(app, owner.orgId, userId), await usersWith(domain)]).toEqual([roles, 1]);
    // and nobody any more once the directory says so
    expect((await deactivate()).status).toBe(200);
    expect((await ways[way](company)).statusCode).toBe(403);
    expect(await rolesOf(app, owner.orgId, userId)).toEqual({ organization: null, workspaces: [] });
  },
);
