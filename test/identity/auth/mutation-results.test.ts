import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register, registerProven } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** What nobody in particular gets. */
const ask = async (mutation: string, input: object, type: string) =>
  (await callsOf(app).graphql(`mutation ($input: ${type}!) { ${mutation} }`, { input })).json<unknown>();

async function tokenOf({ email }: Person, subject: string): Promise<string> {
  await app.jobsDone();
  const { link } = app.mails.findLast((mail) => mail.to === email && mail.subject === subject)!;
  return new URL(link!).searchParams.get('token')!;
}

it('whoever proves an address learns whose it is, and whoever sets a password too, but no more', async () => {
  const user = await register(app);
  const proof = { token: await tokenOf(user, 'Confirm your e-mail address') };
  expect(await ask('verifyEmail(input: $input) { userId email }', proof, 'TokenInput')).toEqual({
    data: { verifyEmail: { userId: user.userId, email: user.email } },
  });
  await ask('forgotPassword(input: $input) { email }', { email: user.email }, 'EmailInput');
  const reset = { token: await tokenOf(user, 'Reset your password'), newPassword: 'a whole new password' };
  expect(await ask('resetPassword(input: $input) { userId }', reset, 'ResetPasswordInput')).toEqual({
    data: { resetPassword: { userId: user.userId } },
  });
});

it.each(['forgotPassword', 'resendVerification'])(
  '%s says the same whether there is an account or not',
  async (name) => {
    const { email } = await register(app);
    for (const address of [email, `nobody-${email}`])
      expect(await ask(`${name}(input: $input) { email }`, { email: address }, 'EmailInput')).toEqual({
        data: { [name]: { email: address } },
      });
  },
);

it('a logout names the session that it ended', async () => {
  const user = await register(app);
  const claims = Buffer.from(user.accessToken.split('.')[1]!, 'base64url').toString();
  const { sid } = JSON.parse(claims) as { sid: string };
  expect(await user.ask('mutation { logout { sessionId } }')).toEqual({ data: { logout: { sessionId: sid } } });
  expect((await user.call('GET', '/v1/auth/me')).status).toBe(401);
});

it('what is revoked is returned as it is then', async () => {
  const ann = await registerProven(app);
  const { orgId } = ann;
  const token = await issueToken(app, ann);
  const place = { orgId, id: token.id };
  const revoke = `mutation ($orgId: ID!, $id: ID!) {
    it: revokeApiToken(orgId: $orgId, id: $id) { id revokedReason resourceVersion organization { id } } }`;
  expect(await ann.ask(revoke, place)).toEqual({
    data: {
      it: { id: token.id, revokedReason: 'revoked_by_user', resourceVersion: 2, organization: { id: orgId } },
    },
  });
  const { body } = await ann.call<{ invitation_id: string }>('POST', `/v1/orgs/${orgId}/invitations`, {
    email: `guest-${ann.email}`,
    role: 'viewer',
  });
  const end = `mutation ($orgId: ID!, $id: ID!) { it: revokeInvitation(orgId: $orgId, id: $id) { id status } }`;
  expect(await ann.ask(end, { orgId, id: body.invitation_id })).toEqual({
    data: { it: { id: body.invitation_id, status: 'revoked' } },
  });
});

it('a token that revokes itself gets itself back', async () => {
  const ann = await register(app);
  const { id, headers } = await issueToken(app, ann, { permissions: ['api_token:revoke'] });
  const revoke = `mutation ($orgId: ID!, $id: ID!) { it: revokeApiToken(orgId: $orgId, id: $id) { id revokedReason } }`;
  const answer = await callsOf(app).graphql(revoke, { orgId: ann.orgId, id }, headers);
  expect(answer.json()).toEqual({ data: { it: { id, revokedReason: 'revoked_by_user' } } });
});
