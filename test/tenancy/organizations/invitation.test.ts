import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { InvitationFragment } from '../../../rest/generated/documents.ts';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { dated } from '../../support/dated.ts';
import {
  changesOf,
  colleague,
  eventsOf,
  PASSWORD,
  type Person,
  prove,
  register,
  registerProven,
} from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Invitation = RestBody<InvitationFragment>;

/** The token of the newest mail to an address, once it was sent. */
async function mailedToken(to: string): Promise<string> {
  await app.jobsDone();
  const token = new URL(app.mails.findLast((mail) => mail.to === to)?.link ?? 'http://no.mail/').searchParams.get(
    'token',
  );
  if (!token) throw new Error(`No link was mailed to ${to}.`);
  return token;
}

async function invite(
  owner: Person,
  payload: { email: string; [field: string]: unknown },
): Promise<Invitation & { token: string; url: string }> {
  const { status, body } = await owner.call<Invitation>('POST', `/v1/orgs/${owner.orgId}/invitations`, payload);
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  return {
    ...body,
    token: await mailedToken(payload.email),
    url: `/v1/orgs/${owner.orgId}/invitations/${body.invitation_id}`,
  };
}

const registerInvited = (username: string, email: string, invite_token: string) =>
  app.server.inject({
    method: 'POST',
    url: '/v1/auth/register',
    payload: { username, email, password: PASSWORD, invite_token },
  });

test('mails a link, keeps only the hash of its token, and never shows it', async () => {
  const ann = await registerProven(app, { name: 'ann' });
  const url = `/v1/orgs/${ann.orgId}/invitations`;
  const made = await dated(() => ann.call<Invitation>('POST', url, { email: 'New@Example.test' }));
  const { status, body } = made.result;
  expect(status).toBe(201);
  expect(body).toEqual({
    invitation_id: expect.stringMatching(/^inv_/),
    org_id: ann.orgId,
    email: 'New@Example.test',
    role: 'member',
    workspace_id: null,
    workspace_role: null,
    status: 'pending',
    invited_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
    expires_at: expect.any(String),
    accepted_at: null,
    accepted_by: null,
  });
  made.expectAfter(7 * 86_400_000, body.expires_at as string);
  const token = await mailedToken('New@Example.test');
  const row = await app.database.prisma.invitation.findUniqueOrThrow({ where: { id: body.invitation_id } });
  expect(row.tokenHash).toMatch(/^[0-9a-f]{64}$/);
  expect(JSON.stringify([row, body])).not.toContain(token);
  expect((await ann.call('GET', `/v1/orgs/${ann.orgId}/invitations/${body.invitation_id}`)).body).toEqual(body);
  expect(await eventsOf(app, body.invitation_id)).toEqual(['invitation.created']);
  expect(await changesOf(app, body.invitation_id)).toMatchObject([
    { action: 'create', resourceType: 'invitation', orgId: ann.orgId, userId: ann.userId, statusCode: 201 },
  ]);
});

test('a new user registers with the link and joins organization and workspace with the invited roles', async () => {
  const ann = await registerProven(app, { name: 'ann' });
  const invitation = await invite(ann, {
    email: 'zoe@example.test',
    role: 'editor',
    workspace_id: ann.workspaceId,
    workspace_role: 'viewer',
  });
  expect((await app.server.inject(`/v1/auth/invite-info?token=${invitation.token}`)).json()).toEqual({
    email: 'zoe@example.test',
    valid: true,
  });
  expect((await registerInvited('zoe-x', 'somebody.else@example.test', invitation.token)).statusCode).toBe(422);
  const registered = await registerInvited('zoe', 'ZOE@example.test', invitation.token);
  expect(registered.statusCode).toBe(201);
  const { user } = registered.json();
  expect(user).toMatchObject({
    is_verified: true,
    default_workspace_id: ann.workspaceId,
    settings: { current_org_id: ann.orgId },
  });
  const members = await ann.call<{ members: object[] }>('GET', `/v1/orgs/${ann.orgId}/members`);
  expect(members.body.members).toMatchObject([{ user_id: ann.userId }, { user_id: user.user_id, role: 'editor' }]);
  const inside = await ann.call<{ members: object[] }>('GET', `${ann.home}/members`);
  expect(inside.body.members).toMatchObject([
    { user_id: ann.userId },
    { user_id: user.user_id, role: 'viewer', added_by: ann.userId },
  ]);
  expect((await ann.call('GET', invitation.url)).body).toMatchObject({
    status: 'accepted',
    accepted_by: user.user_id,
    accepted_at: expect.any(String),
  });
  expect((await registerInvited('zoe-again', 'zoe@example.test', invitation.token)).statusCode).toBe(422);
  expect((await app.server.inject(`/v1/auth/invite-info?token=${invitation.token}`)).json()).toEqual({
    email: '',
    valid: false,
  });
});

