import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { UnsubscribeLinks } from '../../../src/insight/notifications/unsubscribe-links.ts';
import { Seal } from '../../../src/platform/keys/seal.ts';
import type { Mail } from '../../../src/platform/mail/mail.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, colleague, type Person, register } from '../../support/person.ts';
import { newSecret } from '../../vault/secrets/new-secret.ts';
import { eventsToldTo, listOf, mute } from './told.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp({ env: { PUBLIC_URL: 'https://api.example.com', APP_URL: 'https://app.example.com' } });
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});

/** A secret of somebody expires: they are told, and mailed. */
async function expire(who: Person): Promise<void> {
  const { secret_id } = await newSecret(who);
  await app.database.pool.query(
    `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days' where id = $1`,
    [secret_id],
  );
  await app.services.secretNotices.send();
  await app.jobsDone();
}

const mailsTo = (who: Person): Mail[] =>
  app.mails.filter(({ to, subject }) => to === who.email && subject.startsWith('A secret expires'));

const MUTES = 'mutes { category channel orgId workspaceId organization { id } workspace { id } }';
const set = (who: Person, mutes: object[]) =>
  who.ask<{ updateNotificationMutes: { mutes: object[] } }>(
    `mutation ($mutes: [NotificationMuteInput!]!) { updateNotificationMutes(input: { mutes: $mutes }) { ${MUTES} } }`,
    { mutes },
  );
const mutesOf = async (who: Person) =>
  (await who.ask<{ notificationPreferences: { mutes: object[] } }>(`{ notificationPreferences { ${MUTES} } }`)).data
    .notificationPreferences.mutes;

