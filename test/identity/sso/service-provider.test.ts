import { verify, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MessageChecks } from '../../../src/identity/sso/saml/message-checks.ts';
import type { SamlProvider } from '../../../src/identity/sso/saml/saml-provider.ts';
import { ServiceKey } from '../../../src/identity/sso/saml/service-key.ts';
import { ServiceProvider } from '../../../src/identity/sso/saml/service-provider.ts';
import { SsoRefusal } from '../../../src/identity/sso/sso-refusal.ts';
import { badAnswers } from './bad-saml.ts';
import {
  base64,
  encryptXml,
  inflated,
  newIdpKey,
  peerResponse,
  type ResponseFacts,
  responseXml,
  signXml,
} from './saml-idp.ts';

const PUBLIC = 'https://service.test';
const keysDir = mkdtempSync(path.join(os.tmpdir(), 'saml-keys-'));
const checks = new MessageChecks();
afterAll(async () => {
  await checks.close();
  rmSync(keysDir, { recursive: true });
});

test('metadata leaves room for the messages of sign-ins, and is refused before there is none', async () => {
  const busy = new MessageChecks();
  const read = async () => {
    try {
      await busy.run('metadata', { document: new Uint8Array(), signers: null, now: Date.now() });
    } catch (error) {
      return error instanceof SsoRefusal ? 'read' : (error as { code: string }).code;
    }
    return 'accepted';
  };
  try {
    const ends = await Promise.all(Array.from({ length: 6 }, read));
    expect(ends).toEqual(['read', 'read', 'read', 'read', 'SERVICE_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);
    expect(() => busy.demandRoom()).not.toThrow();
    // and there is room again
    expect(await read()).toBe('read');
  } finally {
    await busy.close();
  }
});

let clock = 0;
const key = new ServiceKey({ keysDir });
const service = new ServiceProvider({ publicUrl: () => PUBLIC, key, checks, now: () => Date.now() + clock });
const [own, stranger, next] = [newIdpKey(), newIdpKey(), newIdpKey()];
const provider: SamlProvider = {
  id: 'idp_1',
  orgId: 'org_1',
  entityId: 'https://idp.test/entity',
  ssoUrl: 'https://idp.test/sso?tenant=1',
  sloUrl: null,
  certificate: own.certificate,
  signAuthnRequests: false,
  nameIdFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  groupAttribute: 'groups',
};
const REQUEST = '_the-request';
const facts = (): ResponseFacts => ({
  issuer: provider.entityId,
  acsUrl: `${PUBLIC}/v1/auth/sso/callback/saml`,
  audience: `${PUBLIC}/v1/auth/sso/metadata/idp_1`,
  requestId: REQUEST,
  nameId: 'ann@example.test',
  attributes: { groups: ['staff', 'admins'], displayName: ['Ann & Co'], uid: ['ann'] },
});
const honest = (more: Partial<ResponseFacts> = {}) => signXml(responseXml({ ...facts(), ...more }), 'assertion', own);
let metadata = '';
beforeAll(async () => {
  metadata = await service.metadata(provider);
});

const outcomeOf = (message: string, of = provider, requestId: string | null = REQUEST): Promise<string> =>
  service.finish(of, message, requestId).then(
    ({ identity }) => `accepted: ${identity.subject}`,
    (error: unknown) => {
      if (!(error instanceof SsoRefusal)) throw error;
      return error.message;
    },
  );

describe('accepts', () => {
  test('a signed assertion, and tells who it is about', async () => {
    const assertionId = '_assertion-1';
    const accepted = await service.finish(provider, base64(honest({ assertionId, sessionIndex: '_s1' })), REQUEST);
    expect(accepted).toMatchObject({
      assertionId,
      identity: {
        subject: 'ann@example.test',
        email: 'ann@example.test',
        emailVerified: false,
        username: 'ann',
        fullName: 'Ann & Co',
        groups: ['staff', 'admins'],
        sessionIndex: '_s1',
        nameIdFormat: provider.nameIdFormat,
      },
    });
    expect(accepted.identity.claims).toMatchObject({ name_id: 'ann@example.test', groups: ['staff', 'admins'] });
    expect(accepted.expiresAt.getTime()).toBeGreaterThan(Date.now() + 500_000);
  });

  test('with line breaks in the base64, and with both signed', async () => {
    const both = signXml(honest(), 'response', own);
    expect(await outcomeOf(base64(both).replaceAll(/.{76}/g, '$&\r\n'))).toBe('accepted: ann@example.test');
  });

  test('any of several certificates, so that keys can be exchanged', async () => {
    const rolling = { ...provider, certificate: `${own.certificate}\n${next.certificate}` };
    const byNext = base64(signXml(responseXml(facts()), 'assertion', next));
    expect(await outcomeOf(byNext, rolling)).toBe('accepted: ann@example.test');
    expect(await outcomeOf(base64(honest()), rolling)).toBe('accepted: ann@example.test');
    expect(await outcomeOf(byNext)).toMatch(/not from the identity provider/);
  });

  test.each([['http://www.w3.org/2009/xmlenc11#aes256-gcm'], ['http://www.w3.org/2001/04/xmlenc#aes128-cbc']])(
    'an encrypted assertion: %s',
    async (data) => {
      const encrypted = await encryptXml(honest(), own, metadata, { data });
      expect(encrypted).not.toContain('ann@example.test');
      expect(await outcomeOf(base64(encrypted))).toBe('accepted: ann@example.test');
      expect(await outcomeOf(base64(signXml(encrypted, 'response', own)))).toBe('accepted: ann@example.test');
    },
  );

  test.each([
    ['a signed assertion', false],
    ['an encrypted assertion', true],
  ])("samlify's own response: %s", async (_name, isEncrypted) => {
    expect(await outcomeOf(await peerResponse(own, facts(), { metadata, isEncrypted }))).toBe(
      'accepted: ann@example.test',
    );
  });

  test('a clock that is up to five minutes wrong', async () => {
    for (const ahead of [290_000, -590_000])
      expect(await outcomeOf(base64(honest({ ahead })))).toBe('accepted: ann@example.test');
    clock = 900_000;
    expect(await outcomeOf(base64(honest()))).toMatch(/expired/);
    clock = 0;
  });

  test('what nobody asked for, only where that is expected', async () => {
    const unsolicited = base64(honest({ requestId: null }));
    expect(await outcomeOf(unsolicited, provider, null)).toBe('accepted: ann@example.test');
    expect(await outcomeOf(base64(honest()), provider, null)).toMatch(/another request, or none/);
  });
});

test('there are at least 60 bad answers', () => expect(badAnswers.length).toBeGreaterThanOrEqual(60));

describe('refuses', () => {
  test.each(badAnswers)('%s', async (_name, make, reason) => {
    const outcome = await outcomeOf(await make({ facts: facts(), key: own, stranger, metadata }));
    expect(outcome).not.toMatch(/^accepted/);
    expect(outcome).toMatch(reason);
    expect(outcome).not.toMatch(/ann@|mallory|idp\.test/);
  });

  test('a message of which one byte was changed, anywhere that is signed', async () => {
    const bytes = Buffer.from(honest());
    const text = bytes.toString();
    const [from, until] = [text.indexOf('<saml:Assertion'), text.indexOf('<ds:KeyInfo')];
    const rest = [text.indexOf('</ds:Signature>'), text.indexOf('</samlp:Response>')] as const;
    const positions = [...range(from, until), ...range(...rest)];
    const accepted: number[] = [];
    for (const position of positions.filter((_position, index) => index % 61 === 0)) {
      const flipped = Buffer.from(bytes);
      flipped[position] = flipped[position]! ^ 1;
      if ((await outcomeOf(flipped.toString('base64'))).startsWith('accepted')) accepted.push(position);
    }
    expect(accepted).toEqual([]);
  });
});

const range = (from: number, until: number) => Array.from({ length: until - from }, (_, index) => from + index);

describe('requests', () => {
  test('are sent by redirect, with the id that the answer must name', async () => {
    const url = await service.authorizationUrl(provider, { requestId: REQUEST, relayState: 'the state' });
    expect(url).toMatch(/^https:\/\/idp\.test\/sso\?tenant=1&/);
    const { searchParams } = new URL(url);
    expect([searchParams.get('RelayState'), searchParams.has('Signature')]).toEqual(['the state', false]);
    const xml = await inflated(url);
    expect(xml).toContain(`ID="${REQUEST}"`);
    expect(xml).toContain(`AssertionConsumerServiceURL="${facts().acsUrl}"`);
    expect(xml).toContain(`>${facts().audience}</saml:Issuer>`);
    expect(xml).toContain(provider.nameIdFormat);
    expect(xml).not.toContain('RequestedAuthnContext');
  });

  test('are signed where the provider wants it, by the key in the metadata', async () => {
    const signing = { ...provider, signAuthnRequests: true };
    const url = new URL(await service.authorizationUrl(signing, { requestId: REQUEST, relayState: 'x' }));
    const signature = Buffer.from(url.searchParams.get('Signature') ?? '', 'base64');
    const content = url.search
      .slice(1)
      .replace('tenant=1&', '')
      .replace(/&Signature=.*/, '');
    const [, certificate = ''] =
      /use="signing"[\s\S]*?X509Certificate>([^<]+)</.exec(await service.metadata(signing)) ?? [];
    const { publicKey } = new X509Certificate(Buffer.from(certificate, 'base64'));
    expect(verify('sha256', Buffer.from(content), publicKey, signature)).toBe(true);
    expect(metadata).toContain('WantAssertionsSigned="true"');
    expect(metadata).not.toContain('use="signing"');
  });
});

describe('metadata', () => {
  const slo = 'https://service.test/v1/auth/sso/logout/idp_1';
  const bindings = (xml: string) =>
    [...xml.matchAll(/<SingleLogoutService Binding="[^"]*:([^:"]+)" Location="([^"]+)"/g)].map(([, ...found]) => found);

  test('say where sign-outs go, only with slo_url, and with which key they are signed', async () => {
    const xml = await service.metadata({ ...provider, sloUrl: 'https://idp.test/slo' });
    expect(bindings(xml)).toEqual([
      ['HTTP-Redirect', slo],
      ['HTTP-POST', slo],
    ]);
    expect(xml).toContain('use="signing"');
    expect(xml).toContain('AuthnRequestsSigned="false"');
    const both = await service.metadata({ ...provider, sloUrl: 'https://idp.test/slo', signAuthnRequests: true });
    expect(both).toContain('AuthnRequestsSigned="true"');
    expect(bindings(metadata)).toEqual([]);
  });
});

describe('the key of the service', () => {
  test('is made once, for all nodes, and read by nobody else', async () => {
    const [one, two] = await Promise.all([key.pair(), new ServiceKey({ keysDir }).pair()]);
    expect(two).toEqual(one);
    expect(statSync(path.join(keysDir, 'saml.pem')).mode & 0o777).toBe(0o600);
    const certificate = new X509Certificate(one.certificate);
    expect([certificate.subject, certificate.verify(certificate.publicKey)]).toEqual([
      'CN=SAML service provider',
      true,
    ]);
    expect(Date.parse(certificate.validTo) - Date.now()).toBeGreaterThan(19 * 365 * 86_400_000);
  });

  test('a damaged file is named, and nothing of it is told', async () => {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'saml-damaged-'));
    writeFileSync(
      path.join(dir, 'saml.pem'),
      readFileSync(path.join(keysDir, 'saml.pem'), 'utf8').replace('CERT', 'X'),
    );
    await expect(new ServiceKey({ keysDir: dir }).pair()).rejects.toThrow(
      `The file ${path.join(dir, 'saml.pem')} has no private key with its certificate. Restore it from a backup, or ` +
        'remove it. The service then creates a new key, ' +
        'and every SAML identity provider has to read the metadata again.',
    );
    rmSync(dir, { recursive: true });
  });
});