test('an existing user accepts with the link, once; the link of another address is refused', async () => {
  const [ann, bob, eve] = [
    await registerProven(app, { name: 'ann' }),
    await registerProven(app, { name: 'bob' }),
    await registerProven(app, { name: 'eve' }),
  ];
  const { token, url } = await invite(ann, { email: bob.email.toUpperCase(), role: 'admin' });
  const accept = (who: Person) => who.call('POST', '/v1/invitations/accept', { token });
  const refused = await accept(eve);
  expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'token'], input: '[redacted]' }] } });
  expect(JSON.stringify(refused.body)).not.toContain(token);
  expect(await accept(bob)).toMatchObject({ status: 200, body: { org_id: ann.orgId, role: 'admin' } });
  expect((await bob.call('GET', url)).body).toMatchObject({ status: 'accepted', accepted_by: bob.userId });
  expect(await accept(bob)).toMatchObject({ status: 422 });
  expect(
    (await app.server.inject({ method: 'POST', url: '/v1/invitations/accept', payload: { token } })).statusCode,
  ).toBe(401);
});

test('of many acceptances at once one wins', async () => {
  const [ann, bob] = [await registerProven(app, { name: 'ann' }), await registerProven(app, { name: 'bob' })];
  const { token, invitation_id } = await invite(ann, { email: bob.email });
  const statuses = await Promise.all(
    Array.from({ length: 8 }, async () => (await bob.call('POST', '/v1/invitations/accept', { token })).status),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 422)).toHaveLength(7);
  expect((await eventsOf(app, invitation_id)).filter((type) => type === 'invitation.accepted')).toHaveLength(1);
});

test('sending it again kills the old link and keeps the invitation pending', async () => {
  const [ann, bob] = [await registerProven(app, { name: 'ann' }), await registerProven(app, { name: 'bob' })];
  const { token, url, invitation_id } = await invite(ann, { email: bob.email });
  expect(await ann.call('POST', `${url}/resend`)).toMatchObject({
    status: 200,
    body: { invitation_id, status: 'pending' },
  });
  const fresh = await mailedToken(bob.email);
  expect(fresh).not.toBe(token);
  expect((await bob.call('POST', '/v1/invitations/accept', { token })).status).toBe(422);
  expect((await bob.call('POST', '/v1/invitations/accept', { token: fresh })).status).toBe(200);
  expect(await ann.call('POST', `${url}/resend`)).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_CONFLICT', details: { reason: 'already_accepted' } },
  });
});

test('a revoked invitation and an expired one are dead, and the address can be invited again', async () => {
  const [ann, bob] = [await registerProven(app, { name: 'ann' }), await registerProven(app, { name: 'bob' })];
  const first = await invite(ann, { email: bob.email });
  expect(await ann.call('DELETE', first.url)).toEqual({ status: 204, body: null });
  expect((await bob.call('POST', '/v1/invitations/accept', { token: first.token })).status).toBe(422);
  expect(await ann.call('DELETE', first.url)).toMatchObject({
    status: 409,
    body: { details: { resource_type: 'invitation', reason: 'already_revoked' } },
  });
  expect(await eventsOf(app, first.invitation_id)).toEqual(['invitation.created', 'invitation.revoked']);

  const second = await invite(ann, { email: bob.email });
  await app.database.prisma.invitation.update({
    where: { id: second.invitation_id },
    data: { expiresAt: new Date(Date.now() - 1_000) },
  });
  expect((await ann.call('GET', second.url)).body).toMatchObject({ status: 'expired' });
  expect((await bob.call('POST', '/v1/invitations/accept', { token: second.token })).status).toBe(422);
  expect(await ann.call('POST', `${second.url}/resend`)).toMatchObject({
    status: 409,
    body: { details: { reason: 'expired' } },
  });

  const third = await invite(ann, { email: bob.email });
  const list = async (status: string) =>
    (
      await ann.call<{ total: number; invitations: Invitation[] }>(
        'GET',
        `/v1/orgs/${ann.orgId}/invitations?status=${status}`,
      )
    ).body.invitations.map((i) => i.invitation_id);
  expect([await list('pending'), await list('revoked'), await list('expired'), await list('accepted')]).toEqual([
    [third.invitation_id],
    [first.invitation_id],
    [second.invitation_id],
    [],
  ]);
  expect((await ann.call('GET', `/v1/orgs/${ann.orgId}/invitations?status=lost`)).status).toBe(422);
});

