import { deflateRawSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { signedRedirect } from '../../../src/identity/sso/saml/redirect-binding.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { keptLog } from '../../support/log-lines.ts';
import { register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { waitFor } from '../../support/wait.ts';
import { type Company, SAML_ENTITY, samlCompany } from './companies.ts';
import {
  base64,
  encryptedId,
  type IdpKey,
  inflated,
  newIdpKey,
  peerIdp,
  peerSp,
  responseXml,
  SHA1,
  SLO_URL,
  signXml,
} from './saml-idp.ts';

const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8';
const { logger, lines } = keptLog();

let app: TestApp;
let saml: Company;
let other: Company;
let metadata = '';
const [key, stranger] = [newIdpKey(), newIdpKey()];
beforeAll(async () => {
  app = await startTestApp({ logger });
  await app.listen();
  await register(app, { name: 'operator' });
  [saml, other] = [
    await samlCompany(app, key, { slo_url: SLO_URL }),
    await samlCompany(app, key, { slo_url: SLO_URL }),
  ];
  metadata = await app.services.sso.metadata(saml.idpId);
});
afterAll(() => app.close());
afterEach(() => {
  lines.length = 0;
});

const reasons = (): unknown[] =>
  lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .flatMap(({ msg, reason }) => (msg === 'a sign-out was not accepted' ? [reason] : []));

/** Somebody who has signed in at the provider. */
async function signIn(sessionIndex: string, email: string, node = app) {
  const { domain, idpId } = saml;
  const payload = { email: `any@${domain}` };
  const begun = await node.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
  const { redirect_url: url } = begun.json<{ redirect_url: string }>();
  const facts = {
    issuer: SAML_ENTITY,
    acsUrl: `${app.url}/v1/auth/sso/callback/saml`,
    audience: `${app.url}/v1/auth/sso/metadata/${idpId}`,
    requestId: / ID="([^"]+)"/.exec(await inflated(url))?.[1] ?? '',
    nameId: email,
    sessionIndex,
  };
  const done = await node.server.inject({
    method: 'POST',
    url: '/v1/auth/sso/callback/saml',
    payload: {
      saml_response: base64(signXml(responseXml(facts), 'assertion', key)),
      relay_state: new URL(url).searchParams.get('RelayState'),
    },
  });
  expect(done.statusCode, done.body).toBe(200);
  const { access_token: token, user } = done.json<{ access_token: string; user: { user_id: string } }>();
  const headers = { authorization: `Bearer ${token}` };
  return {
    email,
    headers,
    userId: user.user_id,
    isIn: async (at = app) => (await at.server.inject({ url: '/v1/users/me', headers })).statusCode === 200,
  };
}
let count = 0;
const newEmail = () => `ann${count++}@${saml.domain}`;

interface Asking {
  by?: IdpKey;
  entityId?: string;
  algorithm?: string;
  isSigned?: boolean;
  sessionIndex?: string;
  /** Changes the XML before it is signed. */
  change?: (xml: string) => string;
  relayState?: string;
  of?: string;
}

/** A request to sign somebody out, as samlify makes it. */
function asked(binding: 'redirect' | 'post', email: string, asking: Asking = {}): string {
  const { by = key, entityId = SAML_ENTITY, algorithm, isSigned = true, relayState = '', of = metadata } = asking;
  const idp = peerIdp(by, { entityId, ...(algorithm ? { algorithm } : {}) });
  const { change, sessionIndex } = asking;
  const location = / Location="([^"]+logout[^"]+)"/.exec(of)?.[1] ?? '';
  const id = `_${crypto.randomUUID()}`;
  const values = {
    ID: id,
    Destination: location,
    Issuer: entityId,
    IssueInstant: new Date().toISOString(),
    NameIDFormat: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
    NameID: email,
  };
  const customTagReplacement = (template: string) => {
    const sessions = template.replace(
      /<samlp:SessionIndex>.*<\/samlp:SessionIndex>/,
      sessionIndex === undefined ? '' : `<samlp:SessionIndex>${sessionIndex}</samlp:SessionIndex>`,
    );
    const xml = Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), sessions);
    return { id, context: change ? changed(xml, change) : xml };
  };
  const user = { logoutNameID: email };
  return idp.createLogoutRequest(peerSp(of, isSigned), binding, user, { relayState, customTagReplacement }).context;
}

