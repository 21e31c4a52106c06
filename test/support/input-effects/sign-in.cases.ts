import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { type Company, newBrowser, openIdCompany, samlAnswer, samlCompany } from '../../identity/sso/companies.ts';
import { asOwner, type EnforcingCompany, newCompany, setPolicy } from '../../identity/sso/enforced.ts';
import { type OpenIdServer, startOpenIdServer } from '../../identity/sso/openid-server.ts';
import { signMetadata, usualIdpKey } from '../../identity/sso/saml-idp.ts';
import { metadataXml } from '../../identity/sso/saml-metadata.ts';
import { createUser, type Person, register } from '../person.ts';
import { expectOk } from '../requests.ts';
import { startTarget } from '../target-server.ts';
import { givePasskey } from '../world.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

/** What the service of the suite is called from outside. */
export const PUBLIC_URL = 'http://service.test';

interface OpenIdUser {
  server: OpenIdServer;
  company: Company;
  email: string;
}

const openIdUsers = new WeakMap<Lab, OpenIdUser>();

/**
 * A company whose users sign in at an OpenID provider, and one of them. It is made once: to make the keys of a provider
 * takes longer than anything else here.
 */
async function openIdUser(lab: Lab): Promise<OpenIdUser> {
  const known = openIdUsers.get(lab);
  if (known) return known;
  const server = await startOpenIdServer();
  lab.closeLater(server);
  const company = await openIdCompany(lab.app, server);
  const email = `ann@${company.domain}`;
  server.account = { sub: 'ann', email, email_verified: true };
  const made = { server, company, email };
  openIdUsers.set(lab, made);
  return made;
}

const enforcing = new WeakMap<Lab, { company: EnforcingCompany; owner: Person }>();

/** A company that may demand single sign-on, and its owner, who has signed in at its provider. */
async function enforcingCompany(lab: Lab): Promise<{ company: EnforcingCompany; owner: Person }> {
  const known = enforcing.get(lab);
  if (known) return known;
  const { server } = await openIdUser(lab);
  const { account } = server;
  const company = await newCompany(lab.app, server);
  const made = { company, owner: await asOwner(lab.app, server, company) };
  server.account = account;
  enforcing.set(lab, made);
  return made;
}

/** A new provider of the world's organization, with a domain of its own that is not proven. */
async function newProvider({ app, world }: Lab, more: object = {}): Promise<{ id: string; domain: string }> {
  const domain = `d${randomBytes(6).toString('hex')}.example.test`;
  const url = `/v1/orgs/${world.ids.org_id}/identity-providers`;
  const payload = { name: 'P', protocol: 'oidc', verified_domains: [domain], ...more };
  const made = await expectOk<{ idp_id: string }>(app, { method: 'POST', url, headers: world.as('owner'), payload });
  return { id: made.idp_id, domain };
}

const WITHOUT_SAML = { 'input.samlConfig': leftOut, 'input.samlMetadata': leftOut };
const START = 'input.defaultWorkspaceId';
const WORKSPACE = 'input.groupMappings.workspaceId';
const samlVariant = ({ world }: Lab) => ({
  'input.protocol': 'saml',
  'input.oidcConfig': leftOut,
  'input.samlMetadata': leftOut,
  [START]: leftOut,
  'input.samlConfig.entityId': `https://idp.example.test/${world.next()}`,
  'input.samlConfig.ssoUrl': `https://idp.example.test/sso/${world.next()}`,
  'input.samlConfig.sloUrl': `https://idp.example.test/slo/${world.next()}`,
  'input.samlConfig.certificate': usualIdpKey().certificate,
  'input.samlConfig.nameIdFormat': 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  'input.samlConfig.allowUnsolicited': true,
  'input.samlConfig.signAuthnRequests': true,
});

