import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildOpenApi } from '../../rest/openapi.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import { readReference } from '../../rest/reference.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { operationsDir } from '../../src/paths.ts';
import { samlAnswer, samlCompany } from '../identity/sso/companies.ts';
import { usualIdpKey } from '../identity/sso/saml-idp.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { judgeOf, within } from '../support/documented.ts';
import { expendable } from '../support/expendable.ts';
import { gentlestFirst, operations, routeOf } from '../support/operations.ts';
import { platformAdmin, register, signIn } from '../support/person.ts';
import { closeProviders, PUBLIC_URL, prepared } from '../support/prepared.ts';
import { isRecording, keepAnswer, recordedAnswer, writeAnswers } from '../support/recorded-answers.ts';
import { expectOk, injectable, type Parts, partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

const reference = readReference(operationsDir, operations);
const { examples, groups } = reference;
const document = buildOpenApi(operations, reference, { info: { title: 'Platform', version: '1', description: '' } });

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL } });
  world = await createWorld(app);
  callers.UpdateOrganizationStorage = (await platformAdmin(app)).accessToken;
});
afterAll(async () => {
  await app.close();
  await closeProviders();
  if (isRecording) writeAnswers(operations.map(({ name }) => name));
});

/** The token of the link in the newest mail to somebody. */
async function mailed(to: string): Promise<string> {
  await app.jobsDone();
  return new URL(/https?:\S+/.exec(app.mails.findLast((mail) => mail.to === to)!.text)![0]).searchParams.get('token')!;
}

/** Access tokens of operations that the owner of the world cannot call. */
const callers: Record<string, string> = {};

const idpKey = usualIdpKey();
/** The answer of a SAML provider, of which two placeholders have a part. */
let answered: Awaited<ReturnType<typeof samlAnswer>> | undefined;

/** What stands for each `{placeholder}`, made when it is asked for. */
const placeholders: Record<string, (world: World) => Promise<string> | string> = {
  verification_token: async () => {
    const { email } = await register(app, { username: 'verify-me' });
    return mailed(email);
  },
  reset_token: async () => {
    const { email } = await register(app, { username: 'reset-me' });
    await app.jobsDone();
    await expectOk(app, { method: 'POST', url: '/v1/auth/forgot-password', payload: { email } });
    return mailed(email);
  },
  invite_token: async (world) => {
    const { email, accessToken: token } = await register(app, { username: 'invite-me' });
    await app.jobsDone();
    callers.AcceptInvitation = token;
    const payload = { email, role: 'member' };
    const url = `/v1/orgs/${world.ids.org_id}/invitations`;
    await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload });
    return mailed(email);
  },
  refresh_token: async (world) => (await signIn(app, world)).refreshToken,
  api_refresh_token: async (world) => {
    const url = `/v1/orgs/${world.ids.org_id}/api-tokens`;
    const issued = await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { name: 'ci' } });
    return String(issued.refresh_token_plaintext);
  },
  saml_response: async () => {
    answered = await samlAnswer(app, await samlCompany(app, idpKey), idpKey);
    return answered.message;
  },
  relay_state: () => answered!.relayState,
  sso_code: async () => {
    const { domain, idpId } = await samlCompany(app, idpKey);
    const provider = await app.database.prisma.identityProvider.findUniqueOrThrow({ where: { id: idpId } });
    const email = `sue@${domain}`;
    const identity = { subject: email, email, emailVerified: false, groups: [], claims: {} };
    return app.services.federatedSignIn.signInForCode(provider, identity, systemCaller('test'), null);
  },
  other_user_id: (world) => world.guest.userId,
  // an account of the organization takes a secret of the organization
  secret_name: async (world) => {
    const payload = { name: 'of-the-organization', secret_type: 'api_key', value: { api_key: 'sk-1' } };
    const url = `/v1/orgs/${world.ids.org_id}/secrets`;
    return String((await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload })).name);
  },
  model_name: async (world) => {
    const url = `/v1/orgs/${world.ids.org_id}/model-catalog/${world.ids.logical_model_id}`;
    const model = await expectOk<{ targets: { model_name: string }[] }>(app, { url, headers: world.as('owner') });
    return model.targets[0]!.model_name;
  },
};

/** What is sent instead: a challenge that was given out, and what answers it. */
const answering = (name: string, route: string) => async (text: string) => {
  const parts: Parts = { params: {}, query: {}, headers: {}, body: JSON.parse(text) };
  await prepared[route]!(app, world, parts);
  const { authorization } = parts.headers;
  if (authorization) callers[name] = authorization.replace('Bearer ', '');
  return JSON.stringify(parts.body);
};

/** What stands for a value that is right and not so here: whose domain has a provider. */
const here: Record<string, (text: string) => Promise<string>> = {
  CompleteSignIn: answering('CompleteSignIn', 'POST /v1/auth/login/complete'),
  ConfirmTotp: answering('ConfirmTotp', 'POST /v1/auth/factors/totp/confirm'),
  ProveFactor: answering('ProveFactor', 'POST /v1/auth/factors/proof'),
  AddPasskey: answering('AddPasskey', 'POST /v1/auth/passkeys'),
  SignInWithPasskey: answering('SignInWithPasskey', 'POST /v1/auth/passkeys/sign-in'),
  InitiateSso: async (text) => text.replace('example.com', (await samlCompany(app, idpKey)).domain),
};

