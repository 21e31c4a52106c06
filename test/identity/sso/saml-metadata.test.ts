import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readMetadata } from '../../../src/identity/sso/saml/metadata-check.ts';
import { nextRead, nextTry, secondsOf } from '../../../src/identity/sso/saml/metadata-times.ts';
import { SsoRefusal } from '../../../src/identity/sso/sso-refusal.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor } from '../../support/wait.ts';
import { newBrowser, SAML_ENTITY } from './companies.ts';
import { base64, type IdpKey, inflated, newIdpKey, responseXml, SHA1, signMetadata, signXml } from './saml-idp.ts';
import { type MetadataFacts, metadataXml } from './saml-metadata.ts';

/*
 * Where the configuration of a SAML provider is read, again and again, and what is never taken from there
 * (docs/decisions/0079).
 */

const [first, second, stranger] = [newIdpKey(), newIdpKey(), newIdpKey()];
const HOUR = 3_600_000;
/** The same certificate, but for an end that no calendar has. */
function endless(key: IdpKey): IdpKey {
  const der = Buffer.from(key.certificate.replaceAll(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  const { validTo } = new X509Certificate(der);
  const utc = new Date(validTo)
    .toISOString()
    .replaceAll(/[-:T]|\.\d+/g, '')
    .slice(2);
  const at = der.indexOf(utc);
  if (at < 0) throw new Error('The certificate has no such end.');
  der.write('991399999999Z', at);
  const certificate = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----`;
  return { ...key, certificate };
}
const bytes = (text: string) => new Uint8Array(Buffer.from(text));

describe('metadata', () => {
  const read = (document: string | Uint8Array, signers: string | null = null) =>
    readMetadata({
      document: typeof document === 'string' ? bytes(document) : document,
      signers,
      now: Date.parse('2026-01-01T00:00:00Z'),
    });
  const refusalOf = async (document: string | Uint8Array, signers: string | null = null): Promise<string> => {
    try {
      return `accepted: ${(await read(document, signers)).entityId}`;
    } catch (error) {
      if (error instanceof SsoRefusal) return error.message;
      throw error;
    }
  };
  const usual = metadataXml({ keys: [first] });

  test('gives the entity, its addresses by redirect, and the keys that sign, each once', async () => {
    const facts: MetadataFacts = {
      keys: [first, second, first],
      ssoUrl: 'https://idp.test/sso?a=1&b=2',
      sloUrl: 'https://idp.test/slo',
      root: 'validUntil="2026-01-03T00:00:00Z" cacheDuration="PT2H"',
      descriptor: 'WantAuthnRequestsSigned="true" validUntil="2026-01-02T00:00:00.123456Z"',
    };
    expect(await read(metadataXml(facts))).toEqual({
      entityId: SAML_ENTITY,
      ssoUrl: facts.ssoUrl,
      sloUrl: facts.sloUrl,
      certificates: [first, second].map(({ certificate }) => certificate.trim()),
      wantsSignedRequests: true,
      validUntil: Date.parse('2026-01-02T00:00:00.123Z'),
      cacheSeconds: 7_200,
    });
    expect(await read(usual)).toMatchObject({ sloUrl: null, wantsSignedRequests: false, cacheSeconds: null });
  });

  test('may have comments, keys that decrypt, other roles and a mark of its encoding', async () => {
    const other = '<md:SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/>';
    const decrypts = '<md:KeyDescriptor use="encryption"><md:EncryptionMethod Algorithm="urn:old"/></md:KeyDescriptor>';
    const xml = usual
      .replace('</md:EntityDescriptor>', `<!-- another role -->${other}</md:EntityDescriptor>`)
      .replace('<md:KeyDescriptor', `${decrypts}<md:KeyDescriptor`);
    expect(await refusalOf(`\uFEFF${xml}`)).toBe(`accepted: ${SAML_ENTITY}`);
  });

  const inside = (text: string) => usual.replace('</md:IDPSSODescriptor>', `${text}</md:IDPSSODescriptor>`);
  const deep = `${'<a>'.repeat(40)}${'</a>'.repeat(40)}`;
  const entity = usual.replace(/^<\?xml[^>]*\?>/, '');
  const doctype = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>';
  const laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>';
  test.each<[string, string | Uint8Array, RegExp]>([
    ['nothing', '', /no metadata of SAML/],
    ['a page', '<html><body/></html>', /no metadata of SAML/],
    ['a message', '<samlp:Response xmlns:samlp="x"/>', /no metadata of SAML/],
    ['a document type that reads a file', `${doctype}${entity}`, /a document type/],
    ['a document type that grows', `${laughs}${entity}`, /a document type/],
    ['a style sheet', `<?xml-stylesheet href="https://evil.test"?>${entity}`, /(processing instruction|no metadata)/],
    ['a CDATA section', inside('<a><![CDATA[x]]></a>'), /CDATA/],
    ['elements in elements', inside(deep), /nested too deeply/],
    ['many elements', inside('<a/>'.repeat(1_300)), /too many parts/],
    ['a megabyte and more', inside(`<a>${'x'.repeat(1_100_000)}</a>`), /too long/],
    ['other bytes than UTF-8', new Uint8Array(Buffer.from(usual.replace('idp', 'idp\xff'), 'latin1')), /not UTF-8/],
    ['XML that is not well-formed', usual.replace('</md:EntityDescriptor>', ''), /not well-formed/],
    ['no provider', usual.replaceAll('IDPSSODescriptor', 'SPSSODescriptor'), /exactly one identity provider/],
    [
      'two providers',
      `<md:EntitiesDescriptor xmlns:md="urn:x">${entity}${entity}</md:EntitiesDescriptor>`,
      /exactly one identity provider/,
    ],
    ['another protocol', usual.replace('SAML:2.0:protocol', 'SAML:1.1:protocol'), /exactly one identity provider/],
    ['no name', usual.replace(/entityID="[^"]*"/, ''), /no usable entity id/],
    ['a name that is too long', metadataXml({ keys: [first], entityId: 'e'.repeat(1_025) }), /no usable entity id/],
    ['a sign-in by post alone', usual.replaceAll('HTTP-Redirect', 'HTTP-POST'), /no sign-in by redirect/],
    ['a sign-in over http', metadataXml({ keys: [first], ssoUrl: 'http://idp.test/sso' }), /must start with 'https/],
    ['a sign-in that is a script', metadataXml({ keys: [first], ssoUrl: 'javascript:alert(1)' }), /must start with/],
    [
      'a sign-in that is a script and looks like this machine',
      metadataXml({ keys: [first], ssoUrl: 'javascript://localhost/%0aalert(1)' }),
      /must start with/,
    ],
    ['a sign-in with a password', metadataXml({ keys: [first], ssoUrl: 'https://a:b@idp.test' }), /a user name or/],
    ['a sign-out over http', metadataXml({ keys: [first], sloUrl: 'http://idp.test/slo' }), /must start with 'https/],
    ['no key', metadataXml({ keys: [] }), /no certificate of a key that signs/],
    ['a key that only decrypts', usual.replace('use="signing"', 'use="encryption"'), /no certificate of a key/],
    ['a certificate whose end is no time', metadataXml({ keys: [endless(first)] }), /cannot be read/],
    ['a certificate that is none', usual.replace(/(X509Certificate>)MII/, '$1AAA'), /cannot be read/],
    ['what has expired', metadataXml({ keys: [first], root: 'validUntil="2025-12-31T00:00:00Z"' }), /has expired/],
    ['an end that is no time', metadataXml({ keys: [first], root: 'validUntil="soon"' }), /invalid validUntil/],
    [
      'a time that is no duration',
      metadataXml({ keys: [first], root: 'cacheDuration="-P1D"' }),
      /invalid cacheDuration/,
    ],
  ])('is refused: %s', async (_name, document, reason) => {
    expect(await refusalOf(document)).toMatch(reason);
  });

  test('is signed as its administrator demands, and only what is signed is read', async () => {
    const xml = metadataXml({ keys: [first], root: 'ID="_m"' });
    const signed = signMetadata(xml, second);
    expect(await refusalOf(signed, second.certificate)).toBe(`accepted: ${SAML_ENTITY}`);
    expect(await refusalOf(signed, `${stranger.certificate}\n${second.certificate}`)).toMatch(/^accepted/);
    const wrapped = `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" ID="_w">${signed.replace(
      /^<\?xml[^>]*\?>/,
      '',
    )}</md:EntitiesDescriptor>`;
    const commented = signed.replace(/<(ds:)?DigestValue>/, '$&<!-- x -->');
    for (const [document, reason] of [
      [xml, /not signed with the given certificate/],
      [signMetadata(xml, stranger), /not signed with the given certificate/],
      [signed.replaceAll('idp.test', 'evil.test'), /not signed with the given certificate/],
      [wrapped, /not signed with the given certificate/],
      [signMetadata(xml, second, SHA1), /an algorithm that is not accepted/],
      [commented, /a comment/],
    ] as const)
      expect(await refusalOf(document, second.certificate)).toMatch(reason);
  });

  test('is read again within bounds, and tried again less and less often', () => {
    const now = new Date('2026-01-01T00:00:00Z');
    const hours = (validUntil: number | null, cacheSeconds: number | null) =>
      (nextRead({ validUntil, cacheSeconds }, now).getTime() - now.getTime()) / HOUR;
    expect([hours(null, null), hours(null, 7_200), hours(null, 1), hours(null, 1e9)]).toEqual([6, 2, 1, 24]);
    expect([hours(now.getTime() + 8 * HOUR, null), hours(now.getTime() + 1, null)]).toEqual([4, 1]);
    const tries = [1, 2, 3, 9, 500].map((failures) => (nextTry(failures, now).getTime() - now.getTime()) / 60_000);
    expect(tries).toEqual([5, 10, 20, 1_280, 1_440]);
    expect(['PT1H', 'P1DT12H', 'P1Y', 'PT1M30.5S', 'P0D'].map(secondsOf)).toEqual([3_600, 129_600, 31_536_000, 90, 0]);
    expect(['', 'P', 'PT', 'P1DT', '1H', '-PT1H', 'PT1X', `PT${'9'.repeat(40)}H`].map(secondsOf)).toEqual(
      Array.from({ length: 8 }, () => null),
    );
  });
});

describe('a provider whose configuration is read', () => {
  let app: TestApp;
  let target: TargetServer;
  let owner: Person;
  let served: { status: number; body: string };
  beforeAll(async () => {
    target = await startTarget((_request, response) => response.writeHead(served.status).end(served.body));
    app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
    await app.listen();
    await register(app, { name: 'operator' });
  });
  afterAll(async () => {
    await app.close();
    await target.close();
  });
  beforeEach(async () => {
    serve({ keys: [first] });
    // what an organization may have read in a minute is limited
    owner = await register(app, { name: 'owner' });
  });

  const serve = (facts: MetadataFacts) => {
    served = { status: 200, body: metadataXml(facts) };
  };
  const urlOf = () => `http://127.0.0.1:${target.port}/metadata`;
  const providers = () => `/v1/orgs/${owner.orgId}/identity-providers`;
  interface Shown {
    saml_metadata: { url: string; error: string | null; fetched_at: string; refresh_at: string } | null;
    saml_config: { entity_id: string; certificate: string; sso_url: string; sign_authn_requests: boolean } | null;
  }
  interface Made {
    idp_id: string;
    saml_config: Shown['saml_config'];
  }
  const make = async (more: object = {}) => {
    const metadata = { url: urlOf() };
    const made = await owner.call<Made>('POST', providers(), {
      name: 'Company',
      protocol: 'saml',
      saml_metadata: metadata,
      ...more,
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return made.body.idp_id;
  };
  const shown = async (id: string) => (await owner.call<Shown>('GET', `${providers()}/${id}/saml-metadata`)).body;
  const versionOf = async (id: string) =>
    (await app.server.inject({ url: `${providers()}/${id}`, headers: owner.headers })).headers.etag;
  const change = (id: string, body: object) => owner.call<Made>('PUT', `${providers()}/${id}`, body);
  /** Due for so many minutes. Not since this moment: what is stored is rounded to milliseconds, and may be to come. */
  const dueFor = (ids: readonly string[], minutes: number) =>
    app.database.pool.query(
      `update identity_providers set saml_metadata_refresh_at = now() - $2 * interval '1 minute' where id = any($1)`,
      [ids, minutes],
    );
  /** What a node reads when it is time. */
  const refresh = async (id: string, nodes: TestApp[] = [app]) => {
    await dueFor([id], 1);
    await Promise.all(nodes.map((node) => node.services.metadataRefresh.refresh()));
  };
  const toldTo = async ({ userId }: Person, id: string) =>
    (await app.database.prisma.notification.findMany({ where: { recipientId: userId }, orderBy: { id: 'asc' } }))
      .filter(({ sourceEvent }) => sourceEvent === 'identity_provider.metadata_changed')
      .filter(({ metadata }) => (metadata as { resource_id?: string }).resource_id === id)
      .map(({ category, title }) => [category, title]);

  test('signs in with what was read, in REST and GraphQL', async () => {
    const domain = `d${Date.now()}.example.test`;
    serve({ keys: [first], descriptor: 'WantAuthnRequestsSigned="1"' });
    const { data } = await owner.ask<{ createIdentityProvider: { id: string; samlMetadata: object } }>(
      `mutation ($orgId: ID!, $input: CreateIdentityProviderInput!) {
        createIdentityProvider(orgId: $orgId, input: $input) {
          id samlConfig { entityId ssoUrl signAuthnRequests } samlMetadata { url certificate error } } }`,
      {
        orgId: owner.orgId,
        input: { name: 'By metadata', protocol: 'saml', verifiedDomains: [domain], samlMetadata: { url: urlOf() } },
      },
    );
    expect(data!.createIdentityProvider).toMatchObject({
      samlConfig: { entityId: SAML_ENTITY, ssoUrl: 'https://idp.test/sso', signAuthnRequests: true },
      samlMetadata: { url: urlOf(), certificate: null, error: null },
    });
    const id = data!.createIdentityProvider.id;
    expect(await shown(id)).toMatchObject({
      saml_metadata: { url: urlOf(), error: null },
      saml_config: { entity_id: SAML_ENTITY, certificate: first.certificate.trim() },
    });
    expect(target.requests.at(-1)!.headers.accept).toContain('application/samlmetadata+xml');
    const browser = newBrowser(app);
    const begun = await browser.begin(`sam@${domain}`);
    const found = (xml: string, pattern: RegExp) => pattern.exec(xml)?.[1] ?? '';
    const request = await inflated(begun);
    expect(new URL(begun).searchParams.get('Signature')).not.toBeNull();
    const xml = responseXml({
      issuer: SAML_ENTITY,
      acsUrl: found(request, /AssertionConsumerServiceURL="([^"]+)"/),
      audience: found(request, /:Issuer[^>]*>([^<]+)</),
      requestId: found(request, / ID="([^"]+)"/),
      nameId: `sam@${domain}`,
    });
    const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', {
      saml_response: base64(signXml(xml, 'assertion', first)),
      relay_state: new URL(begun).searchParams.get('RelayState'),
    });
    expect(answer.statusCode, answer.body).toBe(200);
  });

  test('takes new certificates, once on two nodes, records them, and tells the owners and nobody else', async () => {
    const admin = await colleague(app, owner, 'admin');
    const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
    const id = await make();
    const before = await versionOf(id);
    await refresh(id);
    // to read the same again is no change
    expect([await versionOf(id), await toldTo(owner, id)]).toEqual([before, []]);
    serve({ keys: [first, second] });
    await refresh(id, [app, other]);
    const { saml_config: config, saml_metadata: metadata } = await shown(id);
    expect(config!.certificate).toBe([first, second].map(({ certificate }) => certificate.trim()).join('\n'));
    expect(metadata).toMatchObject({ error: null });
    expect(await versionOf(id)).not.toBe(before);
    const changes = (await changesOf(app, id)).filter(({ action }) => action === 'update');
    expect(changes).toMatchObject([
      {
        userId: null,
        metadata: {
          fields: ['samlConfig'],
          changed: ['certificate'],
          certificates_added: [expect.stringMatching(/^[\dA-F:]{95}$/)],
          certificates_removed: [],
        },
      },
    ]);
    const told = [['security', 'An identity provider has new certificates']];
    await waitFor(async () => expect(await toldTo(owner, id)).toEqual(told));
    expect(await toldTo(admin, id)).toEqual([]);
    await waitFor(() =>
      expect(
        app.mails.filter(({ subject }) => subject.includes('An identity provider has new certificates')),
      ).toHaveLength(1),
    );
    serve({ keys: [first, second], ssoUrl: 'https://idp.test/elsewhere' });
    await refresh(id);
    expect((await shown(id)).saml_config).toMatchObject({ sso_url: 'https://idp.test/elsewhere' });
    await waitFor(async () =>
      expect(await toldTo(owner, id)).toEqual([...told, ['security', 'An identity provider has new addresses']]),
    );
    await other.close();
  });

  test('keeps what it has while the address fails, says so, waits longer each time, and mends by itself', async () => {
    const id = await make();
    const [before, { saml_config: config, saml_metadata: read }] = [await versionOf(id), await shown(id)];
    const wait = async () => {
      const [row] = (
        await app.database.pool.query<{ minutes: number }>(
          `select round(extract(epoch from saml_metadata_refresh_at - now()) / 60)::int as minutes
          from identity_providers where id = $1`,
          [id],
        )
      ).rows;
      return row!.minutes;
    };
    served = { status: 503, body: '' };
    await refresh(id);
    expect((await shown(id)).saml_metadata).toMatchObject({
      error: 'the address answered with status 503',
      fetched_at: read!.fetched_at,
    });
    const firstWait = await wait();
    served = { status: 200, body: '<html/>' };
    await refresh(id);
    expect((await shown(id)).saml_metadata).toMatchObject({ error: 'the document is no metadata of SAML' });
    expect([firstWait <= 5, (await wait()) > 5]).toEqual([true, true]);
    expect([(await shown(id)).saml_config, await versionOf(id)]).toEqual([config, before]);
    serve({ keys: [first] });
    await refresh(id);
    expect((await shown(id)).saml_metadata).toMatchObject({ error: null });
    expect(await toldTo(owner, id)).toEqual([]);
  });

  test('that cannot be kept waits with its reason, and keeps no other waiting', async () => {
    const [broken, well] = [await make(), await make()];
    const { pool } = app.database;
    await pool.query(`create function refuse_certificate() returns trigger language plpgsql as
      $$ begin raise exception 'not this one'; end $$`);
    await pool.query(`create trigger refuse_certificate before update of saml_certificate on identity_providers
      for each row when (new.id = '${broken}') execute function refuse_certificate()`);
    try {
      serve({ keys: [second] });
      await dueFor([broken, well], 1);
      // one after the other, because they are of one organization
      const look = () => app.services.metadataRefresh.refresh().catch((error: Error) => error.message);
      const looks = [await look(), await look()];
      expect(looks).toEqual(expect.arrayContaining([1, 'The metadata of a provider could not be read.']));
      expect((await shown(broken)).saml_metadata).toMatchObject({ error: 'the service could not keep it' });
      expect((await shown(broken)).saml_config).toMatchObject({ certificate: first.certificate.trim() });
      expect(await shown(well)).toMatchObject({
        saml_metadata: { error: null },
        saml_config: { certificate: second.certificate.trim() },
      });
      // none is due again at once
      expect(await app.services.metadataRefresh.refresh()).toBe(0);
    } finally {
      await pool.query('drop function refuse_certificate cascade');
    }
  });

  test('is read in turns: many of one organization keep no other waiting', async () => {
    while ((await app.services.metadataRefresh.refresh()) > 0);
    const many = [];
    for (let n = 0; n < 5; n++) many.push(await make());
    owner = await register(app, { name: 'other' });
    const one = await make();
    await dueFor(many, 60);
    await dueFor([one], 1);
    const before = (await shown(one)).saml_metadata!.fetched_at;
    expect(await app.services.metadataRefresh.refresh()).toBe(2);
    expect((await shown(one)).saml_metadata!.fetched_at).not.toBe(before);
    for (let n = 1; n < 5; n++) expect(await app.services.metadataRefresh.refresh()).toBe(1);
    expect(await app.services.metadataRefresh.refresh()).toBe(0);
  });

  test('is that of twenty providers of an organization at most', async () => {
    const id = await make();
    await app.database.pool.query(
      `insert into identity_providers select (jsonb_populate_record(p, jsonb_build_object('id', p.id || '_' || n))).*
        from identity_providers p, generate_series(2, 20) n where p.id = $1`,
      [id],
    );
    const more = { name: 'More', protocol: 'saml', saml_metadata: { url: urlOf() } };
    const full = { status: 409, body: { details: { reason: 'limit_reached', limit: 20 } } };
    expect(await owner.call('POST', providers(), more)).toMatchObject(full);
    const saml = { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: first.certificate };
    const byHand = { name: 'By hand', protocol: 'saml', saml_config: saml };
    const made = await owner.call<Made>('POST', providers(), byHand);
    expect(made.status).toBe(201);
    expect(await change(made.body.idp_id, { saml_metadata: { url: urlOf() } })).toMatchObject(full);
    // those that are read already may be changed, and one that is not any more makes room
    expect((await change(id, { saml_metadata: { url: urlOf() } })).status).toBe(200);
    expect((await change(id, { saml_metadata: null })).status).toBe(200);
    expect((await change(made.body.idp_id, { saml_metadata: { url: urlOf() } })).status).toBe(200);
  });

  test('is never another entity by itself; an administrator who sets the address again says that it is', async () => {
    const id = await make();
    serve({ keys: [stranger], entityId: 'https://evil.test/entity' });
    await refresh(id);
    const kept = await shown(id);
    expect(kept.saml_config).toMatchObject({ entity_id: SAML_ENTITY, certificate: first.certificate.trim() });
    expect(kept.saml_metadata!.error).toMatch(/another entity id, 'https:\/\/evil\.test\/entity'/);
    const answer = await change(id, { saml_metadata: { url: urlOf() } });
    expect(answer.body.saml_config).toMatchObject({ entity_id: 'https://evil.test/entity' });
    expect((await shown(id)).saml_metadata).toMatchObject({ error: null });
  });

  test('is read no more while it is off, after its configuration was removed, or its address', async () => {
    const [off, none, byHand] = [await make(), await make(), await make()];
    expect((await change(off, { is_active: false })).status).toBe(200);
    expect((await change(none, { saml_config: null })).status).toBe(200);
    expect((await change(byHand, { saml_metadata: null })).status).toBe(200);
    expect(await shown(none)).toMatchObject({ saml_metadata: null, saml_config: null });
    expect(await shown(byHand)).toMatchObject({ saml_metadata: null, saml_config: { entity_id: SAML_ENTITY } });
    await app.database.pool.query(
      `update identity_providers set saml_metadata_refresh_at = now() - interval '1 s'
       where saml_metadata_url is not null`,
    );
    const before = await shown(off);
    while ((await app.services.metadataRefresh.refresh()) > 0);
    expect(await shown(off)).toEqual(before);
  });

  test('cannot be written by hand meanwhile, except for what is not read', async () => {
    const id = await make();
    const config = { ...(await shown(id)).saml_config } as Record<string, unknown>;
    delete config.certificate_ends_at;
    expect(
      (await change(id, { saml_config: { ...config, sign_authn_requests: true } })).body.saml_config,
    ).toMatchObject({
      sign_authn_requests: true,
    });
    const refused = await owner.call<{ detail: { loc: string[] }[] }>('PUT', `${providers()}/${id}`, {
      saml_config: { ...config, certificate: stranger.certificate, sso_url: 'https://evil.test' },
    });
    expect([refused.status, refused.body.detail.map(({ loc }) => loc.join('.'))]).toEqual([
      422,
      ['body.saml_config.sso_url', 'body.saml_config.certificate'],
    ]);
    // who writes it from now on says so
    const written = { ...config, sso_url: 'https://idp.test/other' };
    expect((await change(id, { saml_config: written, saml_metadata: null })).body.saml_config).toMatchObject({
      sso_url: 'https://idp.test/other',
    });
  });

  test('what is wrong is said at its place, and nothing is made', async () => {
    const place = 'body.saml_metadata';
    const oidc = { client_id: 'c', discovery_url: 'https://idp.test' };
    const saml = { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: first.certificate };
    served = { status: 200, body: metadataXml({ keys: [first], entityId: '' }) };
    for (const [body, at, message] of [
      [{ saml_metadata: { url: urlOf() } }, `${place}.url`, /it cannot be used: the metadata has no usable entity id/],
      [{ saml_metadata: { url: 'http://idp.test/metadata' } }, `${place}.url`, /must start with 'https/],
      [{ saml_metadata: { url: 'https://10.0.0.1/metadata' } }, `${place}.url`, /does not call/],
      [{ saml_metadata: { url: 'https://a:b@idp.test' } }, `${place}.url`, /a user name or a password/],
      [{ saml_metadata: { url: urlOf(), certificate: 'x' } }, `${place}.certificate`, /no PEM block/],
      [
        { saml_metadata: { url: urlOf(), certificate: endless(first).certificate } },
        `${place}.certificate`,
        /an end that is no time/,
      ],
      [
        { saml_config: { ...saml, certificate: `${first.certificate}\n${endless(second).certificate}` } },
        'body.saml_config.certificate',
        /block 2 of it has an end that is no time/,
      ],
      [{ saml_metadata: { url: urlOf() }, saml_config: saml }, place, /either this or/],
      [{ protocol: 'oidc', oidc_config: oidc, saml_metadata: { url: urlOf() } }, place, /protocol of the provider/],
    ] as const) {
      const answer = await owner.call<{ detail: { loc: string[]; msg: string }[] }>('POST', providers(), {
        name: 'Wrong',
        protocol: 'saml',
        ...body,
      });
      expect(answer.status, JSON.stringify(answer.body)).toBe(422);
      expect(answer.body.detail[0]!.loc.join('.')).toBe(at);
      expect(answer.body.detail[0]!.msg).toMatch(message);
    }
    const silent = await owner.call<{ error: string }>('POST', providers(), {
      name: 'Silent',
      protocol: 'saml',
      saml_metadata: { url: 'http://127.0.0.1:9/metadata' },
    });
    expect([silent.status, silent.body.error]).toEqual([502, 'UPSTREAM_ERROR']);
    expect(await app.database.prisma.identityProvider.count({ where: { name: { in: ['Wrong', 'Silent'] } } })).toBe(0);
  });

  test('is read ten times a minute for an organization, and by itself all the same', async () => {
    const id = await make();
    for (let n = 1; n < 10; n++) expect((await change(id, { saml_metadata: { url: urlOf() } })).status).toBe(200);
    const before = target.requests.length;
    const answers = [
      await change(id, { saml_metadata: { url: urlOf() } }),
      await owner.call('POST', providers(), { name: 'More', protocol: 'saml', saml_metadata: { url: urlOf() } }),
    ];
    expect(answers.map(({ status, body }) => [status, (body as { error?: string }).error])).toEqual([
      [429, 'RATE_LIMIT_EXCEEDED'],
      [429, 'RATE_LIMIT_EXCEEDED'],
    ]);
    expect(target.requests).toHaveLength(before);
    expect((await change(id, { name: 'Renamed' })).status).toBe(200);
    await refresh(id);
    expect(target.requests.length).toBeGreaterThan(before);
    owner = await register(app, { name: 'other' });
    await make();
  });

  test('signed metadata is demanded each time', async () => {
    const sign = (by: typeof first) => {
      served = { status: 200, body: signMetadata(metadataXml({ keys: [first], root: 'ID="_m"' }), by) };
    };
    sign(second);
    const id = await make({ saml_metadata: { url: urlOf(), certificate: second.certificate } });
    sign(stranger);
    await refresh(id);
    expect((await shown(id)).saml_metadata).toMatchObject({
      error: 'the metadata is not signed with the given certificate',
    });
  });
});