/** The address of signed metadata, which is the same wherever it is asked. */
async function metadataVariant(lab: Lab) {
  const key = usualIdpKey();
  const body = signMetadata(metadataXml({ keys: [key], root: 'ID="_m"' }), key);
  const target = await startTarget((_request, response) => response.end(body));
  lab.closeLater(target);
  return {
    'input.protocol': 'saml',
    'input.oidcConfig': leftOut,
    'input.samlConfig': leftOut,
    [START]: leftOut,
    'input.samlMetadata.url': `http://127.0.0.1:${target.port}/${lab.world.next()}`,
    'input.samlMetadata.certificate': key.certificate,
  };
}

const providerVariants = (lab: Lab) => [
  {
    ...WITHOUT_SAML,
    'input.protocol': 'oidc',
    'input.defaultRoleId': 'editor',
    [WORKSPACE]: lab.world.ids.workspace_id,
    [START]: lab.world.ids.workspace_id,
    'input.oidcConfig.clientSecretRef': 'external:another',
  },
  samlVariant(lab),
];

/** Identity providers, the proofs of their domains, and signing in by them. */
export const signInCases: Readonly<Record<string, InputCase>> = {
  breakGlass: {
    prepare: async ({ app }) => {
      const { orgId, password, accessToken, ...owner } = await register(app);
      await setPolicy({ orgId, password, accessToken, ...owner }, orgId, { ssoRequired: true });
      return { given: { orgId, input: { password, reason: 'the provider is down' } }, token: accessToken };
    },
    demands: { 'input.password': 'not the password' },
    effects: {
      'input.reason': async ({ app }) => {
        const found = await app.database.prisma.activity.findFirst({
          where: { action: 'update', resourceType: 'organization', success: true },
          orderBy: { id: 'desc' },
        });
        expect(found?.metadata).toMatchObject({ break_glass: 'the provider is down' });
      },
    },
  },
  updateSignInPolicy: {
    prepare: async (lab) => {
      const { company, owner } = await enforcingCompany(lab);
      // who demands a factor has one, and has just proven it
      await givePasskey(lab.app, owner.userId, 'of the owner');
      return { given: { orgId: company.orgId, input: {} }, token: owner.accessToken };
    },
    variants: async (lab) => {
      const { company } = await enforcingCompany(lab);
      return [
        {
          'input.ssoRequired': true,
          'input.ssoRequiredDomains': [company.domain],
          'input.breakGlass': false,
          'input.requireFactor': true,
          'input.factorGraceDays': 3,
          'input.stepUp': ['secret_reveal'],
        },
      ];
    },
  },
  checkDomainProof: {
    prepare: async (lab) => {
      const { id, domain } = await newProvider(lab);
      const { app, world } = lab;
      const given = { orgId: world.ids.org_id, id, input: { domain, method: 'mail' } };
      await mutateOk(app, 'startDomainProof', given, world.accounts.owner.accessToken);
      await app.jobsDone();
      const mail = app.mails.findLast(({ to }) => to === `postmaster@${domain}`);
      return { given: { id, input: { domain, code: /^([\w-]{43})$/m.exec(mail?.text ?? '')?.[1] } } };
    },
    demands: { 'input.code': 'nobody-was-mailed-this-code', 'input.domain': 'somebody-elses.example.test' },
  },
  createIdentityProvider: {
    variants: async (lab) => [...providerVariants(lab), await metadataVariant(lab)],
  },
  updateIdentityProvider: {
    demands: { 'input.protocol': 'saml' },
    // the last one is what the other tests go on with
    variants: async (lab) => {
      const [openId, saml] = providerVariants(lab);
      const made = await newProvider(lab, { protocol: 'saml' });
      const read = await newProvider(lab, { protocol: 'saml' });
      return [
        { ...saml, id: made.id, 'input.protocol': leftOut },
        { ...(await metadataVariant(lab)), id: read.id, 'input.protocol': leftOut },
        { ...openId, 'input.protocol': leftOut },
      ];
    },
  },
  discoverSso: {
    effects: {
      'input.email': async (lab) => {
        const { email } = await openIdUser(lab);
        const discover = (address: string) => mutateOk(lab.app, 'discoverSso', { input: { email: address } }, null);
        expect(await discover(email)).toMatchObject({ ssoAvailable: true });
        expect(await discover(`x${email}`.replace('@', '@x'))).toMatchObject({ ssoAvailable: false });
      },
    },
  },
  exchangeSsoCode: {
    prepare: async (lab) => {
      const { server, email } = await openIdUser(lab);
      const browser = newBrowser(lab.app);
      const begun = await browser.begin(email, { redirect_uri: `${PUBLIC_URL}/account/sign-in` });
      const { pathname, search } = server.authorize(begun);
      const { headers } = await browser.send('GET', `${pathname}${search}`);
      // like that of a front end for any browser
      await lab.app.database.pool.query('update sso_codes set browser_hash = null');
      return { given: { input: { code: new URL(headers.location ?? '').searchParams.get('code') } }, token: null };
    },
    demands: { 'input.code': 'nobody-was-given-this-code' },
  },
  finishOidcSignIn: {
    prepare: async (lab) => {
      const { server, email } = await openIdUser(lab);
      const begun = (await mutateOk(lab.app, 'initiateSso', { input: { email } }, null)) as { redirectUrl: string };
      const { searchParams } = server.authorize(begun.redirectUrl);
      const input = { code: searchParams.get('code'), state: searchParams.get('state'), iss: searchParams.get('iss') };
      return { given: { input }, token: null };
    },
    demands: {
      'input.code': 'nobody-was-given-this-code',
      'input.state': 'nobody-began-this',
      'input.iss': 'https://somebody-else.example.test',
    },
  },
  finishSamlSignIn: {
    prepare: async ({ app }) => {
      const { message, relayState } = await samlAnswer(app, await samlCompany(app, usualIdpKey()), usualIdpKey());
      return { given: { input: { samlResponse: message, relayState } }, token: null };
    },
    demands: { 'input.samlResponse': 'bm90aGluZw==', 'input.relayState': 'nobody-began-this' },
  },
  initiateSso: {
    prepare: async ({ app }) => {
      const { domain } = await samlCompany(app, usualIdpKey());
      const input = { email: `ann@${domain}`, redirectUri: `${PUBLIC_URL}/account/sign-in` };
      return { given: { input }, token: null };
    },
    demands: {
      'input.email': 'ann@nobodys-domain.example.test',
      'input.redirectUri': 'https://elsewhere.example.test/',
    },
  },
  linkIdentity: {
    prepare: async ({ app, world }) => {
      const { userId } = await createUser(app, world.accounts.owner);
      return { given: { input: { userId, subject: `s${randomBytes(6).toString('hex')}` } } };
    },
  },
  startDomainProof: {
    prepare: async (lab) => {
      const { id, domain } = await newProvider(lab);
      return { given: { id, input: { domain, method: 'dns' } } };
    },
    demands: { 'input.domain': 'somebody-elses.example.test' },
    variants: () => [{ 'input.method': 'mail' }],
    readAs: { 'input.method': 'proof.method' },
  },
  testIdentityProvider: {
    prepare: async (lab) => {
      const { company } = await openIdUser(lab);
      return { given: { orgId: company.owner.orgId, id: company.idpId }, token: company.owner.accessToken };
    },
  },
  resetMemberFactors: {
    prepare: async ({ app, world }) => {
      const { userId } = await createUser(app, world.accounts.owner);
      await givePasskey(app, userId, 'to be lost');
      return { given: { orgId: world.ids.org_id, userId }, token: world.accounts.owner.accessToken };
    },
  },
  resumeApiTokens: {
    prepare: async ({ app, world }) => {
      const { userId } = await createUser(app, world.accounts.owner);
      return { given: { orgId: world.ids.org_id, userId }, token: world.accounts.owner.accessToken };
    },
  },
  unlinkIdentity: {
    prepare: async ({ app, world }) => {
      const { userId, accessToken } = world.accounts.owner;
      const user = await createUser(app, world.accounts.owner);
      const given = { orgId: world.ids.org_id, id: world.ids.idp_id };
      const input = { userId: user.userId, subject: `s${randomBytes(6).toString('hex')}` };
      expect(user.userId).not.toBe(userId);
      await mutateOk(app, 'linkIdentity', { ...given, input }, accessToken);
      return { given: { userId: user.userId } };
    },
  },
};