/** The example with what exists in the place of its placeholders. */
async function filled({ name }: CompiledOperation, world: World): Promise<unknown> {
  let text = JSON.stringify(examples[name]);
  text = (await here[name]?.(text)) ?? text;
  for (const [placeholder, name = ''] of text.matchAll(/\{([a-z_]+)\}/g))
    text = text.replace(placeholder, (await placeholders[name]?.(world)) ?? world.ids[name]!);
  return JSON.parse(text) as unknown;
}

const withBody = operations.filter(({ body }) => body !== null);

test('every file of documents has a group with a sentence', () => {
  expect(groups.filter(({ description }) => !description)).toEqual([]);
});

interface Shown {
  place: string;
  schema: object;
  value: unknown;
}

/** Everything in the document that has a schema and an example, or several. */
function shownIn(node: unknown, place = '#'): Shown[] {
  if (typeof node !== 'object' || node === null) return [];
  const { schema, example, examples: several } = node as { schema?: object; example?: unknown; examples?: object };
  const own: Shown[] = schema && example !== undefined ? [{ place, schema, value: example }] : [];
  for (const [name, one] of schema ? Object.entries(several ?? {}) : [])
    own.push({ place: `${place}/${name}`, schema: schema!, value: (one as { value: unknown }).value });
  return [...own, ...Object.entries(node).flatMap(([key, inner]) => shownIn(inner, `${place}/${key}`))];
}

/** What only a running service gives out. All else is a value that a reader can send as it is. */
const GIVEN_OUT =
  /(?:_ids?|\b(?:file|challenge|id|token|refresh_token|code|saml_response|relay_state|model_name|credentials_ref))$/;
const placeholdersIn = (value: unknown, key = ''): string[] =>
  typeof value === 'string'
    ? [...value.matchAll(/\{[a-z_]+\}/g)].map(() => key)
    : Object.entries((typeof value === 'object' && value) || {}).flatMap(([inner, item]) =>
        placeholdersIn(item, Array.isArray(value) ? key : inner),
      );

test('every example of the document has the form of its place, and says what a reader can send', () => {
  const judge = judgeOf(document);
  const shown = shownIn(document);
  expect(shown.length).toBeGreaterThan(withBody.length);
  const wrong = shown.filter(({ schema, value }) => !judge.validate(within(schema), value));
  expect(wrong.map(({ place }) => place)).toEqual([]);
  const bodies = shown.filter(({ place }) => place.includes('/requestBody/'));
  expect(bodies.flatMap(({ value }) => placeholdersIn(value)).filter((key) => !GIVEN_OUT.test(key))).toEqual([]);
  expect(document.paths['/v1/auth/sso/initiate']).toMatchObject({
    post: { requestBody: { content: { 'application/json': { example: { email: 'ann@example.com' } } } } },
  });
});

/** Those whose last act ends the session of whoever calls them come last. */
const withoutBody = gentlestFirst(operations.filter(({ body, type }) => body === null && type !== 'subscription'));

describe('what is answered without a body is shown:', () => {
  test.each(
    withoutBody.filter(({ method }) => method === 'GET').map((operation) => [routeOf(operation), operation] as const),
  )('%s', async (_route, operation) => {
    const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
    await prepared[routeOf(operation)]?.(app, world, parts);
    await expectExample(operation, parts);
  });
});

describe('the example of', () => {
  test.each(withBody.map((operation) => [routeOf(operation), operation] as const))(
    '%s is accepted',
    async (_route, operation) => {
      const example = examples[operation.name];
      expect(example, `rest/operations/examples.json has no "${operation.name}"`).toBeDefined();
      const body = await filled(operation, world);
      const parts = {
        ...partsOf(operation, world, { token: callers[operation.name] ?? world.accounts.owner.accessToken }),
        body,
      };
      await expectExample(operation, parts);
    },
  );
});

/** Sends a request that succeeds. The document shows its answer, or one with the same fields. */
async function expectExample(operation: CompiledOperation, parts: Parts): Promise<void> {
  const answer = await app.server.inject(injectable(operation, parts));
  const isRedirect = answer.statusCode === 303 && operation.response.redirect !== null;
  expect([answer.statusCode, answer.statusCode === operation.status || isRedirect ? '' : answer.body]).toEqual([
    isRedirect ? 303 : operation.status,
    '',
  ]);
  if (isRedirect || operation.response.kind !== 'value') return;
  const body: unknown = answer.json();
  if (isRecording) keepAnswer(operation.name, body, world.marker);
  expect(recordedAnswer(operation.name), 'npm run examples:record').toBeDefined();
  expect(fieldsOf(recordedAnswer(operation.name)), 'npm run examples:record').toEqual(fieldsOf(body));
}

/** Names of the fields of an answer, or of the first item of a list. */
function fieldsOf(body: unknown): string[] {
  const [first] = [body].flat();
  return typeof first === 'object' && first !== null ? Object.keys(first) : [typeof first];
}

describe('a change without a body is shown:', () => {
  test.each(
    withoutBody.filter(({ method }) => method !== 'GET').map((operation) => [routeOf(operation), operation] as const),
  )('%s', async (_route, operation) => {
    const parts = await expendable(app, world, operation, 'owner');
    await prepared[routeOf(operation)]?.(app, world, parts);
    await expectExample(operation, parts);
  });
});
