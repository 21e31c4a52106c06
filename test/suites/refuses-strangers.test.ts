import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type { InjectOptions } from 'fastify';
import { decodeJwt, decodeProtectedHeader, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expectUnauthenticated } from '../support/error-shapes.ts';
import { operations, routeOf } from '../support/operations.ts';
import { graphqlRequest, requestOf } from '../support/requests.ts';
import { argumentsOf, documentOf, rootFields, titleOf } from '../support/root-fields.ts';
import { changedTables, databaseChecksums } from '../support/rows.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

/** What strangers may call. A new one is added here on purpose, or not at all. */
const publicRoutes = [
  'GET /v1/auth/config',
  'GET /v1/auth/invite-info',
  'GET /v1/auth/sso/callback/oidc',
  'POST /v1/auth/forgot-password',
  'POST /v1/auth/login',
  'POST /v1/auth/login/complete',
  'POST /v1/auth/passkeys/sign-in',
  'POST /v1/auth/passkeys/sign-in/begin',
  'POST /v1/auth/refresh',
  'POST /v1/auth/register',
  'POST /v1/auth/resend-verification',
  'POST /v1/auth/reset-password',
  'POST /v1/auth/sso/callback/saml',
  'POST /v1/auth/sso/discover',
  'POST /v1/auth/sso/exchange',
  'POST /v1/auth/sso/initiate',
  'POST /v1/auth/verify-email',
  'POST /v1/orgs/{org_id}/api-tokens/refresh',
];
const publicRootFields = [
  'Mutation.beginPasskeySignIn',
  'Mutation.completeSignIn',
  'Mutation.discoverSso',
  'Mutation.exchangeSsoCode',
  'Mutation.finishOidcSignIn',
  'Mutation.finishSamlSignIn',
  'Mutation.forgotPassword',
  'Mutation.initiateSso',
  'Mutation.login',
  'Mutation.refresh',
  'Mutation.refreshApiToken',
  'Mutation.register',
  'Mutation.resendVerification',
  'Mutation.resetPassword',
  'Mutation.signInWithPasskey',
  'Mutation.verifyEmail',
  'Query.authConfig',
  'Query.inviteInfo',
];

const strangers = [
  'no token',
  'an empty header',
  'garbage',
  'another scheme',
  'a token of three dots',
  'an expired token',
  'a token signed with a foreign key',
  'an unsigned token',
  'a token with a changed subject',
  'a token of another audience',
  'a refresh token',
  'a token whose session has ended',
] as const;

let app: TestApp;
let world: World;
let headers: Record<(typeof strangers)[number], string | undefined>;

beforeAll(async () => {
  // asks for more at once than a client may
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
  headers = await strangersOf(app, world);
});
afterAll(() => app.close());

async function strangersOf(testApp: TestApp, { accounts }: World): Promise<typeof headers> {
  const { accessToken: token, refreshToken } = accounts.owner;
  const claims = decodeJwt(token);
  const header = decodeProtectedHeader(token);
  const { privateKey: foreign } = generateKeyPairSync('ed25519');
  const keys = await SigningKeys.open(testApp.keysDir);
  const { privateKey } = await keys.current();
  const signed = (changes: object, key: typeof foreign | typeof privateKey) =>
    new SignJWT({ ...claims, jti: randomUUID(), ...changes }).setProtectedHeader({ ...header, alg: 'EdDSA' }).sign(key);
  // the genuine key with the genuine claims is accepted: so the refusals below are about what they say they are about
  const control = await testApp.server.inject({
    url: '/v1/auth/me',
    headers: { authorization: `Bearer ${await signed({}, privateKey)}` },
  });
  expect(control.statusCode).toBe(200);
  const [head, , signature] = token.split('.');
  const other = Buffer.from(JSON.stringify({ ...claims, sub: accounts.viewer.userId })).toString('base64url');
  const ended = await testApp.server.inject({
    method: 'POST',
    url: '/v1/auth/login',
    payload: { username: accounts.viewer.username, password: world.password },
  });
  const { access_token: dead } = ended.json<{ access_token: string }>();
  await testApp.server.inject({ method: 'POST', url: '/v1/auth/logout', headers: { authorization: `Bearer ${dead}` } });
  return {
    'no token': undefined,
    'an empty header': '',
    garbage: 'Bearer garbage',
    'another scheme': `Basic ${Buffer.from('user:password').toString('base64')}`,
    'a token of three dots': 'Bearer ...',
    'an expired token': `Bearer ${await signed({ iat: 1_000_000_000, exp: 1_000_001_800 }, privateKey)}`,
    'a token signed with a foreign key': `Bearer ${await signed({}, foreign)}`,
    'an unsigned token': `Bearer ${new UnsecuredJWT(claims).encode()}`,
    'a token with a changed subject': `Bearer ${head}.${other}.${signature}`,
    'a token of another audience': `Bearer ${await signed({ aud: 'somebody-else' }, privateKey)}`,
    'a refresh token': `Bearer ${refreshToken}`,
    'a token whose session has ended': `Bearer ${dead}`,
  };
}

