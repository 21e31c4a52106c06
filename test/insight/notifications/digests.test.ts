import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import type { Mail } from '../../../src/platform/mail/mail.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { addToWorkspace, colleague, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { waitUntil } from '../../support/wait.ts';
import { newSecret } from '../../vault/secrets/new-secret.ts';
import { eventsToldTo, listOf } from './told.ts';

let app: TestApp;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  app = await startTestApp({ env: { PUBLIC_URL: 'https://api.example.com', APP_URL: 'https://app.example.com' } });
  await runsByItself(`now() + interval '1 hour'`);
});
afterAll(async () => {
  await runsByItself('now()');
  await app.close();
});

/** When the task of the service ran last: while these tests send digests, it must not. */
const runsByItself = (last: string, { database } = app) =>
  database.pool.query(`insert into jobs._private_known_crontabs (identifier, known_since, last_execution)
    values ('notifications.digest', now(), ${last})
    on conflict (identifier) do update set last_execution = excluded.last_execution`);

beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  bob = await colleague(app, ann, 'viewer');
  await bob.call('POST', '/v1/notifications/read-all');
});

const SHOWN =
  'schedules { category frequency orgId workspaceId organization { id } workspace { id } } digestHour timeZone';
interface Preferences {
  schedules: object[];
  digestHour: number;
  timeZone: string;
}
const set = (who: Person, schedules: object[], digestHour?: number) =>
  who.ask<{ updateNotificationSchedules: Preferences }>(
    `mutation ($input: NotificationSchedulesInput!) { updateNotificationSchedules(input: $input) { ${SHOWN} } }`,
    { input: { schedules, ...(digestHour === undefined ? {} : { digestHour }) } },
  );
const preferencesOf = async (who: Person) =>
  (await who.ask<{ notificationPreferences: Preferences }>(`{ notificationPreferences { ${SHOWN} } }`)).data
    .notificationPreferences;

/** Another role tells its owner. */
async function changeRole(who: Person, role = 'member', where = `/v1/orgs/${ann.orgId}`): Promise<void> {
  expect((await ann.call('PATCH', `${where}/members/${who.userId}`, { role })).status).toBe(200);
}

/** A secret of somebody expires: they are told, and mailed at once if they want it so. */
async function expire(who: Person): Promise<void> {
  const { secret_id } = await newSecret(who);
  await app.database.pool.query(
    `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days' where id = $1`,
    [secret_id],
  );
  await app.services.secretNotices.send();
  await app.jobsDone();
}

/** The time of the digests came a second ago: columns round to milliseconds, also into the future. */
async function comesDue(...people: Person[]): Promise<void> {
  await app.database.pool.query(
    `update notification_digests set hourly_at = least(hourly_at, now() - interval '1 second'),
       daily_at = least(daily_at, now() - interval '1 second') where user_id = any($1)`,
    [people.map(({ userId }) => userId)],
  );
}

async function send(): Promise<void> {
  await app.services.notificationDigests.send();
  await app.jobsDone();
}

const mailsTo = (who: Person): Mail[] => app.mails.filter(({ to, unsubscribe }) => to === who.email && unsubscribe);

