import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Changes } from '../../../src/data/changes.ts';
import { Sql } from '../../../src/data/sql.ts';
import { SendQueue } from '../../../src/live/sending/send-queue.ts';
import { webhookChannel } from '../../../src/live/webhooks/webhook-channel.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { hostileTargets } from '../../support/hostile-targets.ts';
import { insertEvent } from '../../support/late-writers.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { hostileUrls, type Receiver, receive } from '../../support/receivers.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

let app: TestApp;
const receivers: Receiver[] = [];
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
afterAll(async () => {
  await app.close();
  await Promise.all(receivers.map((receiver) => receiver.close()));
});

interface Issued {
  webhook: { webhook_id: string; acts_for: string; [field: string]: unknown };
  secret: string;
}
interface Delivery {
  webhook_delivery_id: string;
  event_id: string;
  event_type: string;
  status: string;
  tries: number;
  body: string;
  next_attempt_at: string | null;
  attempts: { status_code: number | null; error: string | null; answer: string | null; duration_ms: number }[];
}

async function receiver(...given: Parameters<typeof receive>): Promise<Receiver> {
  const one = await receive(...given);
  receivers.push(one);
  return one;
}

const hooksOf = ({ orgId }: Person) => `/v1/orgs/${orgId}/webhooks`;

async function hook(person: Person, url: string, more: Record<string, unknown> = {}) {
  const given = { name: 'Hook', url, event_types: ['thread.*'], workspace_id: person.workspaceId, ...more };
  const { status, body } = await person.call<Issued>('POST', hooksOf(person), given);
  expect([status, body]).toEqual([201, expect.anything()]);
  const at = `${hooksOf(person)}/${body.webhook.webhook_id}`;
  const deliveries = async (query = '') =>
    (await person.call<{ webhook_deliveries: Delivery[] }>('GET', `${at}/deliveries${query}`)).body.webhook_deliveries;
  return { ...body, id: body.webhook.webhook_id, at, deliveries };
}

async function thread(person: Person, title = 'A thread'): Promise<string> {
  const url = `${person.home}/namespaces/default/threads`;
  const { status, body } = await person.call<{ thread_id: string }>('POST', url, { title });
  expect([status, body]).toEqual([201, expect.anything()]);
  return body.thread_id;
}

const rename = async (person: Person, id: string, title: string) => {
  const { status } = await person.call('PUT', `${person.home}/namespaces/default/threads/${id}`, { title });
  expect(status).toBe(200);
};

/** As if the waits of all deliveries of a webhook were over. */
const passTime = (id: string) =>
  app.database.pool.query('update webhook_deliveries set due_at = now() where webhook_id = $1 and due_at > now()', [
    id,
  ]);

/** As if it had failed for so many days. */
const failFor = (id: string, days: number) =>
  app.database.pool.query(`update webhooks set failing_since = now() - $2 * interval '1 day' where id = $1`, [
    id,
    days,
  ]);

const done = (deliveries: () => Promise<Delivery[]>, count: number, status = 'delivered') =>
  waitUntil(async () => {
    const found = await deliveries();
    return found.filter((one) => one.status === status).length === count && found;
  });

