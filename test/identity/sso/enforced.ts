import { expect } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { caller, type Person, personOf, prove, type SignedIn } from '../../support/person.ts';
import { type Company, newBrowser, openIdCompany } from './companies.ts';
import type { OpenIdServer } from './openid-server.ts';

/** A company whose owner signs in at its OpenID provider, too: with the subject `owner of <domain>`. */
export interface EnforcingCompany extends Company {
  orgId: string;
  /** A place of the organization that its members may read. */
  inside: string;
}

const UPDATE = `mutation ($orgId: ID!, $input: UpdateSignInPolicyInput!) {
  updateSignInPolicy(orgId: $orgId, input: $input) {
    orgId ssoRequired ssoRequiredDomains breakGlass membersWithoutIdentity
  }
}`;
const LINK = `mutation ($orgId: ID!, $id: ID!, $input: LinkIdentityInput!) {
  linkIdentity(orgId: $orgId, id: $id, input: $input) { subject }
}`;
const BREAK = `mutation ($orgId: ID!, $input: BreakGlassInput!) {
  breakGlass(orgId: $orgId, input: $input) { orgId until }
}`;

type Answer = { data: Record<string, unknown> | null; errors?: { extensions: Record<string, unknown> }[] };

/** Changes how the members of an organization have to sign in. */
export const setPolicy = (who: Person, orgId: string, input: object): Promise<Answer> =>
  who.ask(UPDATE, { orgId, input }) as Promise<Answer>;
export const breakGlass = (who: Person, orgId: string, password: string, reason = 'the provider is down') =>
  who.ask(BREAK, { orgId, input: { password, reason } }) as Promise<Answer>;

export async function newCompany(app: TestApp, server: OpenIdServer): Promise<EnforcingCompany> {
  const company = await openIdCompany(app, server);
  const { owner, idpId, domain } = company;
  // linking an account that never proved its address would end its password
  await prove(app, [owner]);
  const input = { userId: owner.userId, subject: `owner of ${domain}` };
  const { errors } = await owner.ask(LINK, { orgId: owner.orgId, id: idpId, input });
  expect(errors).toBeUndefined();
  return { ...company, orgId: owner.orgId, inside: `/v1/orgs/${owner.orgId}/workspaces` };
}

/** Signs in at the OpenID provider of a company. */
export async function atProvider(
  app: TestApp,
  server: OpenIdServer,
  { domain, orgId }: Pick<EnforcingCompany, 'domain' | 'orgId'>,
  who: { sub?: string; email?: string; sid?: string } = {},
): Promise<Person> {
  const email = who.email ?? `${who.sub ?? 'ann'}@${domain}`;
  server.account = { sub: who.sub ?? 'ann', email, email_verified: true, ...(who.sid ? { sid: who.sid } : {}) };
  const browser = newBrowser(app);
  const { pathname, search } = server.authorize(await browser.begin(`somebody@${domain}`));
  const answer = await browser.send('GET', `${pathname}${search}`);
  expect(answer.statusCode, answer.body).toBe(200);
  const person = personOf(app, answer.json<SignedIn>(), '', email);
  return caller(app, { ...person, orgId });
}

export const asOwner = (app: TestApp, server: OpenIdServer, company: EnforcingCompany): Promise<Person> =>
  atProvider(app, server, company, { sub: `owner of ${company.domain}`, email: company.owner.email });

/** The status of a look at the organization, and the reason of a refusal. */
export async function look(who: Pick<Person, 'call'>, { inside }: Pick<EnforcingCompany, 'inside'>) {
  const { status, body } = await who.call<{ details?: { reason?: string } }>('GET', inside);
  return body?.details?.reason ? `${status} ${body.details.reason}` : `${status}`;
}

export const SHUT_OUT = '403 sso_required';
