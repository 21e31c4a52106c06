import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { domainOfEmail } from '../../../src/identity/identity-providers/domain-name.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { certificate } from '../../support/certificate.ts';
import { caller, changesOf, colleague, createUser, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
let owner: Person;
let admin: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app, { name: 'owner' });
  admin = await createUser(app, owner, { role: 'admin' });
});
afterAll(() => app.close());

type Provider = Record<string, unknown> & { idp_id: string };
interface Refusal {
  detail: { type: string; loc: (string | number)[]; msg: string }[];
}
const urlOf = ({ orgId }: Pick<Person, 'orgId'>) => `/v1/orgs/${orgId}/identity-providers`;
const aDomain = () => `d${randomBytes(6).toString('hex')}.example.test`;
const samlConfig = { entity_id: 'urn:idp', sso_url: 'https://idp.test/sso', certificate: certificate.cert };
const oidcConfig = { client_id: 'c', discovery_url: 'https://idp.test' };
const saml = { name: 'S', protocol: 'saml', saml_config: samlConfig };
const oidc = { name: 'O', protocol: 'oidc', oidc_config: oidcConfig };
const make = async (by: Person, fields: object) => {
  const { status, body } = await by.call<Provider>('POST', urlOf(by), fields);
  expect(status, JSON.stringify(body)).toBe(201);
  return body;
};
const placesOf = (body: unknown) => (body as Refusal).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

test('name and protocol are enough; the defaults are those of the defaults', async () => {
  const body = await make(owner, { name: 'Company', protocol: 'saml' });
  expect(body).toEqual({
    idp_id: expect.stringMatching(/^idp_/) as string,
    org_id: owner.orgId,
    name: 'Company',
    protocol: 'saml',
    saml_config: null,
    oidc_config: null,
    verified_domains: [],
    group_mappings: [],
    group_attribute: 'groups',
    default_role_id: 'member',
    auto_create_users: true,
    auto_update_profile: true,
    is_active: true,
    created_at: expect.any(String) as string,
    updated_at: expect.any(String) as string,
    created_by: owner.userId,
  });
  const url = `${urlOf(owner)}/${body.idp_id}`;
  expect((await owner.call('GET', url)).body).toEqual(body);
  const list = await owner.call<{ identity_providers: Provider[] }>('GET', urlOf(owner));
  expect(list.body).toMatchObject({ total: 1, has_more: false, next_cursor: null, identity_providers: [body] });
  await owner.call('PUT', url, { name: 'Other' });
  await owner.call('DELETE', url);
  expect((await owner.call('GET', url)).status).toBe(404);
  expect(await eventsOf(app, body.idp_id)).toEqual(
    ['created', 'updated', 'deleted'].map((e) => `identity_provider.${e}`),
  );
  expect(await changesOf(app, body.idp_id)).toMatchObject([
    { action: 'create', resourceType: 'identity_provider', orgId: owner.orgId, metadata: { protocol: 'saml' } },
    { action: 'update', metadata: { fields: ['name'] } },
    { action: 'delete' },
  ]);
});

test('configurations are shown as given, with their defaults; a new one replaces the whole', async () => {
  const made = await make(owner, saml);
  const nameIdFormat = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
  expect(made).toMatchObject({
    saml_config: { ...samlConfig, slo_url: null, sign_authn_requests: false, name_id_format: nameIdFormat },
    oidc_config: null,
  });
  const url = `${urlOf(owner)}/${made.idp_id}`;
  const two = `${certificate.cert}\n${certificate.cert}`;
  const change = { ...samlConfig, certificate: two, slo_url: 'http://127.0.0.1:1/slo', sign_authn_requests: true };
  expect((await owner.call('PUT', url, { saml_config: change })).body).toMatchObject({ saml_config: change });
  expect((await owner.call('PUT', url, { saml_config: samlConfig })).body).toMatchObject({
    saml_config: { ...samlConfig, slo_url: null, sign_authn_requests: false },
  });
  const { data } = await owner.ask(
    `query ($orgId: ID!, $id: ID!) { identityProvider(orgId: $orgId, id: $id) {
      samlConfig { certificateEndsAt allowUnsolicited } } node(id: $id) { __typename } }`,
    { orgId: owner.orgId, id: made.idp_id },
  );
  expect(data).toEqual({
    identityProvider: { samlConfig: { certificateEndsAt: '2126-10-29T09:24:29.000Z', allowUnsolicited: false } },
    node: { __typename: 'IdentityProvider' },
  });
  expect((await owner.call('PUT', url, { saml_config: null })).body).toMatchObject({ saml_config: null });
  expect(await make(owner, oidc)).toMatchObject({
    oidc_config: { ...oidcConfig, client_secret_ref: null, scopes: ['openid', 'email', 'profile'] },
    saml_config: null,
  });
});