describe('how often mails come', () => {
  it('is shown with its places, and replaced as a whole', async () => {
    expect(await preferencesOf(ann)).toEqual({ schedules: [], digestHour: 8, timeZone: 'UTC' });
    expect((await ann.call('PUT', `/v1/users/${ann.userId}`, { timezone: 'Europe/Vienna' })).status).toBe(200);
    const there = { category: 'secret', frequency: 'hourly', orgId: ann.orgId, workspaceId: ann.workspaceId };
    const { data } = await set(ann, [there, { frequency: 'daily' }], 6);
    const shown = {
      schedules: [
        { category: null, frequency: 'daily', orgId: null, workspaceId: null, organization: null, workspace: null },
        { ...there, organization: { id: ann.orgId }, workspace: { id: ann.workspaceId } },
      ],
      digestHour: 6,
      timeZone: 'Europe/Vienna',
    };
    expect(data.updateNotificationSchedules).toEqual(shown);
    expect(await preferencesOf(ann)).toEqual(shown);
    await set(ann, [there]);
    expect(await preferencesOf(ann)).toEqual({ ...shown, schedules: [shown.schedules[1]] });
    // the body of the specification has none of it
    expect(Object.keys((await ann.call('GET', '/v1/notifications/preferences')).body)).toEqual([
      'muted_categories',
      'available_categories',
    ]);
  });

  it.each([
    ['the security of an account', { category: 'security', frequency: 'daily' }, '"schedules",1,"category"'],
    ['another frequency', { frequency: 'weekly' }, 'input.schedules[1].frequency'],
    ['a workspace without its organization', { frequency: 'daily', workspaceId: 'ws_1' }, '"schedules",1,"orgId"'],
    ['an organization of others', { frequency: 'daily', orgId: 'org_none' }, '"schedules",1,"orgId"'],
    ['the same twice', { category: 'token', frequency: 'daily' }, '"schedules",1]'],
  ])('is not said for %s', async (_what, wrong, place) => {
    const { errors } = await set(ann, [{ category: 'token', frequency: 'hourly' }, wrong]);
    expect(JSON.stringify(errors)).toContain(place);
    expect((await preferencesOf(ann)).schedules).toEqual([]);
  });

  it('stays where it is not given', async () => {
    await set(ann, [{ frequency: 'daily' }], 6);
    const { data } = await ann.ask<{ updateNotificationSchedules: Preferences }>(
      `mutation { updateNotificationSchedules(input: { digestHour: 0 }) { ${SHOWN} } }`,
    );
    expect(data.updateNotificationSchedules).toMatchObject({ schedules: [{ frequency: 'daily' }], digestHour: 0 });
  });

  it('is at an hour of the day, in a time zone that there is', async () => {
    expect(JSON.stringify((await set(ann, [], 24)).errors)).toContain('"digestHour"');
    const { status, body } = await ann.call<{ detail: object[] }>('PUT', `/v1/users/${ann.userId}`, {
      timezone: 'Europe/Nowhere',
    });
    expect([status, body.detail]).toMatchObject([422, [{ loc: ['body', 'timezone'] }]]);
  });

  it('is what the narrowest place says, and there its category', async () => {
    const here = { orgId: ann.orgId, workspaceId: ann.workspaceId };
    const waits = async () => {
      const { rows } = await app.database.pool.query<{ digest: string | null }>(
        'select digest from notifications where recipient_id = $1 order by id desc limit 1',
        [bob.userId],
      );
      return rows[0]!.digest;
    };
    const tellOfWorkspace = async (role: string) => {
      await changeRole(bob, role, ann.home);
      return waits();
    };
    await set(bob, [{ frequency: 'daily' }, { category: 'member', frequency: 'hourly' }]);
    expect(await tellOfWorkspace('member')).toBe('hourly');
    await set(bob, [
      { category: 'member', frequency: 'hourly' },
      { frequency: 'daily', orgId: ann.orgId },
    ]);
    expect(await tellOfWorkspace('editor')).toBe('daily');
    await set(bob, [
      { frequency: 'daily', orgId: ann.orgId },
      { category: 'member', frequency: 'never', ...here },
    ]);
    expect(await tellOfWorkspace('viewer')).toBeNull();
    await changeRole(bob);
    expect(await waits()).toBe('daily');
  });
});