test('the list of operations open to strangers is closed', () => {
  expect(
    operations
      .filter((operation) => operation.isPublic)
      .map(routeOf)
      .sort(),
  ).toEqual(publicRoutes);
  expect(
    rootFields
      .filter(({ field }) => field.extensions.access === 'public')
      .map(titleOf)
      .sort(),
  ).toEqual(publicRootFields);
});

/** Who tries an operation: always somebody without a token, and some of the others. */
const strangersAt = (operation: string) => ['no token' as const, ...thinned(strangers.slice(1), operation)];

/** The same request with what a stranger has in place of a token. */
function sentBy(stranger: (typeof strangers)[number], request: InjectOptions): InjectOptions {
  const authorization = headers[stranger];
  return { ...request, headers: { ...request.headers, ...(authorization === undefined ? {} : { authorization }) } };
}

test.each(
  operations
    .filter((operation) => !publicRoutes.includes(routeOf(operation)))
    .map((operation) => [routeOf(operation), operation] as const),
)('%s: 401 with the exact body', async (route, operation) => {
  for (const stranger of strangersAt(route)) {
    const answer = await app.server.inject(sentBy(stranger, requestOf(operation, world)));
    expectUnauthenticated(answer, stranger);
  }
});

test.each(
  rootFields.filter((root) => !publicRootFields.includes(titleOf(root))).map((root) => [titleOf(root), root] as const),
)('%s: AUTHENTICATION_FAILED and no data', async (title, root) => {
  const given = argumentsOf(root, world);
  const request = graphqlRequest(documentOf(root, given), given);
  const accept = root.kind === 'subscription' ? 'text/event-stream' : 'application/json';
  request.headers = { ...request.headers, accept };
  for (const stranger of strangersAt(title)) {
    const answer = await app.server.inject(sentBy(stranger, request));
    const text = root.kind === 'subscription' ? /^data: (.+)$/m.exec(answer.body)?.[1] : answer.body;
    const { data, errors } = JSON.parse(text ?? '') as {
      data?: Record<string, unknown> | null;
      errors?: { extensions: object }[];
    };
    expect(errors?.[0]?.extensions, stranger).toEqual({ code: 'AUTHENTICATION_FAILED', details: {} });
    expect(data?.[root.name] ?? null, stranger).toBeNull();
  }
});

test('nothing was written by any of it', async () => {
  const before = await databaseChecksums(app.database.pool);
  for (const operation of operations.filter((candidate) => !candidate.isPublic))
    await app.server.inject(requestOf(operation, world));
  expect(changedTables(before, await databaseChecksums(app.database.pool))).toEqual([]);
});

test('a stranger learns nothing from invalid input: authentication comes first', async () => {
  for (const operation of operations.filter((candidate) => !candidate.isPublic && candidate.body)) {
    const answer = await app.server.inject({ ...requestOf(operation, world), payload: '{"unknown":1}' });
    expectUnauthenticated(answer);
  }
});
