import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { TestApp } from '../app.ts';
import { addToWorkspace, caller, createUser, type Person, platformAdmin, register, signIn } from '../person.ts';
import { expectOk } from '../requests.ts';
import { issueToken } from '../tokens.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

const newPassword = () => `a password ${randomBytes(9).toString('hex')}`;
const newName = () => `n${randomBytes(9).toString('hex')}`;

/** The token in the newest mail to an address. */
export async function mailedToken(app: TestApp, address: string, subject: RegExp): Promise<string> {
  await app.jobsDone();
  const mail = app.mails.findLast((sent) => sent.to === address && subject.test(sent.subject));
  const token = mail?.link && new URL(mail.link).searchParams.get('token');
  if (!token) throw new Error(`${address} was mailed no link by a mail with the subject ${subject}.`);
  return token;
}

async function isMailed({ app }: Lab, address: string, subject: RegExp): Promise<boolean> {
  await app.jobsDone();
  return app.mails.some((sent) => sent.to === address && subject.test(sent.subject));
}

const status = async (app: TestApp, authorization: string): Promise<number> =>
  (await app.server.inject({ url: '/v1/users/me', headers: { authorization } })).statusCode;

const canSignIn = async (app: TestApp, username: string, password: string): Promise<boolean> => {
  const payload = { username, password };
  return (await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload })).statusCode === 200;
};

async function invited({ app, world }: Lab): Promise<{ person: Person; token: string }> {
  const person = await register(app);
  const url = `/v1/orgs/${world.ids.org_id}/invitations`;
  await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { email: person.email } });
  return { person, token: await mailedToken(app, person.email, /invit/i) };
}

/** An account with a proven address: the first proof ends the tokens that were made before it. */
async function verified({ app }: Lab): Promise<Person> {
  const person = await register(app);
  const token = await mailedToken(app, person.email, /Confirm/);
  await mutateOk(app, 'verifyEmail', { input: { token } }, null);
  return person;
}

async function resetMailed(lab: Lab): Promise<{ person: Person; token: string }> {
  const { app } = lab;
  const person = await verified(lab);
  await expectOk(app, { method: 'POST', url: '/v1/auth/forgot-password', payload: { email: person.email } });
  return { person, token: await mailedToken(app, person.email, /Reset/) };
}

/** Whether the API tokens of an account are revoked if, and only if, the change of its password says so. */
async function revokesTokens(
  lab: Lab,
  change: (person: Person, isRevoking: boolean) => Promise<unknown>,
  make: () => Promise<Person>,
): Promise<void> {
  for (const isRevoking of [false, true]) {
    const person = await make();
    const token = await issueToken(lab.app, person, { scopes: ['read'] });
    await change(person, isRevoking);
    expect(await status(lab.app, token.headers.authorization)).toBe(isRevoking ? 401 : 200);
  }
}

/** The password that an account is made with signs it in, and no other one. */
const signsIn =
  (mutation: string) =>
  async ({ app, world }: Lab): Promise<void> => {
    const [username, password] = [newName(), newPassword()];
    const input = { username, password, email: `${username}@example.test` };
    await mutateOk(app, mutation, { input }, world.accounts.owner.accessToken);
    expect(await canSignIn(app, username, password)).toBe(true);
    expect(await canSignIn(app, username, newPassword())).toBe(false);
  };

const TOKEN_VARIANTS = ({ world }: Lab) => {
  const { workspace_id, namespace_id, environment_id } = world.ids;
  const without = { 'input.workspaceIds': leftOut, 'input.endpointPaths': leftOut };
  return [
    {},
    { 'input.expiresInDays': leftOut, 'input.expiresAt': new Date(Date.now() + 9 * 86_400_000).toISOString() },
    { ...without, 'input.workspaceIds': [workspace_id], 'input.namespaceIds': [namespace_id] },
    { ...without, 'input.workspaceIds': [workspace_id], 'input.environmentIds': [environment_id] },
  ];
};

const expiresInDays = (read: unknown, days: unknown): boolean => {
  const { token } = read as { token: { issuedAt: string; expiresAt: string } };
  const life = Date.parse(token.expiresAt) - Date.parse(token.issuedAt);
  return Math.abs(life - (days as number) * 86_400_000) < 60_000;
};

const scimTokenEndsIn = (read: unknown, days: unknown): boolean => {
  const { scimToken } = read as { scimToken: { createdAt: string; expiresAt: string } };
  const life = Date.parse(scimToken.expiresAt) - Date.parse(scimToken.createdAt);
  return Math.abs(life - (days as number) * 86_400_000) < 60_000;
};

const newTokenCase: InputCase = {
  variants: TOKEN_VARIANTS,
  readAs: { 'input.expiresInDays': expiresInDays },
};