describe('what is wrong is said at its place', () => {
  const pem = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----`;
  const certificateAt = 'body.saml_config.certificate';
  const withCertificate = (text: string) => ({ ...saml, saml_config: { ...samlConfig, certificate: text } });
  test.each<[string, object, [string, RegExp][]]>([
    ['another protocol', { name: 'x', protocol: 'ldap' }, [['body.protocol', /'saml' or 'oidc'/]]],
    [
      'the configuration of the other protocol',
      { ...saml, oidc_config: oidcConfig },
      [['body.oidc_config', /the protocol of the provider is 'saml'/]],
    ],
    [
      'and the other way round',
      { ...oidc, saml_config: samlConfig },
      [['body.saml_config', /the protocol of the provider is 'oidc'/]],
    ],
    [
      'half a configuration',
      { name: 'x', protocol: 'saml', saml_config: { entity_id: 'e' } },
      [
        ['body.saml_config.sso_url', /required/],
        ['body.saml_config.certificate', /required/],
      ],
    ],
    ['a text that is no certificate', withCertificate('hello'), [[certificateAt, /no PEM block/]]],
    ['a PEM block of something else', withCertificate(pem('aGVsbG8=')), [[certificateAt, /it is not an X.509/]]],
    [
      'a second block that is wrong',
      withCertificate(`${certificate.cert}\n${pem('aGVsbG8=')}`),
      [[certificateAt, /block 2 of it is not an X.509 certificate/]],
    ],
    [
      'a private key beside it',
      withCertificate(`${certificate.cert}\n${certificate.key}`),
      [[certificateAt, /never a private key/]],
    ],
    [
      'too many of them',
      withCertificate(Array.from({ length: 11 }, () => certificate.cert).join('\n')),
      [[certificateAt, /10 certificates, not 11/]],
    ],
    [
      'addresses without encryption, elsewhere than on this machine',
      { ...saml, saml_config: { ...samlConfig, sso_url: 'http://idp.test', slo_url: 'http://10.0.0.1/' } },
      [
        ['body.saml_config.sso_url', /https/],
        ['body.saml_config.slo_url', /https/],
      ],
    ],
    [
      'an address with a password',
      { ...oidc, oidc_config: { ...oidcConfig, discovery_url: 'https://a:b@idp.test' } },
      [['body.oidc_config.discovery_url', /user name or a password/]],
    ],
    [
      'a secret that the organization does not have',
      { ...oidc, oidc_config: { ...oidcConfig, client_secret_ref: 'secret://nobody' } },
      [['body.oidc_config.client_secret_ref', /no secret 'secret:\/\/nobody'/]],
    ],
    [
      'domains that are none, or twice the same',
      {
        ...oidc,
        verified_domains: ['ok.example.test', 'localhost', '10.0.0.1', 'OK.example.test.', 'a b.test', 'x@y.z'],
      },
      [1, 2, 3, 4, 5].map((at): [string, RegExp] => [
        `body.verified_domains.${at}`,
        at === 3 ? /already/ : /not a domain/,
      ]),
    ],
    [
      'a role that is none, a workspace of nobody',
      {
        ...oidc,
        group_mappings: [
          { group: 'a', role_id: 'member' },
          { group: 'b', role_id: 'editor', workspace_id: 'ws_none' },
        ],
      },
      [['body.group_mappings.1.workspace_id', /no workspace 'ws_none'/]],
    ],
    ['no role at all', { ...oidc, default_role_id: 'king' }, [['body.default_role_id', /'owner'/]]],
  ])('%s', async (_title, fields, wanted) => {
    const { status, body } = await owner.call('POST', urlOf(owner), fields);
    expect(status, JSON.stringify(body)).toBe(422);
    const found = placesOf(body);
    expect(found.map(([loc]) => loc)).toEqual(wanted.map(([loc]) => loc));
    for (const [at, [, message]] of wanted.entries()) expect(found[at]![1]).toMatch(message);
  });

  test('its protocol never changes', async () => {
    const { idp_id } = await make(owner, oidc);
    const { status, body } = await owner.call('PUT', `${urlOf(owner)}/${idp_id}`, { protocol: 'saml' });
    expect([status, placesOf(body)]).toEqual([
      422,
      [['body.protocol', 'Value error, it cannot change: create another identity provider instead']],
    ]);
    expect((await owner.call('PUT', `${urlOf(owner)}/${idp_id}`, { protocol: 'oidc' })).status).toBe(200);
  });

  test('a workspace of another organization is nobody', async () => {
    const stranger = await register(app);
    const group_mappings = [{ group: 'a', role_id: 'member', workspace_id: owner.workspaceId }];
    expect((await stranger.call('POST', urlOf(stranger), { ...oidc, group_mappings })).status).toBe(422);
    const made = await make(owner, { ...oidc, group_mappings });
    expect(made.group_mappings).toEqual(group_mappings);
  });
});

test('an instance has a domain once, however it is written; only its own organization learns where', async () => {
  const domain = aDomain();
  const written = `${domain.toUpperCase()}.`;
  const first = await make(owner, { ...oidc, verified_domains: [written] });
  expect(first.verified_domains).toEqual([written]);
  const taken = (resource_id: string | null) => ({
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'identity_provider', field: 'verified_domains', value: domain, resource_id },
    },
  });
  const again = { ...oidc, verified_domains: [domain] };
  expect(await owner.call('POST', urlOf(owner), again)).toMatchObject(taken(first.idp_id));
  const stranger = await register(app);
  expect(await stranger.call('POST', urlOf(stranger), again)).toMatchObject(taken(null));
  const theirs = await make(stranger, oidc);
  const put = () => stranger.call('PUT', `${urlOf(stranger)}/${theirs.idp_id}`, { verified_domains: [domain] });
  expect(await put()).toMatchObject(taken(null));
  // it is free once its provider lets it go
  await owner.call('PUT', `${urlOf(owner)}/${first.idp_id}`, { verified_domains: [] });
  expect((await put()).status).toBe(200);
  // or its organization is gone
  await stranger.call('DELETE', `/v1/orgs/${stranger.orgId}`);
  expect((await owner.call('PUT', `${urlOf(owner)}/${first.idp_id}`, { verified_domains: [domain] })).status).toBe(200);
});

test('of many that claim a domain at once, one gets it', async () => {
  const verified_domains = [aDomain()];
  const claims = Array.from({ length: 6 }, () => owner.call('POST', urlOf(owner), { ...oidc, verified_domains }));
  expect((await Promise.all(claims)).map(({ status }) => status).sort((a, b) => a - b)).toEqual([
    201, 409, 409, 409, 409, 409,
  ]);
});

test('nobody lets a provider grant a role above their own, nor changes one that does', async () => {
  const grants = { group_mappings: [{ group: 'a', role_id: 'owner', workspace_id: owner.workspaceId }] };
  const refused = (verb: string) => ({
    status: 403,
    body: {
      error: 'FORBIDDEN',
      message: "The provider grants the role 'owner', which is above your own.",
      details: { required_permission: `identity_provider:${verb}` },
    },
  });
  expect(await admin.call('POST', urlOf(admin), { ...oidc, ...grants })).toMatchObject(refused('create'));
  expect(await admin.call('POST', urlOf(admin), { ...oidc, default_role_id: 'owner' })).toMatchObject(
    refused('create'),
  );
  const { idp_id } = await make(owner, { ...oidc, ...grants });
  const put = (fields: object) => admin.call('PUT', `${urlOf(admin)}/${idp_id}`, fields);
  expect(await put({ oidc_config: { ...oidcConfig, client_id: 'mine' } })).toMatchObject(refused('update'));
  expect(await put({ verified_domains: [aDomain()] })).toMatchObject(refused('update'));
  // what decides nothing is theirs to change, and so is less
  expect((await put({ name: 'B', is_active: false, oidc_config: oidcConfig, ...grants })).status).toBe(200);
  expect((await put({ group_mappings: [] })).status).toBe(200);
});

test('only administrators see and change providers; a restricted token sees none', async () => {
  const { idp_id } = await make(owner, oidc);
  const url = `${urlOf(owner)}/${idp_id}`;
  const editor = await colleague(app, owner, 'editor');
  for (const asked of [urlOf(owner), url])
    expect(await editor.call('GET', asked)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'identity_provider:read' } },
    });
  const as = async (restriction: object) => {
    const token = await issueToken(app, owner, { scopes: ['admin'], ...restriction });
    return caller(app, { ...owner, accessToken: token.plaintext_token });
  };
  expect((await (await as({})).call('GET', url)).status).toBe(200);
  const restricted = await as({ workspace_ids: [owner.workspaceId] });
  expect((await restricted.call('GET', urlOf(owner))).body).toMatchObject({ total: 0, identity_providers: [] });
  expect((await restricted.call('GET', url)).status).toBe(403);
  expect((await restricted.call('PUT', url, {})).status).toBe(403);
  expect((await restricted.ask('query ($id: ID!) { node(id: $id) { id } }', { id: idp_id })).data).toEqual({
    node: null,
  });
  const unnamed = caller(app, { ...owner, accessToken: (await issueToken(app, owner, {})).plaintext_token });
  expect((await unnamed.call('GET', url)).status).toBe(403);
});

test('a client secret that a provider refers to is not destroyed', async () => {
  const secret = { name: 'CLIENT', secret_type: 'oauth2', value: { client_secret: 's' } };
  const { secret_id } = (await owner.call<{ secret_id: string }>('POST', `/v1/orgs/${owner.orgId}/secrets`, secret))
    .body;
  const made = await make(owner, { ...oidc, oidc_config: { ...oidcConfig, client_secret_ref: 'secret://CLIENT' } });
  const destroy = () => owner.call('DELETE', `/v1/orgs/${owner.orgId}/secrets/${secret_id}?permanent=true`);
  expect(await destroy()).toMatchObject({
    status: 409,
    body: { details: { references: [{ resource_type: 'identity_provider', resource_id: made.idp_id }] } },
  });
  const provider = (await app.services.signInProviders.byId(made.idp_id))!;
  expect(await app.services.signInProviders.clientSecret(provider)).toBe('s');
  await owner.call('DELETE', `${urlOf(owner)}/${made.idp_id}`);
  expect((await destroy()).status).toBe(204);
});

test('sign-ins find a provider by its identifier and by domain, while it is active and configured', async () => {
  const domain = aDomain();
  const { signInProviders } = app.services;
  const found = async () => [
    (await signInProviders.byId(idp_id))?.id ?? null,
    (await signInProviders.byDomain(domainOfEmail(`ann@${domain.toUpperCase()}.`)))?.id ?? null,
  ];
  const { idp_id } = await make(owner, { ...oidc, verified_domains: [domain] });
  expect(await found()).toEqual([idp_id, idp_id]);
  const put = (fields: object) => owner.call('PUT', `${urlOf(owner)}/${idp_id}`, fields);
  for (const [off, on] of [
    [{ is_active: false }, { is_active: true }],
    [{ oidc_config: null }, { oidc_config: oidcConfig }],
  ] as const) {
    await put(off);
    expect(await found()).toEqual([null, null]);
    await put(on);
    expect(await found()).toEqual([idp_id, idp_id]);
  }
  for (const email of ['ann@not a domain', 'ann@elsewhere.test'])
    expect(await signInProviders.byDomain(domainOfEmail(email))).toBeNull();
});

test('a client secret goes to a provider only from who may see its value', async () => {
  const ann = await register(app, { name: 'ann' });
  const newSecret = async (name: string, more: object = {}) => {
    const secret = { name, secret_type: 'oauth2', value: { client_secret: 's' }, ...more };
    return (await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, secret)).body.secret_id;
  };
  const [shared, placed] = [await newSecret('shared'), await newSecret('placed', { workspace_id: ann.workspaceId })];
  const permissions = ['identity_provider:create', 'identity_provider:read', 'identity_provider:update'];
  const withToken = async (...more: string[]) => {
    const { plaintext_token } = await issueToken(app, ann, { permissions: [...permissions, ...more] });
    return caller(app, { ...ann, accessToken: plaintext_token });
  };
  const [blind, reader] = [await withToken(), await withToken('secret:read')];
  const given = (client_secret_ref: string, more: object = {}) => ({
    oidc_config: { ...oidcConfig, client_secret_ref, ...more },
  });
  for (const reference of [shared, placed, 'secret://shared']) {
    const fields = { ...oidc, ...given(reference) };
    expect(await reader.call('POST', urlOf(ann), fields)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'secret:reveal' } },
    });
    // who may not even read it is not told that it is there
    expect(await blind.call('POST', urlOf(ann), fields)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'secret' } },
    });
  }
  const made = await make(ann, { ...oidc, ...given(shared) });
  const put = (by: Person, fields: object) => by.call<Provider>('PUT', `${urlOf(ann)}/${made.idp_id}`, fields);
  expect((await put(reader, given(placed))).status).toBe(403);
  expect((await put(reader, given(shared, { discovery_url: 'https://evil.test' }))).status).toBe(403);
  expect((await ann.call<Provider>('GET', `${urlOf(ann)}/${made.idp_id}`)).body).toMatchObject(given(shared));
  expect((await put(reader, given(shared, { scopes: ['openid'] }))).status).toBe(200);
  expect((await put(reader, { name: 'Renamed' })).status).toBe(200);
  expect((await put(await withToken('secret:reveal'), given(placed))).status).toBe(200);
});