function changed(text: string, change: (text: string) => string): string {
  const made = change(text);
  if (made === text) throw new Error('The change changes nothing.');
  return made;
}

const pathOf = (address: string) => address.replace(app.url, '');
const bring = (address: string, node = app) => node.server.inject({ url: pathOf(address) });
const post = (fields: Record<string, string>, of = saml) =>
  app.server.inject({
    method: 'POST',
    url: `/v1/auth/sso/logout/${of.idpId}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(fields).toString(),
  });
/** The query behind an address, and the part of it that is signed. */
const queryOf = (address: string) => {
  const { searchParams, search } = new URL(address);
  const octetString = search.replace('?tenant=1&', '').replace(/&Signature=.*/, '');
  return { query: Object.fromEntries(searchParams), octetString };
};
/** samlify verifies what the service answers. */
async function expectAnswer(address: string, relayState: string): Promise<void> {
  expect(address.startsWith(`${SLO_URL}&SAMLResponse=`)).toBe(true);
  // a browser sends what is signed, and writes nothing of it in another way
  expect(new URL(address).href).toBe(address);
  const idp = peerIdp(key, { entityId: SAML_ENTITY });
  const { extract } = await idp.parseLogoutResponse(peerSp(metadata), 'redirect', queryOf(address));
  expect(extract).toMatchObject({ issuer: `${app.url}/v1/auth/sso/metadata/${saml.idpId}` });
  expect(new URL(address).searchParams.get('RelayState') ?? '').toBe(relayState);
}

const NAME_ID = /<saml:NameID[\s\S]*<\/saml:NameID>/;
/** The name of the user for nobody but the service, whose document needs a namespace of its own. */
const hidden = (xml: string): string =>
  xml.replace(NAME_ID, (name) =>
    encryptedId(
      name.replace('<saml:NameID', '<saml:NameID xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"'),
      metadata,
    ),
  );

describe('the provider signs somebody out', () => {
  test('by redirect: all their sessions end, on all nodes, and the answer is signed', async () => {
    const node = await app.another({ PUBLIC_URL: app.url });
    const email = newEmail();
    const [one, two] = [await signIn('_1', email), await signIn('_2', email, node)];
    const bystander = await signIn('_3', newEmail());
    expect([await one.isIn(), await two.isIn(node)]).toEqual([true, true]);
    const relayState = 'a (long) state! ~ &?';
    const answer = await bring(asked('redirect', email, { relayState }));
    expect(answer.statusCode, answer.body).toBe(303);
    await expectAnswer(answer.headers.location as string, relayState);
    expect([await one.isIn(), await two.isIn()]).toEqual([false, false]);
    await waitFor(async () => expect(await two.isIn(node)).toBe(false));
    expect(await bystander.isIn()).toBe(true);
    const { rows } = await app.database.pool.query(
      `select revoked_reason from sessions where user_id = $1 order by id`,
      [one.userId],
    );
    expect(rows).toEqual([{ revoked_reason: 'single_logout' }, { revoked_reason: 'single_logout' }]);
    await app.services.activity.flush();
    const records = await app.database.pool.query(
      `select action, principal_type, resource_id, metadata from activity where resource_id = $1 and action = 'logout'`,
      [one.userId],
    );
    expect(records.rows).toEqual([
      {
        action: 'logout',
        principal_type: 'anonymous',
        resource_id: one.userId,
        metadata: { identity_provider_id: saml.idpId },
      },
    ]);
    await node.close();
  });

  test('by POST, one of their sessions', async () => {
    const email = newEmail();
    const [one, two] = [await signIn('_1', email), await signIn('_2', email)];
    const SAMLRequest = asked('post', email, { sessionIndex: '_1' });
    const answer = await post({ SAMLRequest, RelayState: 'x' });
    expect(answer.statusCode, answer.body).toBe(303);
    await expectAnswer(answer.headers.location as string, 'x');
    expect([await one.isIn(), await two.isIn()]).toEqual([false, true]);
  });

  test.each(['redirect', 'post'] as const)('whose name only the service can read: by %s', async (binding) => {
    const email = newEmail();
    const [ann, bystander] = [await signIn('_1', email), await signIn('_2', newEmail())];
    const message = asked(binding, email, { change: hidden });
    if (binding === 'redirect') expect(await inflated(message)).not.toContain(email);
    const answer = binding === 'redirect' ? await bring(message) : await post({ SAMLRequest: message });
    expect(answer.statusCode, answer.body).toBe(303);
    await expectAnswer(answer.headers.location as string, '');
    expect([await ann.isIn(), await bystander.isIn()]).toEqual([false, true]);
  });

  test('while they sign in: the sign-out waits for the sign-in, and ends its session', async () => {
    const email = newEmail();
    const before = await signIn('_1', email);
    const { pool } = app.database;
    /** Whether somebody waits for a row. @param column the system keeps the beginning of a statement only */
    const waiting = async (column: string) => {
      const { rows } = await pool.query<{ query: string }>(
        `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.some(({ query }) => query.includes(column));
    };
    const client = await pool.connect();
    try {
      await client.query('begin');
      // with it, the sign-in has locked its provider, and waits for its link
      await client.query('select 1 from identity_links where subject = $1 for update', [email]);
      const signingIn = signIn('_2', email);
      await waitFor(async () => expect(await waiting('last_sign_in_at')).toBe(true));
      const signedOut = bring(asked('redirect', email)).then(({ statusCode }) => statusCode);
      await waitFor(async () => expect(await waiting('saml_slo_url')).toBe(true));
      await client.query('rollback');
      const during = await signingIn;
      expect(await signedOut).toBe(303);
      expect([await before.isIn(), await during.isIn()]).toEqual([false, false]);
    } finally {
      client.release(true); // ends what has failed in the middle
    }
  });

  test('a code that was not exchanged yet gives no session any more', async () => {
    const email = newEmail();
    await signIn('_1', email);
    const link = await app.database.prisma.identityLink.findFirstOrThrow({ where: { subject: email } });
    const { hash } = await app.database.prisma.ssoCode.create({
      data: {
        hash: `hash of ${email}`,
        orgId: saml.owner.orgId,
        identityProviderId: saml.idpId,
        userId: link.userId,
        subject: email,
        expiresAt: new Date(Date.now() + 60_000),
      },
    });
    expect((await bring(asked('redirect', email))).statusCode).toBe(303);
    const code = await app.database.prisma.ssoCode.findUniqueOrThrow({ where: { hash } });
    expect(code.usedAt).not.toBeNull();
  });

  test('somebody who has no session: the same answer, and nobody else is signed out', async () => {
    const ann = await signIn('_1', newEmail());
    const relayState = "what's left";
    const message = new URL(asked('redirect', newEmail(), { isSigned: false })).searchParams.get('SAMLRequest') ?? '';
    const of = { name: 'SAMLRequest' as const, message, relayState };
    const answer = await bring(signedRedirect(`${app.url}/v1/auth/sso/logout/${saml.idpId}`, of, key.privateKey));
    await expectAnswer(answer.headers.location as string, relayState);
    expect(await ann.isIn()).toBe(true);
  });
});