describe('a digest', () => {
  it('is one mail about all that is new, by place, instead of one for each', async () => {
    await set(ann, [{ frequency: 'daily' }, { category: 'member', frequency: 'hourly' }]);
    const eve = await register(app, { name: 'eve' });
    const { body: org } = await eve.call<{ org_id: string }>('POST', '/v1/orgs', { name: 'Second <b>' });
    await expire(ann);
    await eve.call('POST', `/v1/orgs/${org.org_id}/members`, { user_id: ann.userId, role: 'viewer' });
    // an hour may end at any moment
    await app.database.pool.query(`update notification_digests set hourly_at = hourly_at + interval '1 hour',
      daily_at = daily_at + interval '1 hour'`);
    await send();
    expect(mailsTo(ann)).toEqual([]);
    await comesDue(ann);
    await send();
    const [mail, ...others] = mailsTo(ann);
    expect(others).toEqual([]);
    expect(mail).toMatchObject({ to: ann.email, subject: '2 unread notifications' });
    const [told] = (await listOf(ann)).notifications;
    const link = `https://app.example.com/orgs/${org.org_id}`;
    expect(mail!.text).toMatch(/^Hello .+,\n\n2 notifications are new since your last digest:\n\n/);
    expect(mail!.text).toContain(`\n\nSecond <b>\n- ${told!.title}\n  ${told!.message}\n  ${link}\n`);
    expect(mail!.text).toMatch(/- A secret expires on .+\n {2}The secret .+\n {2}https:\/\/app\.example\.com\/orgs\//);
    expect(mail!.text.endsWith(`To get no more mails of this kind: ${mail!.unsubscribe}\n`)).toBe(true);
    expect(mail!.html).toContain(`<h3>Second &lt;b&gt;</h3>\n<ul>\n<li><a href="${link}">`);
    expect(mail!.html).not.toContain('<b>');
    // what was in one is in no other
    await comesDue(ann);
    await send();
    expect(mailsTo(ann)).toHaveLength(1);
    expect(await eventsToldTo(ann)).toEqual(['organization_member.created', 'secret.expiring']);
  });

  it('leaves out what was read, resolved or muted meanwhile, and is not sent about nothing', async () => {
    await set(bob, [{ frequency: 'hourly' }]);
    await changeRole(bob, 'member');
    await bob.call('POST', '/v1/notifications/read-all');
    await addToWorkspaceAgain();
    await changeRole(bob, 'member', ann.home);
    await bob.ask(`mutation { updateNotificationMutes(input: { mutes: [
      { category: member, channel: mail, orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}" }
    ] }) { timeZone } }`);
    await comesDue(bob);
    await send();
    expect(mailsTo(bob)).toEqual([]);
    await changeRole(bob, 'editor');
    await comesDue(bob);
    await send();
    expect(mailsTo(bob).map(({ subject }) => subject)).toEqual(['1 unread notification']);
  });

  /** Removed and added: what told of both before is resolved. */
  async function addToWorkspaceAgain(): Promise<void> {
    expect((await ann.call('DELETE', `${ann.home}/members/${bob.userId}`)).status).toBe(204);
    await addToWorkspace(app, ann, bob.userId, 'viewer');
    expect((await ann.call('DELETE', `${ann.home}/members/${bob.userId}`)).status).toBe(204);
    await addToWorkspace(app, ann, bob.userId, 'viewer');
  }

  it('lists twenty, and says how many more there are', async () => {
    await set(bob, [{ frequency: 'daily' }]);
    await changeRole(bob);
    await app.database.pool.query(
      `insert into notifications (id, recipient_id, scope, org_id, type, priority, category, title, message,
         source_service, source_event, metadata, expires_at, digest)
       select 'ntf_' || n || $1, $1, scope, org_id, type, priority, category, 'No. ' || n, message, source_service,
         'deployment.created', metadata, expires_at, digest
       from notifications, generate_series(100, 155) n where recipient_id = $1 and digest = 'daily'`,
      [bob.userId],
    );
    await comesDue(bob);
    await send();
    const [mail] = mailsTo(bob);
    expect(mail!.subject).toBe('57 unread notifications');
    expect(mail!.text.match(/^- /gm)).toHaveLength(20);
    expect(mail!.text).toContain('\n\nand 37 more\n');
    expect(mail!.html).toContain('<p>and 37 more</p>');
  });

  it('goes to no account that is deactivated, and does not tell who left of the place', async () => {
    await set(bob, [{ frequency: 'daily' }]);
    const carl = await colleague(app, ann, 'viewer');
    await carl.call('POST', '/v1/notifications/read-all');
    await set(carl, [{ frequency: 'daily' }]);
    await changeRole(bob);
    await changeRole(carl);
    await carl.call('DELETE', `/v1/orgs/${ann.orgId}/members/${carl.userId}`);
    await app.database.pool.query('update users set deactivated_at = now() where id = $1', [bob.userId]);
    await comesDue(bob, carl);
    await send();
    expect([mailsTo(bob), mailsTo(carl)]).toEqual([[], []]);
  });

  it('is not made of what is muted in the lists: that is mailed at once', async () => {
    await set(ann, [{ frequency: 'daily' }]);
    await ann.ask(
      `mutation { updateNotificationMutes(input: { mutes: [{ category: secret, channel: in_app }] })
        { timeZone } }`,
    );
    await expire(ann);
    expect(mailsTo(ann).map(({ subject }) => subject.slice(0, 16))).toEqual(['A secret expires']);
    await set(ann, [{ frequency: 'never' }]);
    await expire(ann);
    expect(mailsTo(ann)).toHaveLength(1);
  });

  it('ends by its link, and nothing is mailed at once instead', async () => {
    await set(ann, [{ frequency: 'daily' }, { category: 'token', frequency: 'immediate' }]);
    await expire(ann);
    await expire(ann);
    await comesDue(ann);
    await send();
    const { pathname, search } = new URL(mailsTo(ann)[0]!.unsubscribe!);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const url = `${pathname}${search}`;
    const done = await app.server.inject({ method: 'POST', url, headers, payload: 'List-Unsubscribe=One-Click' });
    expect([done.statusCode, done.body.includes('You get no more mails')]).toEqual([200, true]);
    expect((await preferencesOf(ann)).schedules).toMatchObject([
      { category: null, frequency: 'never' },
      { category: 'token', frequency: 'immediate' },
    ]);
    await expire(ann);
    await comesDue(ann);
    await send();
    expect(mailsTo(ann)).toHaveLength(1);
  });

  it('reaches a mail server with text, HTML and the header that ends it', async () => {
    const server = await startMailServer();
    const node = await startTestApp({ env: { SMTP_URL: server.url, PUBLIC_URL: 'https://api.example.com' } });
    try {
      const owner = await register(node, { name: 'owner' });
      const member = await colleague(node, owner, 'viewer');
      await set(member, [{ frequency: 'hourly' }]);
      await owner.call('PATCH', `/v1/orgs/${owner.orgId}/members/${member.userId}`, { role: 'member' });
      await node.database.pool.query('update notification_digests set hourly_at = now()');
      await runsByItself(`now() - interval '1 minute'`, node);
      const mail = await waitUntil(() => server.received.find(({ subject }) => subject === '1 unread notification'), {
        what: 'the digest',
      });
      expect(mail.to).toMatchObject([{ address: member.email }]);
      expect(mail.text).toContain('- Your role in the organization');
      expect(mail.html).toContain('/account/sign-in?notification=ntf_');
      expect(mail.headers.find(({ key }) => key === 'list-unsubscribe')?.value).toMatch(/^<https:.+token=[\w-]+>$/);
      expect(mail.headers.find(({ key }) => key === 'list-unsubscribe-post')?.value).toBe('List-Unsubscribe=One-Click');
    } finally {
      await node.close();
      await server.stop();
    }
  });
});

describe('each notification is in one digest', () => {
  const due = async () => {
    const people = [bob, await colleague(app, ann, 'viewer'), await colleague(app, ann, 'viewer')];
    for (const person of people) {
      await set(person, [{ frequency: 'daily' }]);
      await changeRole(person);
    }
    await comesDue(...people);
    return people;
  };
  const counts = (people: readonly Person[]) => people.map((person) => mailsTo(person).length);

  it('when two nodes make them at once', async () => {
    const other = await app.another();
    const people = await due();
    const nodes = [app, other, app, other];
    await Promise.all(nodes.map(({ services }) => services.notificationDigests.send()));
    await app.jobsDone();
    await other.jobsDone();
    await other.close();
    const mails = people.map(({ email }) => app.mails.filter((mail) => mail.to === email && mail.unsubscribe));
    expect(mails.map(({ length }) => length)).toEqual([1, 1, 1]);
  });

  it('when a node ends before it has promised the mails: nothing was taken', async () => {
    const people = await due();
    await app.database.pool.query(`create function jobs.refuse() returns trigger language plpgsql as $$
      begin raise exception 'the node ends here'; end $$;
      create trigger refuse before insert on jobs._private_jobs for each row execute function jobs.refuse()`);
    try {
      await expect(app.services.notificationDigests.send()).rejects.toThrow('the node ends here');
    } finally {
      await app.database.pool.query('drop trigger refuse on jobs._private_jobs; drop function jobs.refuse()');
    }
    expect(counts(people)).toEqual([0, 0, 0]);
    await send();
    expect(counts(people)).toEqual([1, 1, 1]);
  });

  it('when a node ends after it: the promise is kept once', async () => {
    const people = await due();
    await whileJobsWait(app, async () => {
      await app.services.notificationDigests.send();
      await app.services.notificationDigests.send();
      expect(counts(people)).toEqual([0, 0, 0]);
    });
    await app.jobsDone();
    expect(counts(people)).toEqual([1, 1, 1]);
  });

  it('also what is told while it is made: that is in the next one', async () => {
    await set(bob, [{ frequency: 'daily' }]);
    await changeRole(bob);
    await comesDue(bob);
    const writer = await app.database.pool.connect();
    try {
      await writer.query('begin');
      // as a change does that tells of something
      await writer.query('update notification_digests set daily_at = daily_at where user_id = $1', [bob.userId]);
      await send();
      expect(mailsTo(bob)).toEqual([]);
      await writer.query('commit');
    } finally {
      writer.release();
    }
    await send();
    await changeRole(bob, 'editor');
    await comesDue(bob);
    await send();
    expect(mailsTo(bob).map(({ subject }) => subject)).toEqual(['1 unread notification', '1 unread notification']);
  });

  it('by as many statements for three users as for one, and by one if none is due', async () => {
    const sendAll = () => logQueries(app.database.pool).by(() => app.services.notificationDigests.send());
    await send();
    const none = (await sendAll()).filter((text) => text.includes('notification'));
    await due();
    const three = (await sendAll()).filter((text) => text.includes('notification'));
    expect([none.length, three.length]).toEqual([1, 2]);
  });
});

describe('when a digest is due', () => {
  const next = async (frequency: string, zone: string, hour: number, since: string): Promise<string> => {
    const { rows } = await app.database.pool.query<{ due: Date }>('select next_digest($1, $2, $3, $4) as due', [
      frequency,
      zone,
      hour,
      since,
    ]);
    return rows[0]!.due.toISOString();
  };

  test.each([
    ['today, if the hour is to come', 'daily', 'Europe/Berlin', 8, '2026-07-01T05:59:00Z', '2026-07-01T06:00:00.000Z'],
    ['tomorrow, at the hour itself', 'daily', 'Europe/Berlin', 8, '2026-07-01T06:00:00Z', '2026-07-02T06:00:00.000Z'],
    ['over the change to summer time', 'daily', 'Europe/Berlin', 8, '2026-03-28T12:00:00Z', '2026-03-29T06:00:00.000Z'],
    ['over the change to winter time', 'daily', 'Europe/Berlin', 8, '2026-10-24T12:00:00Z', '2026-10-25T07:00:00.000Z'],
    ['an hour that is left out', 'daily', 'Europe/Berlin', 2, '2026-03-28T12:00:00Z', '2026-03-29T01:00:00.000Z'],
    ['an hour that comes twice', 'daily', 'Europe/Berlin', 2, '2026-10-24T12:00:00Z', '2026-10-25T01:00:00.000Z'],
    ['once, after it', 'daily', 'Europe/Berlin', 2, '2026-10-25T01:00:00Z', '2026-10-26T01:00:00.000Z'],
    ['a midnight that is left out', 'daily', 'Africa/Cairo', 0, '2026-04-23T12:00:00Z', '2026-04-23T22:00:00.000Z'],
    ['a day that is left out', 'daily', 'Pacific/Apia', 8, '2011-12-29T20:00:00Z', '2011-12-30T18:00:00.000Z'],
    ['at the full hour', 'hourly', 'UTC', 8, '2026-07-01T05:59:00Z', '2026-07-01T06:00:00.000Z'],
    ['at the full hour there', 'hourly', 'Asia/Kolkata', 8, '2026-07-01T05:15:00Z', '2026-07-01T05:30:00.000Z'],
    ['in a zone that is none any more', 'daily', 'Mars/Base', 8, '2026-07-01T05:59:00Z', '2026-07-01T08:00:00.000Z'],
  ])('%s', async (_what, frequency, zone, hour, since, due) => {
    expect(await next(frequency, zone, hour, since)).toBe(due);
  });

  it('follows the zone and the hour of its user', async () => {
    await bob.call('PUT', `/v1/users/${bob.userId}`, { timezone: 'Asia/Tokyo' });
    await set(bob, [{ frequency: 'daily' }], 7);
    await changeRole(bob);
    const dueAt = async () =>
      (
        await app.database.pool.query<{ at: string }>(
          `select to_char(daily_at at time zone 'Asia/Tokyo', 'HH24:MI') as at from notification_digests
           where user_id = $1 and daily_at > now() and daily_at <= now() + interval '1 day'`,
          [bob.userId],
        )
      ).rows.map(({ at }) => at);
    expect(await dueAt()).toEqual(['07:00']);
    await set(bob, [{ frequency: 'daily' }], 22);
    expect(await dueAt()).toEqual(['22:00']);
  });
});