test('an address has one pending invitation per organization, whatever its case; members are not invited', async () => {
  const [ann, bob] = [await registerProven(app, { name: 'ann' }), await registerProven(app, { name: 'bob' })];
  const url = `/v1/orgs/${ann.orgId}/invitations`;
  const outcomes = await Promise.all(
    ['twin@example.test', 'TWIN@example.test'].map((email) => ann.call<Invitation>('POST', url, { email })),
  );
  expect(outcomes.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409]);
  const [made, refused] = outcomes.sort((a, b) => a.status - b.status) as [(typeof outcomes)[0], (typeof outcomes)[0]];
  expect(refused.body).toMatchObject({
    error: 'RESOURCE_ALREADY_EXISTS',
    details: { resource_type: 'invitation', field: 'email', resource_id: made.body.invitation_id },
  });
  expect((await bob.call('POST', `/v1/orgs/${bob.orgId}/invitations`, { email: 'twin@example.test' })).status).toBe(
    201,
  );
  expect(await ann.call('POST', url, { email: ann.email })).toMatchObject({
    status: 409,
    body: { details: { resource_type: 'organization_member', field: 'email', resource_id: ann.userId } },
  });
});

test('an address gets at most three mails an hour; the administrator is told', async () => {
  const ann = await registerProven(app, { name: 'ann' });
  const { url } = await invite(ann, { email: 'flood@example.test' });
  expect((await ann.call('POST', `${url}/resend`)).status).toBe(200);
  expect((await ann.call('POST', `${url}/resend`)).status).toBe(200);
  await app.jobsDone();
  const mails = app.mails.length;
  expect(await ann.call('POST', `${url}/resend`)).toMatchObject({
    status: 429,
    body: { error: 'RATE_LIMIT_EXCEEDED' },
  });
  await app.jobsDone();
  expect(app.mails).toHaveLength(mails);
});

async function provenColleague(owner: Person, role: Role): Promise<Person> {
  const somebody = await colleague(app, owner, role);
  await prove(app, [somebody]);
  return somebody;
}

test('roles: administrators invite, never above their own role, into workspaces of the organization only', async () => {
  const owner = await registerProven(app, { name: 'owner' });
  const stranger = await registerProven(app, { name: 'stranger' });
  const url = `/v1/orgs/${owner.orgId}/invitations`;
  const asOwner = await invite(owner, { email: 'boss@example.test', role: 'owner' });
  for (const role of ['viewer', 'member', 'editor'] as const) {
    const somebody = await colleague(app, owner, role);
    expect(await somebody.call('GET', url)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'invitation:read' } },
    });
    expect(await somebody.call('POST', url, { email: 'x@example.test' })).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'invitation:create' } },
    });
    expect((await somebody.call('POST', `${asOwner.url}/resend`)).status).toBe(403);
    expect((await somebody.call('DELETE', asOwner.url)).status).toBe(403);
  }
  const admin = await provenColleague(owner, 'admin');
  expect((await admin.call('POST', url, { email: 'x@example.test', role: 'owner' })).status).toBe(403);
  expect((await admin.call('POST', `${asOwner.url}/resend`)).status).toBe(403);
  expect((await admin.call('DELETE', asOwner.url)).status).toBe(403);
  expect(await admin.call('POST', url, { email: 'x@example.test', workspace_id: stranger.workspaceId })).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'workspace' } },
  });
  expect(await admin.call('POST', url, { email: 'x@example.test', workspace_role: 'viewer' })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ['body', 'workspace_role'] }] },
  });
  expect(await admin.call('POST', url, { email: 'x@example.test', role: 'admin' })).toMatchObject({ status: 201 });
  expect((await stranger.call('GET', asOwner.url)).status).toBe(403);
  expect(await stranger.call('GET', `/v1/orgs/${stranger.orgId}/invitations/${asOwner.invitation_id}`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'invitation' } },
  });
});

