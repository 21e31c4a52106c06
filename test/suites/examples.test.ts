import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readReference } from '../../rest/reference.ts';
import { systemCaller } from '../../src/access/system-caller.ts';
import { operationsDir } from '../../src/paths.ts';
import { samlAnswer, samlCompany } from '../sso/companies.ts';
import { newIdpKey } from '../sso/saml-idp.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { operations, routeOf } from '../support/operations.ts';
import { platformAdmin, register, signIn } from '../support/person.ts';
import { expectOk, injectable, partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

const { examples, groups } = readReference(operationsDir, operations);

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  callers.UpdateOrganizationStorage = (await platformAdmin(app)).accessToken;
});
afterAll(() => app.close());

/** The token of the link in the newest mail to somebody. */
async function mailed(to: string): Promise<string> {
  await app.jobsDone();
  return new URL(/https?:\S+/.exec(app.mails.findLast((mail) => mail.to === to)!.text)![0]).searchParams.get('token')!;
}

/** Access tokens of operations that the owner of the world cannot call. */
const callers: Record<string, string> = {};

const idpKey = newIdpKey();
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
  sso_email: async () => `sam@${(await samlCompany(app, idpKey)).domain}`,
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
    return app.services.federatedSignIn.signInForCode(provider, identity, systemCaller('test'));
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

/** The example with what exists in the place of its placeholders. */
async function filled(example: unknown, world: World): Promise<unknown> {
  let text = JSON.stringify(example);
  for (const [placeholder, name = ''] of text.matchAll(/\{([a-z_]+)\}/g))
    text = text.replace(placeholder, (await placeholders[name]?.(world)) ?? world.ids[name]!);
  return JSON.parse(text) as unknown;
}

const withBody = operations.filter(({ body }) => body !== null);

test('every file of documents has a group with a sentence', () => {
  expect(groups.filter(({ description }) => !description)).toEqual([]);
});

describe('the example of', () => {
  test.each(withBody.map((operation) => [routeOf(operation), operation] as const))(
    '%s is accepted',
    async (_route, operation) => {
      const example = examples[operation.name];
      expect(example, `rest/operations/examples.json has no "${operation.name}"`).toBeDefined();
      const body = await filled(example, world);
      const parts = {
        ...partsOf(operation, world, { token: callers[operation.name] ?? world.accounts.owner.accessToken }),
        body,
      };
      const answer = await app.server.inject(injectable(operation, parts));
      expect([answer.statusCode, answer.statusCode === operation.status ? '' : answer.body]).toEqual([
        operation.status,
        '',
      ]);
    },
  );
});