test('an event arrives as the stream has it, and the public verifier accepts its signature', async () => {
  const ann = await register(app);
  const inbox = await receiver();
  const { secret, deliveries, webhook, at } = await hook(ann, inbox.url);
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(webhook).toEqual({
    webhook_id: expect.stringMatching(/^whk_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    name: 'Hook',
    description: null,
    url: inbox.url,
    event_types: ['thread.*'],
    is_enabled: true,
    disabled_reason: null,
    headers_ref: null,
    acts_for: ann.userId,
    secret_rotated_at: null,
    failing_since: null,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const id = await thread(ann);
  const [got] = await inbox.has(1);
  const event = new Verifier(secret).verify(got!.body, got!.headers) as Record<string, unknown>;
  expect(event).toEqual({
    event_id: got!.headers['webhook-id'],
    type: 'thread.created',
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    actor: { principal_type: 'user', principal_id: ann.userId, username: ann.username },
    resource_type: 'thread',
    resource_id: id,
    data: expect.any(Object),
    timestamp: expect.any(String),
    trace_id: expect.any(String),
  });
  const other = new Verifier(`whsec_${Buffer.alloc(32).toString('base64')}`);
  expect(() => other.verify(got!.body, got!.headers)).toThrow('No matching signature');
  expect(await done(deliveries, 1)).toEqual([
    {
      webhook_delivery_id: expect.stringMatching(/^whd_/),
      webhook_id: webhook.webhook_id,
      event_id: event.event_id,
      event_type: 'thread.created',
      status: 'delivered',
      tries: 1,
      next_attempt_at: null,
      body: got!.body,
      attempts: [
        {
          attempted_at: expect.any(String),
          status_code: 200,
          error: null,
          duration_ms: expect.any(Number),
          answer: 'thanks',
        },
      ],
      created_at: expect.any(String),
      finished_at: expect.any(String),
    },
  ]);
  const shown = JSON.stringify([(await ann.call('GET', at)).body, await deliveries()]);
  expect(shown).not.toContain(secret.slice('whsec_'.length));
  const { rows } = await app.database.pool.query('select * from credentials where webhook_id = $1', [
    webhook.webhook_id,
  ]);
  expect(JSON.stringify(rows)).not.toContain(secret.slice('whsec_'.length));
});

test('after a rotation both secrets verify for a day, then only the new one', async () => {
  const ann = await register(app);
  const inbox = await receiver();
  const { secret, at, id } = await hook(ann, inbox.url);
  const rotated = (await ann.call<Issued>('POST', `${at}/rotate-secret`)).body;
  expect(rotated.secret).not.toBe(secret);
  await thread(ann);
  const [both] = await inbox.has(1);
  for (const one of [secret, rotated.secret]) new Verifier(one).verify(both!.body, both!.headers);
  const { livingKeys, rotatedKeys, keysOf } = await import('../../../src/live/webhooks/webhook-signing.ts');
  const kept = rotatedKeys(keysOf(secret), rotated.secret, 0);
  expect(livingKeys(kept, 86_399_999)).toHaveLength(2);
  expect(livingKeys(kept, 86_400_000)).toEqual([rotated.secret.slice(6)]);
  expect(await eventsOf(app, id)).toEqual(['webhook.created', 'webhook.updated']);
});

test('what is about one resource waits for its turn; all else goes on', async () => {
  const ann = await register(app);
  const [first, second] = [await thread(ann, 'first'), await thread(ann, 'second')];
  let isBroken = true;
  const inbox = await receiver(({ body }, response) => {
    if (isBroken && body.includes(first)) response.writeHead(500, { 'retry-after': '3600' }).end('not now');
    else response.end('thanks');
  });
  const { id, deliveries } = await hook(ann, inbox.url);
  for (const title of ['1', '2', '3']) await rename(ann, first, title);
  await rename(ann, second, 'other');
  const found = await done(deliveries, 1);
  const waiting = await waitUntil(async () => {
    const rows = (await deliveries('?status=pending')).toReversed();
    return rows[0]?.tries === 1 && rows;
  });
  expect(found).toHaveLength(4);
  expect(waiting.map(({ tries }) => tries)).toEqual([1, 0, 0]);
  expect(waiting[0]!.attempts).toMatchObject([{ status_code: 500, answer: 'not now' }]);
  // as the receiver asks: later than we would
  expect(Date.parse(waiting[0]!.next_attempt_at!) - Date.now()).toBeGreaterThan(1_800_000);
  expect(waiting.slice(1).map((one) => one.next_attempt_at)).toEqual([null, null]);
  isBroken = false;
  await passTime(id);
  await done(deliveries, 4);
  const ids = inbox.got.filter(({ body }) => body.includes(first)).map(({ headers }) => headers['webhook-id']);
  expect(ids.slice(1)).toEqual(waiting.map((one) => one.event_id));
  expect(ids[0]).toBe(ids[1]);
});

test('eight tries, then it has failed; one, all failed and a span are sent again', async () => {
  const ann = await register(app);
  let status = 503;
  // each next try comes when this test says so
  const later = { 'retry-after': '3600' };
  const inbox = await receiver((_request, response) => response.writeHead(status, later).end());
  const { id, at, deliveries } = await hook(ann, inbox.url);
  await thread(ann);
  for (let tries = 1; tries < 8; tries++) {
    await waitUntil(async () => (await deliveries()).some((one) => one.tries === tries));
    await passTime(id);
  }
  const [failed] = await done(deliveries, 1, 'failed');
  expect([failed!.tries, failed!.attempts.length, failed!.next_attempt_at]).toEqual([8, 8, null]);
  await inbox.has(8);
  status = 200;
  const one = `${at}/deliveries/${failed!.webhook_delivery_id}/redeliver`;
  expect((await ann.call<Delivery>('POST', one)).body).toMatchObject({ status: 'pending', tries: 0 });
  await done(deliveries, 1);
  expect(
    (await ann.call('POST', `${at}/redeliver`, { since: '2020-01-01T00:00:00Z', only_failed: true })).body,
  ).toEqual({ count: 0 });
  expect((await ann.call('POST', `${at}/redeliver`, { since: '2020-01-01T00:00:00Z' })).body).toEqual({ count: 1 });
  await inbox.has(10);
  expect(new Set(inbox.got.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect((await ann.call('POST', `${at}/redeliver`, {})).status).toBe(422);
  const reversed = { since: '2020-01-02T00:00:00Z', until: '2020-01-01T00:00:00Z' };
  expect((await ann.call('POST', `${at}/redeliver`, reversed)).status).toBe(422);
  const unknown = `${at}/deliveries/whd_01ARZ3NDEKTSV4RRFFQ69G5FAV/redeliver`;
  expect((await ann.call('POST', unknown)).status).toBe(404);
});

test('an answer that repeats what was sent is shown to those who may read it', async () => {
  const ann = await register(app);
  const inbox = await receiver(({ body }, response) => response.end(body));
  const { at, deliveries } = await hook(ann, inbox.url);
  await thread(ann);
  const [delivery] = await done(deliveries, 1);
  expect(delivery!.attempts).toMatchObject([{ status_code: 200, answer: delivery!.body }]);
  const { body: token } = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
    name: 'reads no threads',
    scopes: ['webhook:read'],
  });
  const headers = { authorization: `Bearer ${token.plaintext_token}` };
  const answer = await app.server.inject({ url: `${at}/deliveries`, headers });
  expect(answer.json<{ webhook_deliveries: unknown }>().webhook_deliveries).toMatchObject([
    { body: null, attempts: [{ status_code: 200, error: null, answer: null }] },
  ]);
});

test('a test is sent once, signed like an event', async () => {
  const ann = await register(app);
  const inbox = await receiver((_request, response) => response.writeHead(500).end());
  const { id, at, secret, deliveries } = await hook(ann, inbox.url, {
    workspace_id: undefined,
    event_types: ['webhook.*'],
  });
  const sent = await ann.call<Delivery>('POST', `${at}/test`);
  expect([sent.status, sent.body]).toMatchObject([202, { event_type: 'webhook.test', status: 'pending', tries: 0 }]);
  const [got] = await inbox.has(1);
  expect(new Verifier(secret).verify(got!.body, got!.headers)).toMatchObject({
    type: 'webhook.test',
    resource_type: 'webhook',
    resource_id: id,
    workspace_id: null,
  });
  await done(deliveries, 1, 'failed');
  // it says nothing of what fails
  expect((await ann.call('GET', at)).body).toMatchObject({ failing_since: null });
  await ann.call('PATCH', at, { is_enabled: false });
  expect(await ann.call('POST', `${at}/test`)).toMatchObject({
    status: 409,
    body: { details: { reason: 'invalid_status' } },
  });
});

test('receives nothing of other workspaces, nothing personal and nothing that its user may not read', async () => {
  const ann = await register(app);
  const admin = await colleague(app, ann, 'admin');
  const bob = await colleague(app, ann, 'editor');
  const inbox = await receiver();
  const made = { ...admin, orgId: ann.orgId, workspaceId: ann.workspaceId, home: ann.home };
  const all = ['thread.*', 'workspace_member.*', 'presence.*'];
  const { id, at, deliveries } = await hook(made, inbox.url, { event_types: all });
  const { body: elsewhere } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
    organization_id: ann.orgId,
    name: 'Elsewhere',
  });
  const other = { ...ann, home: `/v1/orgs/${ann.orgId}/workspaces/${elsewhere.workspace_id}` };
  await thread(other);
  // a change of a role makes a notification, which is for its user alone
  expect((await ann.call('PATCH', `${ann.home}/members/${bob.userId}`, { role: 'viewer' })).status).toBe(200);
  await thread(ann);
  const got = await inbox.has(2);
  // of two resources, they may arrive in any order
  const events = got.map(({ body }) => JSON.parse(body) as { type: string; workspace_id: string });
  expect(events.map(({ type }) => type).sort()).toEqual(['thread.created', 'workspace_member.updated']);
  expect(events.map((event) => event.workspace_id)).toEqual([ann.workspaceId, ann.workspaceId]);
  // who is no administrator any more has no webhook that goes on
  await done(deliveries, 2);
  expect((await ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${admin.userId}`, { role: 'member' })).status).toBe(
    200,
  );
  await thread(ann);
  const disabled = await waitUntil(async () => {
    const { body } = await ann.call<{ is_enabled: boolean; disabled_reason: string }>('GET', at);
    return !body.is_enabled && body;
  });
  expect(disabled.disabled_reason).toBe('no_access');
  expect(inbox.got).toHaveLength(2);
  expect(await eventsOf(app, id)).toContain('webhook.disabled');
  const told = async (isResolved: boolean) => {
    const query = `query($is: Boolean) { notifications(isResolved: $is) { nodes { title sourceEvent } } }`;
    const { data } = await ann.ask<{ notifications: { nodes: { sourceEvent: string }[] } }>(query, { is: isResolved });
    return data.notifications.nodes.filter(({ sourceEvent }) => sourceEvent === 'webhook.disabled').length;
  };
  expect(await told(false)).toBe(1);
  // who enables it takes the place
  expect((await ann.call('PATCH', at, { is_enabled: true })).body).toMatchObject({
    is_enabled: true,
    disabled_reason: null,
    acts_for: ann.userId,
  });
  expect([await told(false), await told(true)]).toEqual([0, 1]);
  await inbox.has(3);
});

test('five days of failures disable it', async () => {
  const ann = await register(app);
  const inbox = await receiver((_request, response) => response.writeHead(500, { 'retry-after': '3600' }).end());
  const { id, at, deliveries } = await hook(ann, inbox.url);
  await thread(ann);
  await waitUntil(async () => (await deliveries())[0]?.tries === 1);
  expect((await ann.call('GET', at)).body).toMatchObject({ failing_since: expect.any(String), is_enabled: true });
  await passTime(id);
  await waitUntil(async () => (await deliveries())[0]?.tries === 2);
  await failFor(id, 6);
  // one more that fails for the first time disables nothing
  await thread(ann);
  await waitUntil(async () => (await deliveries())[0]?.tries === 1);
  expect((await ann.call('GET', at)).body).toMatchObject({ is_enabled: true });
  await passTime(id);
  await waitFor(async () =>
    expect((await ann.call('GET', at)).body).toMatchObject({ is_enabled: false, disabled_reason: 'failing' }),
  );
  const etag = (await app.server.inject({ url: at, headers: ann.headers })).headers.etag;
  expect(etag).toBe('"2"'); // failures and positions raise no version
});

test('where single sign-on is demanded, it lasts as long as a provider vouches for its user', async () => {
  const ann = await register(app);
  const inbox = await receiver();
  const about = await thread(ann);
  const { id } = await hook(ann, inbox.url);
  const { pool } = app.database;
  const key = `idp-${ann.orgId}`;
  await pool.query(
    `insert into identity_providers (id, org_id, name, protocol, oidc_client_id, oidc_client_secret_ref,
        oidc_discovery_url, authority)
      values ($2, $1, 'Corp', 'oidc', 'us', 'secret://idp', 'https://idp.example.test', 'owner')`,
    [ann.orgId, key],
  );
  await pool.query(
    `insert into identity_links (org_id, identity_provider_id, id, subject, user_id, reason)
      values ($1, $2, $2, 'ann', $3, 'created')`,
    [ann.orgId, key, ann.userId],
  );
  await pool.query('update organizations set sso_required = true where id = $1', [ann.orgId]);
  app.services.access.facts.demandsChanged(ann.orgId);
  await insertEvent(pool, ann, `${about}_vouched`);
  await inbox.has(1);
  await waitUntil(async () => {
    const { rows } = await pool.query(`select status from webhook_deliveries where webhook_id = $1`, [id]);
    return rows[0]?.status === 'delivered';
  });
  await pool.query('update identity_links set ended_at = now() where org_id = $1', [ann.orgId]);
  await insertEvent(pool, ann, `${about}_alone`);
  await waitUntil(async () => {
    const { rows } = await pool.query('select disabled_reason as why from webhooks where id = $1', [id]);
    return rows[0].why === 'no_access';
  });
  expect(inbox.got).toHaveLength(1);
});

test('nothing is taken for a disabled one, and what waits too long goes without holding up the rest', async () => {
  const ann = await register(app);
  let status = 500;
  const inbox = await receiver((_request, response) => response.writeHead(status).end());
  const { id, at, deliveries } = await hook(ann, inbox.url);
  const first = await thread(ann);
  for (const title of ['1', '2']) await rename(ann, first, title);
  await waitUntil(async () => {
    const rows = await deliveries('?status=pending');
    return rows.length === 3 && rows[2]!.tries === 1;
  });
  await ann.call('PATCH', at, { is_enabled: false });
  await passTime(id);
  const { pool } = app.database;
  const queue = new SendQueue({ sql: new Sql(pool), changes: {} as Changes, leaseSeconds: 20 }, webhookChannel);
  expect(await queue.take(id, 10)).toEqual([]);
  await pool.query(
    `update webhook_deliveries set created_at = now() - interval '8 days' where webhook_id = $1 and tries > 0`,
    [id],
  );
  for (const rule of app.services.webhookDeliveries.retention) await pool.query(rule);
  expect((await deliveries('?status=pending')).map(({ tries }) => tries)).toEqual([0, 0]);
  status = 200;
  await ann.call('PATCH', at, { is_enabled: true });
  await done(deliveries, 2);
});

test('a signing key that does not open is a failed attempt', async () => {
  const ann = await register(app);
  const inbox = await receiver();
  const { id, deliveries } = await hook(ann, inbox.url);
  await app.database.pool.query(`update credentials set ciphertext = decode('00', 'hex') where webhook_id = $1`, [id]);
  await thread(ann);
  const attempt = await waitUntil(async () => (await deliveries())[0]?.attempts[0]);
  expect(attempt).toMatchObject({ status_code: null, error: 'headers' });
  expect(inbox.got).toEqual([]);
});

test('headers come from the vault, by users who may reveal them, and no answer shows them', async () => {
  const ann = await register(app);
  const inbox = await receiver(({ headers }, response) => response.end(`you sent ${headers['x-key']}`));
  const value = { 'X-Key': 'a value that nobody sees' };
  const { body: secret } = await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, {
    name: 'hook-headers',
    secret_type: 'custom',
    value,
  });
  const { at, deliveries } = await hook(ann, inbox.url, { headers_ref: 'secret://hook-headers' });
  await thread(ann);
  const [got] = await inbox.has(1);
  expect(got!.headers['x-key']).toBe(value['X-Key']);
  const [delivery] = await done(deliveries, 1);
  expect(delivery!.attempts[0]!.answer).toBe('you sent [redacted]');
  const destroyed = await ann.call('DELETE', `/v1/orgs/${ann.orgId}/secrets/${secret.secret_id}?permanent=true`);
  expect(destroyed).toMatchObject({ status: 409, body: { details: { reason: 'in_use' } } });
  // a token that may not reveal it leads it nowhere else
  const { body: token } = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
    name: 'no reveal',
    scopes: ['webhook:read', 'webhook:update', 'thread:read', 'secret:read'],
  });
  const headers = { authorization: `Bearer ${token.plaintext_token}` };
  const payload = { url: `${inbox.url}/elsewhere` };
  const refused = await app.server.inject({ method: 'PATCH', url: at, headers, payload });
  expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'secret:reveal' }]);
  expect((await app.server.inject({ method: 'PATCH', url: at, headers, payload: { name: 'Mine' } })).statusCode).toBe(
    200,
  );
});

test('refuses what is not called, what does not come, and what its maker may not read', async () => {
  const ann = await register(app);
  const create = (more: object) =>
    ann.call<{ detail: { loc: string[]; msg: string }[] }>('POST', hooksOf(ann), {
      name: 'Hook',
      url: 'https://hooks.example.test/in',
      event_types: ['thread.created'],
      workspace_id: ann.workspaceId,
      ...more,
    });
  const placeOf = async (more: object) => (await create(more)).body.detail?.map(({ loc }) => loc.join('.'));
  expect(await placeOf({ event_types: ['thread.created', 'thread.gone'] })).toEqual(['body.event_types.1']);
  expect(await placeOf({ event_types: ['notification.*'] })).toEqual(['body.event_types.0']);
  expect(await placeOf({ event_types: ['invitation.created'] })).toEqual(['body.event_types.0']);
  expect(await placeOf({ event_types: [] })).toEqual(['body.event_types']);
  expect(await placeOf({ headers_ref: 'a value' })).toEqual(['body.headers_ref']);
  expect(await placeOf({ headers_ref: 'secret://none' })).toEqual(['body.headers_ref']);
  expect((await create({ workspace_id: 'ws_01ARZ3NDEKTSV4RRFFQ69G5FAV' })).status).toBe(404);
  for (const url of hostileUrls) expect([url, await placeOf({ url })]).toEqual([url, ['body.url']]);
  const { body: token } = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
    name: 'no threads',
    scopes: ['webhook:create', 'sync:subscribe'],
  });
  const refused = await app.server.inject({
    method: 'POST',
    url: hooksOf(ann),
    headers: { authorization: `Bearer ${token.plaintext_token}` },
    payload: {
      name: 'Hook',
      url: 'https://hooks.example.test/in',
      event_types: ['thread.*'],
      workspace_id: ann.workspaceId,
    },
  });
  expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'thread:read' }]);
  const { at } = await hook(ann, 'https://hooks.example.test/', { is_enabled: false });
  const inside = hostileTargets(443).filter(({ url }) => /\/\/(?:169\.254|10\.|192\.168|\[fd)/.test(url));
  expect(inside.length).toBeGreaterThan(5);
  for (const { url } of inside) expect((await ann.call('PATCH', at, { url })).status, url).toBe(422);
  await ann.call('DELETE', at);
  const answers = [];
  for (let n = 0; n < 21; n++) answers.push((await create({ is_enabled: false })).status);
  expect(answers).toEqual([...Array(20).fill(201), 409]);
});

test('receivers that are slow, refuse, redirect inside, never end or are gone delay nobody else', async () => {
  const ann = await register(app);
  const held: (() => void)[] = [];
  const slow = await receiver((_request, response) => held.push(() => response.end()));
  const inside = await receiver();
  const redirecting = await receiver((_request, response) =>
    response.writeHead(307, { location: `${inside.url}/inside` }).end(),
  );
  const endless = await receiver((_request, response) => {
    const flood = () => {
      while (!response.destroyed && response.write('x'.repeat(64 * 1024)));
    };
    response.on('drain', flood);
    flood();
  });
  const gone = await receive();
  await gone.close();
  const hooks = await Promise.all(
    [slow.url, redirecting.url, endless.url, gone.url, 'https://127.0.0.1:1/'].map((url) => hook(ann, url)),
  );
  const inbox = await receiver();
  const good = await hook(ann, inbox.url);
  await thread(ann);
  await inbox.has(1);
  await done(good.deliveries, 1);
  const errors = await waitUntil(async () => {
    const found = await Promise.all(hooks.slice(1).map(async ({ deliveries }) => (await deliveries())[0]?.attempts[0]));
    return found.every(Boolean) && found.map((attempt) => attempt!.error);
  });
  expect(errors).toEqual(['redirect', 'too_large', 'network', 'network']);
  expect(inside.got).toEqual([]);
  await waitUntil(() => held.length > 0);
  for (const answer of held) answer();
  await done(hooks[0]!.deliveries, 1);
});

test('two nodes share the work: each event arrives once, those of a resource in order', async () => {
  const ann = await register(app);
  const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
  const inbox = await receiver();
  const { deliveries } = await hook(ann, inbox.url);
  const threads = await Promise.all(['a', 'b', 'c'].map((title) => thread(ann, title)));
  for (let n = 0; n < 8; n++) await Promise.all(threads.map((id) => rename(ann, id, `title ${n}`)));
  await done(() => deliveries('?limit=100'), 27);
  const events = inbox.got.map(({ body }) => JSON.parse(body) as { event_id: string; resource_id: string });
  expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(27);
  expect(events).toHaveLength(27);
  for (const id of threads) {
    const { rows } = await app.database.pool.query<{ id: string }>(
      `select id from events where resource_id = $1 order by xid, seq`,
      [id],
    );
    const arrived = events.filter((event) => event.resource_id === id).map(({ event_id }) => event_id);
    expect(arrived).toEqual(rows.map((row) => row.id));
  }
  await other.close();
});

describe('transactions that run while a webhook begins', () => {
  /** Holds a transaction open that has written an event, until it is told to commit. */
  async function older(place: Person, id: string): Promise<() => Promise<void>> {
    const client = await app.database.pool.connect();
    await client.query('begin');
    await insertEvent(client, place, id);
    return async () => {
      await client.query('commit');
      client.release();
    };
  }

  const idsAt = (inbox: Receiver) => inbox.got.map(({ headers }) => headers['webhook-id']);

  test('one that commits after the webhook was created is received, and what could be seen before is not', async () => {
    const ann = await register(app);
    const inbox = await receiver();
    const commit = await older(ann, 'evt_older_1');
    await insertEvent(app.database.pool, ann, 'evt_past_1');
    const { deliveries } = await hook(ann, inbox.url);
    await commit();
    await inbox.has(1);
    await insertEvent(app.database.pool, ann, 'evt_newer_1');
    await done(deliveries, 2);
    expect(idsAt(inbox)).toEqual(['evt_older_1', 'evt_newer_1']);
  });

  test('one that commits while the webhook is disabled is received when it is enabled', async () => {
    const ann = await register(app);
    const inbox = await receiver();
    const commit = await older(ann, 'evt_older_2');
    const { at, deliveries } = await hook(ann, inbox.url);
    await ann.call('PATCH', at, { is_enabled: false });
    await commit();
    await insertEvent(app.database.pool, ann, 'evt_newer_2');
    await ann.call('PATCH', at, { is_enabled: true });
    await done(deliveries, 2);
    expect(new Set(idsAt(inbox))).toEqual(new Set(['evt_newer_2', 'evt_older_2']));
  });

  test('one that commits after a webhook has begun again is received, whatever the snapshot before had', async () => {
    const ann = await register(app);
    const inbox = await receiver();
    const { id, deliveries } = await hook(ann, inbox.url, { is_enabled: false });
    const commit = await older(ann, 'evt_older_3');
    await insertEvent(app.database.pool, ann, 'evt_past_3');
    const far = '9000000000000000';
    await app.database.pool.query(
      `update webhooks set position_xid = $2::xid8, begun_snapshot = $2 || ':' || $2 || ':', is_enabled = true
        where id = $1`,
      [id, far],
    );
    await waitUntil(async () => {
      const { rows } = await app.database.pool.query<{ at: string }>(
        'select position_xid::text as at from webhooks where id = $1',
        [id],
      );
      return rows[0]!.at !== far;
    });
    await commit();
    await inbox.has(1);
    await insertEvent(app.database.pool, ann, 'evt_newer_3');
    await done(deliveries, 2);
    expect(idsAt(inbox)).toEqual(['evt_older_3', 'evt_newer_3']);
  });
});