/** The link of a dead invitation opens nothing, for whomever it was meant. */
async function expectDead(newcomer: { token: string }, existing: Person, theirs: { token: string }): Promise<void> {
  for (const { token } of [newcomer, theirs])
    expect((await app.server.inject(`/v1/auth/invite-info?token=${token}`)).json()).toEqual({
      email: '',
      valid: false,
    });
  const email = `newcomer-of-${existing.username}@example.test`;
  expect((await registerInvited(`newcomer-of-${existing.username}`, email, newcomer.token)).statusCode).toBe(422);
  expect(await app.database.prisma.user.count({ where: { emailKey: email } })).toBe(0);
  expect((await existing.call('POST', '/v1/invitations/accept', { token: theirs.token })).status).toBe(422);
}

test.each<[how: string, end: (founder: Person, author: Person) => Promise<{ status: number }>]>([
  ['is removed', (founder, { userId }) => founder.call('DELETE', `/v1/orgs/${founder.orgId}/members/${userId}`)],
  [
    'becomes a plain member',
    (founder, { userId }) => founder.call('PATCH', `/v1/orgs/${founder.orgId}/members/${userId}`, { role: 'member' }),
  ],
  [
    'may no longer give the role',
    (founder, { userId }) => founder.call('PATCH', `/v1/orgs/${founder.orgId}/members/${userId}`, { role: 'admin' }),
  ],
])('an invitation dies when its author %s', async (_how, end) => {
  const founder = await registerProven(app, { name: 'founder' });
  const author = await provenColleague(founder, 'owner');
  const bob = await registerProven(app, { name: 'bob' });
  const asAuthor = { ...author, orgId: founder.orgId };
  const forNewcomer = await invite(asAuthor, { email: `newcomer-of-${bob.username}@example.test`, role: 'owner' });
  const forBob = await invite(asAuthor, { email: bob.email, role: 'owner' });
  expect((await app.server.inject(`/v1/auth/invite-info?token=${forBob.token}`)).json()).toMatchObject({ valid: true });
  expect((await end(founder, author)).status).toBeLessThan(300);
  await expectDead(forNewcomer, bob, forBob);
});

test('an invitation dies when its author is deactivated', async () => {
  const founder = await registerProven(app, { name: 'founder' });
  const author = await provenColleague(founder, 'owner');
  const bob = await registerProven(app, { name: 'bob' });
  const { token } = await invite({ ...author, orgId: founder.orgId }, { email: bob.email });
  // the last owner of nothing may leave
  expect((await author.call('DELETE', `/v1/orgs/${author.orgId}`)).status).toBe(204);
  expect((await author.call('DELETE', `/v1/users/${author.userId}`)).status).toBe(204);
  expect((await bob.call('POST', '/v1/invitations/accept', { token })).status).toBe(422);
});

test('an invitation into a workspace dies when its author may no longer give the role there', async () => {
  const founder = await registerProven(app, { name: 'founder' });
  const author = await provenColleague(founder, 'admin');
  const member = `${founder.home}/members/${author.userId}`;
  expect((await founder.call('PATCH', member, { role: 'owner' })).status).toBe(200);
  const bob = await registerProven(app, { name: 'bob' });
  const { token } = await invite(
    { ...author, orgId: founder.orgId },
    { email: bob.email, workspace_id: founder.workspaceId, workspace_role: 'owner' },
  );
  expect((await founder.call('PATCH', member, { role: 'member' })).status).toBe(200);
  expect((await app.server.inject(`/v1/auth/invite-info?token=${token}`)).json()).toEqual({ email: '', valid: false });
  expect((await bob.call('POST', '/v1/invitations/accept', { token })).status).toBe(422);
});

test('the mails of one organization to an address do not use up those of another', async () => {
  const [ann, bob] = [await registerProven(app, { name: 'ann' }), await registerProven(app, { name: 'bob' })];
  const { url } = await invite(ann, { email: 'wanted@example.test' });
  expect((await ann.call('POST', `${url}/resend`)).status).toBe(200);
  expect((await ann.call('POST', `${url}/resend`)).status).toBe(200);
  expect((await ann.call('POST', `${url}/resend`)).status).toBe(429);
  const theirs = await invite(bob, { email: 'WANTED@example.test' });
  expect((await bob.call('POST', `${theirs.url}/resend`)).status).toBe(200);
});