describe('what somebody does not want', () => {
  it('by mail is still shown, and the other way round', async () => {
    await set(ann, [{ category: 'secret', channel: 'mail' }]);
    await expire(ann);
    expect([await eventsToldTo(ann), mailsTo(ann)]).toEqual([['secret.expiring'], []]);
    await set(ann, [{ category: 'secret', channel: 'in_app' }]);
    await expire(ann);
    expect((await eventsToldTo(ann)).length).toBe(1);
    expect(mailsTo(ann)).toHaveLength(1);
    await set(ann, []);
    await expire(ann);
    expect((await eventsToldTo(ann)).length).toBe(2);
    expect(mailsTo(ann)).toHaveLength(2);
  });

  it("in the lists has no link in its mail to a page of the service's own, which would show it", async () => {
    const own = await app.another({ APP_URL: '', PUBLIC_URL: 'https://own.example.com' });
    const expireHere = async (mutes: object[]) => {
      await set(ann, mutes);
      const { secret_id } = await newSecret(ann);
      await own.database.pool.query(
        `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days'
         where id = $1`,
        [secret_id],
      );
      await own.services.secretNotices.send();
      await own.jobsDone();
      return app.mails.filter(({ to, unsubscribe }) => to === ann.email && unsubscribe).at(-1)!.link;
    };
    expect(await expireHere([{ category: 'secret', channel: 'in_app' }])).toBeUndefined();
    const link = await expireHere([]);
    const [shown] = (await listOf(ann)).notifications;
    expect(link).toBe(`https://own.example.com/account/sign-in?notification=${shown!.notification_id}`);
  });

  it('in an organization is told of others, and in a workspace of others and of the organization', async () => {
    const bob = await register(app, { name: 'bob' });
    const eve = await colleague(app, bob, 'viewer');
    await ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: eve.userId, role: 'viewer' });
    const before = (await eventsToldTo(eve)).length;
    const change = async (owner: Person, url: string, role: string) =>
      expect((await owner.call('PATCH', url, { role })).status).toBe(200);
    const inOrg = (owner: Person) => `/v1/orgs/${owner.orgId}/members/${eve.userId}`;
    await set(eve, [{ category: 'member', channel: 'in_app', orgId: ann.orgId }]);
    await change(ann, inOrg(ann), 'member');
    expect((await eventsToldTo(eve)).length).toBe(before);
    await change(bob, inOrg(bob), 'member');
    expect((await eventsToldTo(eve)).length).toBe(before + 1);
    await set(eve, [{ category: 'member', channel: 'in_app', orgId: bob.orgId, workspaceId: bob.workspaceId }]);
    await change(bob, `${bob.home}/members/${eve.userId}`, 'member');
    expect((await listOf(eve)).notifications[0]!.source_event).toBe('organization_member.updated');
    await change(ann, inOrg(ann), 'editor');
    expect((await listOf(eve)).notifications[0]!.metadata).toMatchObject({ role: 'editor' });
    await addToWorkspace(app, ann, eve.userId, 'viewer');
    expect((await eventsToldTo(eve))[0]).toBe('workspace_member.created');
  });

  it('is shown with its places, replaced as a whole, and said once', async () => {
    const everywhere = { category: 'token', channel: 'mail' };
    const there = { category: 'secret', channel: 'mail', orgId: ann.orgId, workspaceId: ann.workspaceId };
    const shown = [
      { ...everywhere, orgId: null, workspaceId: null, organization: null, workspace: null },
      { ...there, organization: { id: ann.orgId }, workspace: { id: ann.workspaceId } },
    ];
    const { data } = await set(ann, [there, everywhere, there]);
    expect(data.updateNotificationMutes.mutes).toEqual(shown);
    expect(await mutesOf(ann)).toEqual(shown);
    await Promise.all([set(ann, [there]), set(ann, [there]), set(ann, [there])]);
    expect(await mutesOf(ann)).toEqual([shown[1]]);
    // the categories of the specification are beside it
    expect((await mute(ann, ['model'])).body).toEqual({
      muted_categories: ['model'],
      available_categories: expect.any(Array) as string[],
    });
    expect(await mutesOf(ann)).toEqual([shown[1]]);
  });

  it.each([
    ['the security of an account', { category: 'security', channel: 'mail' }, 'category'],
    ['a workspace without its organization', { category: 'secret', channel: 'mail', workspaceId: 'ws_1' }, 'orgId'],
    ['an organization of others', { category: 'secret', channel: 'mail', orgId: 'org_none' }, 'orgId'],
  ])('is not %s', async (_what, wrong, place) => {
    const { errors } = await set(ann, [{ category: 'token', channel: 'mail' }, wrong]);
    expect(JSON.stringify(errors)).toContain(`"mutes",1,"${place}"`);
    expect(await mutesOf(ann)).toEqual([]);
  });

  it('is not another channel', async () => {
    const { errors } = await set(ann, [{ category: 'secret', channel: 'pigeon' }]);
    expect(errors).toMatchObject([
      { message: expect.stringContaining('"mutes[0].channel"; it is not a value') as string },
    ]);
    expect(await mutesOf(ann)).toEqual([]);
  });

  it('is in no workspace that one cannot open', async () => {
    const bob = await register(app, { name: 'bob' });
    await ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: bob.userId, role: 'viewer' });
    const of = (workspaceId: string) => [{ category: 'secret', channel: 'mail', orgId: ann.orgId, workspaceId }];
    for (const workspaceId of [ann.workspaceId, bob.workspaceId])
      expect(JSON.stringify((await set(bob, of(workspaceId))).errors)).toContain('"mutes",0,"workspaceId"');
    await addToWorkspace(app, ann, bob.userId, 'viewer');
    expect((await set(bob, of(ann.workspaceId))).errors).toBeUndefined();
  });
});

