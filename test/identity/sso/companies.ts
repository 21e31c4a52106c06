import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import type { OpenIdServer } from './openid-server.ts';
import { base64, type IdpKey, inflated, responseXml, signXml } from './saml-idp.ts';

/** An organization whose users sign in at a provider. */
export interface Company {
  owner: Person;
  domain: string;
  idpId: string;
  /** Path of the provider. */
  url: string;
}

async function companyWith(app: TestApp, fields: object): Promise<Company> {
  const owner = await register(app, { name: 'owner' });
  const domain = `d${randomBytes(6).toString('hex')}.example.test`;
  const url = `/v1/orgs/${owner.orgId}/identity-providers`;
  const { status, body } = await owner.call<{ idp_id: string }>('POST', url, {
    name: 'Company',
    verified_domains: [domain],
    ...fields,
  });
  expect(status, JSON.stringify(body)).toBe(201);
  await app.database.pool.query(
    `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
    [domain],
  );
  return { owner, domain, idpId: body.idp_id, url: `${url}/${body.idp_id}` };
}

/** With an OpenID provider, whose client has a secret in the vault. */
export async function openIdCompany(app: TestApp, server: OpenIdServer): Promise<Company> {
  const made = await companyWith(app, {
    protocol: 'oidc',
    oidc_config: { client_id: server.clientId, discovery_url: server.discoveryUrl },
  });
  const { owner, url } = made;
  const secret = await owner.call('POST', `/v1/orgs/${owner.orgId}/secrets`, {
    name: 'sso-client',
    secret_type: 'oauth2',
    value: { client_secret: server.clientSecret },
  });
  expect(secret.status, JSON.stringify(secret.body)).toBe(201);
  const changed = await owner.call('PUT', url, {
    oidc_config: {
      client_id: server.clientId,
      discovery_url: server.discoveryUrl,
      client_secret_ref: 'secret://sso-client',
    },
  });
  expect(changed.status, JSON.stringify(changed.body)).toBe(200);
  return made;
}

export const SAML_ENTITY = 'https://idp.test/entity';

/** With a SAML provider. */
export const samlCompany = (app: TestApp, key: IdpKey, more: object = {}): Promise<Company> =>
  companyWith(app, {
    protocol: 'saml',
    saml_config: { entity_id: SAML_ENTITY, sso_url: 'https://idp.test/sso', certificate: key.certificate, ...more },
  });

/** What a SAML provider answers to a sign-in that a program has begun. */
export async function samlAnswer(app: TestApp, { domain }: Company, key: IdpKey) {
  const payload = { email: `sam@${domain}` };
  const begun = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
  const { redirect_url: redirectUrl } = begun.json<{ redirect_url: string }>();
  const xml = await inflated(redirectUrl);
  const found = (pattern: RegExp) => pattern.exec(xml)?.[1] ?? '';
  const facts = {
    issuer: SAML_ENTITY,
    acsUrl: found(/AssertionConsumerServiceURL="([^"]+)"/),
    audience: found(/:Issuer[^>]*>([^<]+)</),
    requestId: found(/ ID="([^"]+)"/),
    nameId: payload.email,
  };
  return {
    message: base64(signXml(responseXml(facts), 'assertion', key)),
    relayState: new URL(redirectUrl).searchParams.get('RelayState') ?? '',
  };
}

/** A browser that keeps the cookies of the service. */
export function newBrowser(app: TestApp) {
  const cookies = new Map<string, string>();
  const send = async (method: 'GET' | 'POST', url: string, payload?: object | string, more: object = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = {
      origin: 'http://127.0.0.1',
      ...(cookie ? { cookie } : {}),
      ...(typeof payload === 'string' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      ...more,
    };
    const answer = await app.server.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
    for (const { name, value } of answer.cookies) cookies.set(name, value);
    return answer;
  };
  return {
    cookies,
    send,
    /** Begins a sign-in. @returns the address of the provider */
    async begin(email: string, more: object = {}): Promise<string> {
      const answer = await send('POST', '/v1/auth/sso/initiate', { email, ...more });
      expect(answer.statusCode, answer.body).toBe(200);
      return answer.json<{ redirect_url: string }>().redirect_url;
    },
  };
}

export type TestBrowser = ReturnType<typeof newBrowser>;