/** Accounts, members, invitations and API tokens. */
export const accountCases: Readonly<Record<string, InputCase>> = {
  updateOrganizationStorage: {
    prepare: async ({ app }) => ({ given: {}, token: (await platformAdmin(app)).accessToken }),
  },
  acceptInvitation: {
    prepare: async (lab) => {
      const { person, token } = await invited(lab);
      return { given: { input: { token } }, token: person.accessToken };
    },
    demands: { 'input.token': 'nobody-was-mailed-this-token' },
  },
  addOrganizationMember: {
    prepare: async ({ app }) => ({ given: { input: { userId: (await register(app)).userId } } }),
  },
  addWorkspaceMember: {
    prepare: async ({ app, world }) => ({
      given: { input: { userId: (await createUser(app, world.accounts.owner)).userId } },
    }),
  },
  changePassword: {
    prepare: async ({ app }) => {
      const person = await register(app);
      const input = { currentPassword: person.password, newPassword: newPassword() };
      return { given: { input }, token: person.accessToken };
    },
    demands: { 'input.currentPassword': 'not the current password' },
    effects: {
      'input.newPassword': async ({ app }) => {
        const person = await register(app);
        const input = { currentPassword: person.password, newPassword: newPassword() };
        await mutateOk(app, 'changePassword', { input }, person.accessToken);
        expect(await canSignIn(app, person.username, input.newPassword)).toBe(true);
        expect(await canSignIn(app, person.username, person.password)).toBe(false);
      },
      'input.revokeTokens': (lab) => {
        const change = ({ password, accessToken }: Person, revokeTokens: boolean) => {
          const input = { currentPassword: password, newPassword: newPassword(), revokeTokens };
          return mutateOk(lab.app, 'changePassword', { input }, accessToken);
        };
        return revokesTokens(lab, change, () => register(lab.app));
      },
    },
  },
  createScimToken: { readAs: { 'input.expiresInDays': scimTokenEndsIn } },
  createApiToken: newTokenCase,
  createAppToken: newTokenCase,
  createUser: {
    effects: {
      'input.password': signsIn('createUser'),
      'input.role': async ({ app, world }) => {
        const { orgId, accessToken, userId } = world.accounts.owner;
        for (const role of ['viewer', 'editor']) {
          const username = newName();
          const input = { username, password: newPassword(), email: `${username}@example.test`, role };
          await mutateOk(app, 'createUser', { input }, accessToken);
          const url = `/v1/orgs/${orgId}/members?limit=200`;
          const { members } = await expectOk<{ members: { username: string; role: string; user_id: string }[] }>(app, {
            url,
            headers: world.as('owner'),
          });
          expect(members.find((member) => member.username === username)).toMatchObject({ role });
          expect(members.find(({ user_id }) => user_id === userId)).toMatchObject({ role: 'owner' });
        }
      },
    },
  },
  deleteOrganization: {
    prepare: async ({ app, world }) => {
      const payload = { name: 'Another one' };
      const headers = world.as('owner');
      const made = await expectOk<{ org_id: string }>(app, { method: 'POST', url: '/v1/orgs', headers, payload });
      return { given: { id: made.org_id } };
    },
  },
  forgotPassword: {
    effects: {
      'input.email': async (lab) => {
        const [asked, other] = [await register(lab.app), await register(lab.app)];
        await mutateOk(lab.app, 'forgotPassword', { input: { email: asked.email } }, null);
        expect(await isMailed(lab, asked.email, /Reset/)).toBe(true);
        expect(await isMailed(lab, other.email, /Reset/)).toBe(false);
      },
    },
  },
  login: {
    prepare: async ({ app }) => {
      const { username, password } = await register(app);
      return { given: { input: { username, password } }, token: null };
    },
    demands: { 'input.username': 'nobody-has-this-name', 'input.password': 'not the password' },
  },
  refresh: {
    prepare: async ({ app, world }) => {
      const { refreshToken } = await signIn(app, world.accounts.member);
      return { given: { input: { refreshToken } }, token: null };
    },
    demands: { 'input.refreshToken': 'nobody-was-given-this-token' },
  },
  refreshApiToken: {
    prepare: async ({ app, world }) => {
      const made = await issueToken(app, caller(app, world.accounts.owner));
      return { given: { input: { refreshToken: made.refresh_token_plaintext } } };
    },
    demands: { 'input.refreshToken': 'nobody-was-given-this-token' },
    effects: {
      'input.gracePeriodSeconds': async ({ app, world }) => {
        const owner = caller(app, world.accounts.owner);
        for (const gracePeriodSeconds of [0, 60]) {
          const made = await issueToken(app, owner, { scopes: ['read'] });
          const input = { refreshToken: made.refresh_token_plaintext, gracePeriodSeconds };
          await mutateOk(app, 'refreshApiToken', { orgId: owner.orgId, input }, owner.accessToken);
          expect(await status(app, made.headers.authorization)).toBe(gracePeriodSeconds === 0 ? 401 : 200);
        }
      },
    },
  },
  register: {
    effects: {
      'input.password': signsIn('register'),
      'input.inviteToken': async (lab) => {
        const { world, app } = lab;
        const email = `${newName()}@example.test`;
        const url = `/v1/orgs/${world.ids.org_id}/invitations`;
        await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { email } });
        const inviteToken = await mailedToken(app, email, /invit/i);
        const input = { username: newName(), password: newPassword(), email, inviteToken };
        const { accessToken } = (await mutateOk(app, 'register', { input }, null)) as { accessToken: string };
        const headers = { authorization: `Bearer ${accessToken}` };
        const answer = await app.server.inject({ url: `/v1/orgs/${world.ids.org_id}`, headers });
        expect(answer.statusCode, 'who was invited belongs to the organization').toBe(200);
      },
    },
  },
  resendVerification: {
    effects: {
      'input.email': async (lab) => {
        const [asked, other] = [await register(lab.app), await register(lab.app)];
        await lab.app.jobsDone();
        const from = lab.app.mails.length;
        await mutateOk(lab.app, 'resendVerification', { input: { email: asked.email } }, null);
        await lab.app.jobsDone();
        const sent = lab.app.mails.slice(from).map(({ to }) => to);
        expect(sent).toContain(asked.email);
        expect(sent).not.toContain(other.email);
      },
    },
  },
  resetPassword: {
    prepare: async (lab) => ({
      given: { input: { token: (await resetMailed(lab)).token, newPassword: newPassword() } },
      token: null,
    }),
    demands: { 'input.token': 'nobody-was-mailed-this-token' },
    effects: {
      'input.newPassword': async (lab) => {
        const { person, token } = await resetMailed(lab);
        const input = { token, newPassword: newPassword() };
        await mutateOk(lab.app, 'resetPassword', { input }, null);
        expect(await canSignIn(lab.app, person.username, input.newPassword)).toBe(true);
        expect(await canSignIn(lab.app, person.username, person.password)).toBe(false);
      },
      'input.revokeTokens': async (lab) => {
        const tokens = new Map<Person, string>();
        const change = (person: Person, revokeTokens: boolean) => {
          const input = { token: tokens.get(person), newPassword: newPassword(), revokeTokens };
          return mutateOk(lab.app, 'resetPassword', { input }, null);
        };
        await revokesTokens(lab, change, async () => {
          const { person, token } = await resetMailed(lab);
          tokens.set(person, token);
          return person;
        });
      },
    },
  },
  switchOrganization: {
    prepare: async ({ app }) => {
      const { headers, accessToken } = await register(app);
      const payload = { name: 'Another one' };
      const made = await expectOk<{ org_id: string }>(app, { method: 'POST', url: '/v1/orgs', headers, payload });
      return { given: { input: { orgId: made.org_id } }, token: accessToken };
    },
  },
  updateNotificationPreferences: { variants: () => [{ 'input.mutedCategories': ['member'] }] },
  updateUser: {
    prepare: async ({ app, world }) => {
      const { userId } = await createUser(app, world.accounts.owner);
      await addToWorkspace(app, world.accounts.owner, userId);
      return { given: { id: userId } };
    },
    variants: () => [{ 'input.isActive': false }],
    effects: {
      'input.email': async (lab) => {
        const person = await register(lab.app);
        const email = `${newName()}@example.test`;
        const given = { id: person.userId, input: { email, currentPassword: person.password } };
        await mutateOk(lab.app, 'updateUser', given, person.accessToken);
        const token = await mailedToken(lab.app, email, /./);
        await mutateOk(lab.app, 'verifyEmail', { input: { token } }, null);
        const me = await expectOk(lab.app, { url: '/v1/users/me', headers: person.headers });
        expect(me.email).toBe(email);
      },
      'input.currentPassword': async ({ app }) => {
        const person = await register(app);
        const given = (currentPassword: string) => ({
          id: person.userId,
          input: { email: `${newName()}@example.test`, currentPassword },
        });
        await expect(mutateOk(app, 'updateUser', given('not it'), person.accessToken)).rejects.toThrow();
        await mutateOk(app, 'updateUser', given(person.password), person.accessToken);
      },
    },
  },
  verifyEmail: {
    prepare: async ({ app }) => {
      const person = await register(app);
      return { given: { input: { token: await mailedToken(app, person.email, /Confirm/) } }, token: null };
    },
    demands: { 'input.token': 'nobody-was-mailed-this-token' },
  },
};