describe('the link that ends mails', () => {
  const linkIn = (mail: Mail | undefined): URL => new URL(mail!.unsubscribe!);
  const request = (method: 'GET' | 'POST', { pathname, search }: URL, payload?: string) =>
    app.server.inject({
      method,
      url: `${pathname}${search}`,
      ...(payload === undefined ? {} : { payload, headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
    });
  const ONE_CLICK = 'List-Unsubscribe=One-Click';

  it('is in each mail of a notification, with its text and its headers', async () => {
    await expire(ann);
    const [mail] = mailsTo(ann);
    expect(mail!.unsubscribe).toMatch(/^https:\/\/api\.example\.com\/account\/unsubscribe\?token=[\w-]{60,}$/);
    expect(mail!.text.endsWith(`To get no more mails of this kind: ${mail!.unsubscribe}\n`)).toBe(true);
    expect(mail!.text).toContain(`\n\n${mail!.link}\n`);
    expect(Buffer.from(linkIn(mail).searchParams.get('token')!, 'base64url').toString('latin1')).not.toContain(
      ann.userId,
    );
  });

  it('shows a page and changes nothing, and one click ends the mails of the category in the organization', async () => {
    await expire(ann);
    const link = linkIn(mailsTo(ann)[0]);
    const page = await request('GET', link);
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.body).toContain('<form method="post">');
    expect(page.headers['content-security-policy']).toContain("form-action 'self'");
    expect(await mutesOf(ann)).toEqual([]);
    for (let n = 0; n < 2; n++) {
      const done = await request('POST', link, ONE_CLICK);
      expect([done.statusCode, done.body.includes('You get no more mails')]).toEqual([200, true]);
    }
    expect(await mutesOf(ann)).toMatchObject([
      { category: 'secret', channel: 'mail', orgId: ann.orgId, workspaceId: null },
    ]);
    await expire(ann);
    expect(mailsTo(ann)).toHaveLength(1);
    expect((await listOf(ann)).total).toBe(2);
    const records = await app.database.prisma.activity.findMany({ where: { path: '/account/unsubscribe' } });
    expect(records.filter(({ userId }) => userId === ann.userId)).toMatchObject([
      { action: 'update', resourceType: 'notification', orgId: ann.orgId, metadata: { unsubscribed: 'secret' } },
      { action: 'update', resourceType: 'notification', orgId: ann.orgId, metadata: { unsubscribed: 'secret' } },
    ]);
  });

  it('works with a former secret of the service, and with no other', () => {
    const [before, now] = [1, 2].map((n) => new Seal(Buffer.from(`secret ${n}`), 'unsubscribe')) as [Seal, Seal];
    const url = () => 'https://api.example.com';
    const mailed = { userId: ann.userId, orgId: ann.orgId, category: 'secret' };
    const token = new URL(new UnsubscribeLinks([before], url).linkFor(mailed)).searchParams.get('token')!;
    expect(new UnsubscribeLinks([now, before], url).open(token)).toEqual(mailed);
    expect(new UnsubscribeLinks([now], url).open(token)).toBeNull();
  });

  it.each([
    ['another token', (token: string) => `${token.slice(0, -4)}AAAA`],
    ['none', () => ''],
    ['one that nobody sealed', () => Buffer.from('["usr_1",null,"secret"]').toString('base64url')],
  ])('is refused with %s', async (_what, changed) => {
    await expire(ann);
    const link = linkIn(mailsTo(ann)[0]);
    link.searchParams.set('token', changed(link.searchParams.get('token')!));
    const answer = await request('POST', link, ONE_CLICK);
    expect([answer.statusCode, answer.body.includes('This link does not work')]).toEqual([400, true]);
    expect(await mutesOf(ann)).toEqual([]);
  });

  it('is refused when its account is gone', async () => {
    await expire(ann);
    const link = linkIn(mailsTo(ann)[0]);
    await app.database.pool.query('update users set deactivated_at = now() where id = $1', [ann.userId]);
    expect((await request('POST', link, ONE_CLICK)).statusCode).toBe(400);
  });

  it('takes no large form, and a page of others cannot frame it', async () => {
    const url = new URL('https://api.example.com/account/unsubscribe?token=a');
    expect((await request('POST', url, `a=${'b'.repeat(20_000)}`)).statusCode).toBe(413);
    expect((await request('GET', url)).headers['x-frame-options']).toBe('DENY');
  });
});