test('who has not proven an address invites nobody, and can as soon as it is proven', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = `/v1/orgs/${ann.orgId}/invitations`;
  const email = `of-${ann.username}@example.test`;
  const refused = {
    status: 403,
    body: {
      message: 'Confirm the e-mail address of your account before you invite others.',
      details: { required_permission: 'invitation:create' },
    },
  };
  expect(await ann.call('POST', url, { email })).toMatchObject(refused);
  const byGraphQL = await ann.ask(
    'mutation ($org: ID!, $email: String!) { createInvitation(orgId: $org, input: { email: $email }) { id } }',
    { org: ann.orgId, email },
  );
  expect(byGraphQL.errors?.[0]?.extensions.code).toBe('FORBIDDEN');
  await prove(app, [ann]);
  const { body } = await ann.call<{ invitation_id: string }>('POST', url, { email });
  await app.database.pool.query('update users set is_verified = false where id = $1', [ann.userId]);
  app.services.authentication.sessionsChanged();
  expect((await ann.call('POST', `${url}/${body.invitation_id}/resend`)).status).toBe(403);
  await app.jobsDone();
  expect(app.mails.filter(({ to }) => to === email)).toHaveLength(1);
});

/** A node for one test: one that stays would take jobs of the next test, and keep the mails. */
async function anotherNode(mailsPerHour: string): Promise<TestApp> {
  const node = await app.another({ MAILS_PER_HOUR: mailsPerHour });
  onTestFinished(() => node.close());
  return node;
}

test('mails are counted per user over all organizations, and per client; refused ones are not sent', async () => {
  const node = await anotherNode('4');
  const ann = await registerProven(app, { name: 'ann' });
  const bob = await registerProven(app, { name: 'bob' });
  const { body: second } = await ann.call<{ org_id: string }>('POST', '/v1/orgs', { name: 'Second' });
  const mail = (person: Person, orgId: string, n: number, remoteAddress: string) =>
    node.server.inject({
      method: 'POST',
      url: `/v1/orgs/${orgId}/invitations`,
      headers: person.headers,
      payload: { email: `${n}-of-${person.username}@example.test` },
      remoteAddress,
    });
  const statuses: number[] = [];
  for (let n = 0; n < 6; n++)
    statuses.push((await mail(ann, n % 2 ? ann.orgId : second.org_id, n, `198.51.100.${n}`)).statusCode);
  expect(statuses).toEqual([201, 201, 201, 201, 429, 429]);
  const ofClient: number[] = [];
  for (let n = 0; n < 2; n++) {
    const somebody = await registerProven(app);
    for (let m = 0; m < 3; m++) ofClient.push((await mail(somebody, somebody.orgId, m, '198.51.100.77')).statusCode);
  }
  expect(ofClient).toEqual([201, 201, 201, 201, 429, 429]);
  const late = await mail(bob, bob.orgId, 0, '198.51.100.99');
  expect(late.statusCode).toBe(201);
  await app.jobsDone();
  const sent = app.mails.filter(({ to }) => to.endsWith(`of-${ann.username}@example.test`));
  expect(sent).toHaveLength(4);
});

test('accounts beyond the budget are made without their mail, which can be asked for', async () => {
  const node = await anotherNode('2');
  const ann = await registerProven(app, { name: 'ann' });
  const made: string[] = [];
  for (let n = 0; n < 4; n++) {
    const email = `account-${n}-of-${ann.username}@example.test`;
    const payload = { username: `account-${n}-of-${ann.username}`, email, password: PASSWORD, role: 'member' };
    const { headers } = ann;
    const answer = await node.server.inject({ method: 'POST', url: '/v1/users', headers, payload });
    expect(answer.statusCode).toBe(201);
    made.push(email);
  }
  const payload = { username: `newcomer-of-${ann.username}`, email: `newcomer-of-${ann.username}@example.test` };
  const registered = await node.server.inject({
    method: 'POST',
    url: '/v1/auth/register',
    payload: { ...payload, password: PASSWORD },
  });
  expect(registered.statusCode).toBe(201);
  await app.jobsDone();
  const mailedTo = () => app.mails.map(({ to }) => to).filter((to) => to.includes(`-of-${ann.username}@`));
  expect(mailedTo().sort()).toEqual(made.slice(0, 2));
  const asked = { method: 'POST', url: '/v1/auth/resend-verification', payload: { email: made[3] } } as const;
  expect((await app.server.inject(asked)).statusCode).toBeLessThan(300);
  await app.jobsDone();
  expect(mailedTo().sort()).toEqual([made[0], made[1], made[3]]);
});

test('an address gets ten mails an hour at most, from whatever organizations', async () => {
  const email = 'flooded@example.test';
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) {
    const somebody = await registerProven(app);
    statuses.push((await somebody.call('POST', `/v1/orgs/${somebody.orgId}/invitations`, { email })).status);
  }
  expect(statuses).toEqual([...Array<number>(10).fill(201), 429, 429]);
});
