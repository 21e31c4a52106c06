import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import {
  caller,
  PASSWORD,
  type Person,
  personOf,
  register,
  registerProven,
  type SignedIn,
} from '../../support/person.ts';
import { expectOk } from '../../support/requests.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

let count = 0;

/** Somebody new who registers with the owner's invitation: the owner's organization manages the account. */
async function invited(owner: Person): Promise<Person> {
  const username = `invited-${++count}`;
  const email = `${username}@example.test`;
  const invitation = await owner.call('POST', `/v1/orgs/${owner.orgId}/invitations`, { email });
  expect(invitation.status).toBe(201);
  await app.jobsDone();
  const invite_token = new URL(app.mails.findLast(({ to }) => to === email)!.link!).searchParams.get('token');
  const payload = { username, email, password: PASSWORD, invite_token };
  const body = await expectOk<SignedIn>(app, { method: 'POST', url: '/v1/auth/register', payload });
  const { orgId, workspaceId } = owner;
  return caller(app, { ...personOf(app, body, PASSWORD), orgId, workspaceId });
}

const rowOf = ({ userId }: Person) => app.database.prisma.user.findUniqueOrThrow({ where: { id: userId } });

/** Neither the address of the account can be taken over nor the account be deleted. */
async function expectOutOfReach(admin: Person, somebody: Person): Promise<void> {
  const before = await rowOf(somebody);
  const url = `/v1/users/${somebody.userId}`;
  expect(await admin.call('PUT', url, { email: 'thief@example.test' })).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'user:update' } },
  });
  expect(await admin.call('DELETE', url)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'user:delete' } },
  });
  expect(await rowOf(somebody)).toEqual(before);
}

test('an account with an organization of its own besides is out of reach of who invited it', async () => {
  const mallory = await registerProven(app, { name: 'mallory' });
  const bob = await invited(mallory);
  expect((await rowOf(bob)).homeOrgId).toBe(mallory.orgId);
  expect((await bob.call('POST', '/v1/orgs', { name: 'Of Bob' })).status).toBe(201);
  await expectOutOfReach(mallory, bob);
});

test('an account that left is nobody’s to manage, also after it was added again', async () => {
  const mallory = await registerProven(app, { name: 'mallory' });
  const bob = await invited(mallory);
  const members = `/v1/orgs/${mallory.orgId}/members`;
  expect((await bob.call('DELETE', `${members}/${bob.userId}`)).status).toBe(204);
  expect((await rowOf(bob)).homeOrgId).toBeNull();
  expect((await mallory.call('POST', members, { user_id: bob.userId, role: 'member' })).status).toBe(201);
  expect((await rowOf(bob)).homeOrgId).toBeNull();
  await expectOutOfReach(mallory, bob);
});

test('an account that was there before it was added is not managed by who added it', async () => {
  const [mallory, bob] = [await registerProven(app, { name: 'mallory' }), await register(app, { name: 'bob' })];
  expect((await bob.call('DELETE', `/v1/orgs/${bob.orgId}`)).status).toBe(204);
  const payload = { user_id: bob.userId, role: 'member' };
  expect((await mallory.call('POST', `/v1/orgs/${mallory.orgId}/members`, payload)).status).toBe(201);
  await expectOutOfReach(mallory, bob);
});

test('an account that belongs only to the organization that made it is managed by its administrators', async () => {
  const ann = await registerProven(app, { name: 'ann' });
  const registered = await invited(ann);
  const made = await ann.call<{ user_id: string }>('POST', '/v1/users', {
    username: 'made-by-ann',
    email: 'made-by-ann@example.test',
    password: PASSWORD,
  });
  for (const id of [registered.userId, made.body.user_id]) {
    const url = `/v1/users/${id}`;
    const email = `${id.toLowerCase()}@example.test`;
    expect(await ann.call('PUT', url, { email, bio: 'Managed' })).toMatchObject({
      status: 200,
      body: { bio: 'Managed' },
    });
    await app.jobsDone();
    expect(app.mails.filter(({ to }) => to === email).map(({ subject }) => subject)).toEqual([
      'Confirm your e-mail address',
    ]);
    expect((await ann.call('DELETE', url)).status).toBe(204);
  }
});