describe('refuses', () => {
  /** @returns what is sent: an address, or a form */
  type Make = (email: string) => string | Record<string, string>;
  const post64 = (email: string, asking: Asking, change: (xml: string) => string = (xml) => xml) => ({
    SAMLRequest: base64(change(Buffer.from(asked('post', email, asking), 'base64').toString())),
  });
  const hour = (xml: string) =>
    xml.replace(/IssueInstant="[^"]*"/, `IssueInstant="${new Date(Date.now() - 3_600_000).toISOString()}"`);
  const SIGNATURE = /<ds:Signature [\s\S]*<\/ds:Signature>/;
  const bad: readonly [name: string, make: Make, reason: RegExp][] = [
    ['unsigned', (email) => asked('redirect', email, { isSigned: false }), /is not signed/],
    ["a stranger's key", (email) => asked('redirect', email, { by: stranger }), /not from the identity provider/],
    [
      'another issuer',
      (email) => asked('redirect', email, { entityId: 'https://another.test' }),
      /another identity provider/,
    ],
    ['an old one', (email) => asked('redirect', email, { change: hour }), /too long ago/],
    [
      'one that has expired',
      (email) =>
        asked('redirect', email, {
          change: (xml) => xml.replace(' IssueInstant', ' NotOnOrAfter="2020-01-01T00:00:00Z" IssueInstant'),
        }),
      /has expired/,
    ],
    [
      'another destination',
      (email) =>
        asked('redirect', email, {
          change: (xml) => xml.replace(/Destination="[^"]*"/, 'Destination="https://elsewhere.test"'),
        }),
      /another address/,
    ],
    [
      'no destination',
      (email) => asked('redirect', email, { change: (xml) => xml.replace(/ Destination="[^"]*"/, '') }),
      /another address/,
    ],
    ['SHA-1', (email) => asked('redirect', email, { algorithm: SHA1 }), /algorithm that is not accepted/],
    [
      'a RelayState that was not signed',
      (email) => asked('redirect', email).replace('&SigAlg', '&RelayState=x&SigAlg'),
      /not from the identity provider/,
    ],
    [
      'a second message beside the signed one',
      (email) => `${asked('redirect', email)}&SAMLRequest=${encodeURIComponent(base64('x'))}`,
      /parameter twice/,
    ],
    [
      'another message under the signature',
      (email) => {
        const [theirs = ''] = /SAMLRequest=[^&]+/.exec(asked('redirect', email)) ?? [];
        return changed(asked('redirect', 'mallory'), (address) => address.replace(/SAMLRequest=[^&]+/, theirs));
      },
      /not from the identity provider/,
    ],
    [
      'what unpacks to megabytes',
      () => {
        const name = 'SAMLRequest' as const;
        const message = deflateRawSync(Buffer.alloc(5_000_000, 'a')).toString('base64');
        const address = `${app.url}/v1/auth/sso/logout/${saml.idpId}`;
        return signedRedirect(address, { name, message, relayState: '' }, key.privateKey);
      },
      /cannot be unpacked, or is too long/,
    ],
    ['nobody', () => asked('redirect', ''), /no usable NameID/],
    ['NUL in the name', () => asked('redirect', 'mallory\0@example.test'), /no usable NameID|not well-formed/],
    [
      'a name that somebody else can read',
      (email) => {
        const theirs = metadata.replaceAll(
          /(X509Certificate>)[^<]+/g,
          `$1${stranger.certificate.replaceAll(/-----[A-Z ]+-----|\s/g, '')}`,
        );
        return asked('redirect', email, {
          change: (xml) => xml.replace(NAME_ID, (name) => encryptedId(name, theirs)),
        });
      },
      /the name cannot be decrypted/,
    ],
    [
      'a hidden name beside another',
      (email) =>
        asked('redirect', email, {
          change: (xml) => xml.replace(NAME_ID, (name) => `${name}${/<saml:Encr.*ID>/s.exec(hidden(xml))![0]}`),
        }),
      /several NameIDs/,
    ],
    [
      'two hidden names',
      (email) => asked('redirect', email, { change: (xml) => hidden(xml).replace(/<saml:Encr.*ID>/s, '$&$&') }),
      /not directly in the message/,
    ],
    [
      'another thing than a name, hidden',
      (email) =>
        asked('redirect', email, { change: (xml) => xml.replace(NAME_ID, encryptedId(`<a>${email}</a>`, metadata)) }),
      /not exactly one NameID/,
    ],
    [
      'a hidden name with a document type',
      (email) =>
        asked('redirect', email, {
          change: (xml) => xml.replace(NAME_ID, encryptedId(`<!DOCTYPE a><NameID>${email}</NameID>`, metadata)),
        }),
      /document type/,
    ],
    [
      'a name hidden with RSA PKCS #1 1.5',
      (email) =>
        asked('redirect', email, {
          change: (xml) => hidden(xml).replace('xmlenc#rsa-oaep-mgf1p', 'xmlenc#rsa-1_5'),
        }),
      /algorithm that is not accepted/,
    ],
    ['unsigned, by POST', (email) => post64(email, { isSigned: false }), /is not signed/],
    ["a stranger's key, by POST", (email) => post64(email, { by: stranger }), /is not signed by the identity provider/],
    ['SHA-1, by POST', (email) => post64(email, { algorithm: SHA1 }), /algorithm that is not accepted/],
    [
      'another name after signing, by POST',
      (email) =>
        post64('mallory@example.test', {}, (xml) => changed(xml, (text) => text.replace(/mallory@[^<]*/, email))),
      /is not signed by the identity provider/,
    ],
    [
      'the signed request inside of another, by POST',
      (email) =>
        post64('mallory@example.test', {}, (xml) => {
          const forged = xml
            .replace(SIGNATURE, '')
            .replace(/mallory@[^<]*/, email)
            .replace(' ID="_', ' ID="_forged');
          return changed(forged, (text) => text.replace('</samlp:LogoutRequest>', `${xml}</samlp:LogoutRequest>`));
        }),
      /not a logout message/,
    ],
    [
      'a document type, by POST',
      (email) => post64(email, {}, (xml) => `<!DOCTYPE a [<!ENTITY b "c">]>${xml}`),
      /document type/,
    ],
    [
      'an attribute twice, by POST',
      (email) => post64(email, {}, (xml) => xml.replace(' ID="', ' Consent="a" Consent="b" ID="')),
      /is not signed by the identity provider/,
    ],
    ['an empty form', () => ({}), /not have exactly one message/],
  ];

  test('every bad message in the same way: the reason is in the log, and the session lives', async () => {
    const bodies = new Set<string>();
    const ann = await signIn('_1', newEmail());
    for (const [name, make, reason] of bad) {
      lines.length = 0;
      const made = make(ann.email);
      const answer = typeof made === 'string' ? await bring(made) : await post(made);
      expect([name, answer.statusCode]).toEqual([name, 401]);
      bodies.add(JSON.stringify({ ...answer.json<object>(), timestamp: '' }));
      expect([name, reasons()]).toEqual([name, [expect.stringMatching(reason)]]);
      expect(lines.join('')).not.toMatch(/ann\d+@|mallory|idp\.test/);
      expect([name, await ann.isIn()]).toEqual([name, true]);
    }
    expect(bodies.size).toBe(1);
    expect((await bring(asked('redirect', ann.email))).statusCode).toBe(303);
  });

  test('a message that was used before, on another node too', async () => {
    const node = await app.another({ PUBLIC_URL: app.url });
    const email = newEmail();
    const request = asked('redirect', email);
    expect((await bring(request)).statusCode).toBe(303);
    const ann = await signIn('_1', email);
    for (const at of [app, node]) expect((await bring(request, at)).statusCode).toBe(401);
    expect(reasons()).toEqual(['the message was used before']);
    expect(await ann.isIn()).toBe(true);
    await node.close();
  });

  test('a provider that is unknown, switched off, another one, or has no address for sign-outs', async () => {
    const silent = await samlCompany(app, key);
    const off = await samlCompany(app, key, { slo_url: SLO_URL });
    await off.owner.call('PUT', off.url, { is_active: false });
    const request = asked('redirect', newEmail());
    const statuses: number[] = [];
    for (const id of ['idp_unknown', silent.idpId, off.idpId, other.idpId])
      statuses.push((await bring(request.replace(saml.idpId, id))).statusCode);
    expect(statuses).toEqual([401, 401, 401, 401]);
    expect(new Set(reasons())).toEqual(
      new Set([
        'the provider was switched off, or has no address for sign-outs',
        'the message is meant for another address',
      ]),
    );
  });

  test('too many tries of one address', async () => {
    const node = await app.another({ LOGIN_FAILURES_PER_MINUTE: '2', PUBLIC_URL: app.url });
    const request = asked('redirect', newEmail(), { isSigned: false });
    const statuses: number[] = [];
    for (let tries = 0; tries < 3; tries++) statuses.push((await bring(request, node)).statusCode);
    expect(statuses).toEqual([401, 401, 429]);
    await node.close();
  });
});

describe('a sign-out that begins here', () => {
  const begin = (headers: object) =>
    app.server.inject({ method: 'POST', url: '/v1/auth/sso/logout', headers: { ...headers } });

  test('ends the session, goes to the provider with a signed request, and comes back', async () => {
    const ann = await signIn('_the-session', newEmail());
    const begun = await begin(ann.headers);
    expect(begun.statusCode, begun.body).toBe(200);
    expect(await ann.isIn()).toBe(false);
    const { redirect_url: url } = begun.json<{ redirect_url: string }>();
    const xml = await inflated(url);
    expect(xml).toContain('<saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">');
    const idp = peerIdp(key, { entityId: SAML_ENTITY });
    const { extract } = await idp.parseLogoutRequest(peerSp(metadata), 'redirect', queryOf(url));
    expect(extract).toMatchObject({ nameID: ann.email, sessionIndex: '_the-session' });
    const requestInfo = { extract };
    const back = () => idp.createLogoutResponse(peerSp(metadata), requestInfo, 'redirect').context;
    const page = await app.server.inject({ url: pathOf(back()), headers: { accept: HTML } });
    expect([page.statusCode, page.headers.location]).toEqual([303, `${app.url}/account/sign-in?signed_out=everywhere`]);
    const answer = back();
    expect((await bring(answer)).statusCode).toBe(204);
    expect((await bring(answer)).statusCode).toBe(401);
    const { context: SAMLResponse } = idp.createLogoutResponse(peerSp(metadata), requestInfo, 'post');
    expect((await post({ SAMLResponse })).statusCode).toBe(204);
    const never = { extract: { request: { id: `_${'0'.repeat(96)}` } } };
    expect((await bring(idp.createLogoutResponse(peerSp(metadata), never, 'redirect').context)).statusCode).toBe(401);
    const unsigned = idp.createLogoutResponse(peerSp(metadata, false), requestInfo, 'redirect').context;
    expect((await bring(unsigned)).statusCode).toBe(401);
    expect(reasons()).toEqual([
      'the message was used before',
      'the message answers a request that was never sent',
      'the message is not signed',
    ]);
  });

  test('GraphQL gives the same; a session with a password ends, and goes nowhere', async () => {
    const ask = async ({ authorization }: { authorization: string }) => {
      const request = graphqlRequest('mutation { beginSingleLogout { redirectUrl } }', {}, authorization);
      const answer = await app.server.inject(request);
      return answer.json<{ data: { beginSingleLogout: { redirectUrl: string | null } } }>().data.beginSingleLogout;
    };
    const ann = await signIn('_1', newEmail());
    expect((await ask(ann.headers)).redirectUrl).toMatch(/^https:\/\/idp\.test\/slo\?tenant=1&SAMLRequest=/);
    expect(await ann.isIn()).toBe(false);
    const { headers } = await register(app, { name: 'pat' });
    expect(await ask(headers)).toEqual({ redirectUrl: null });
    expect((await begin(headers)).statusCode).toBe(401);
  });

  test('the logout of the spec is as it was', async () => {
    const ann = await signIn('_1', newEmail());
    const { headers } = ann;
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/logout', headers });
    expect([answer.statusCode, answer.body]).toEqual([200, 'null']);
    expect(await ann.isIn()).toBe(false);
  });
});
