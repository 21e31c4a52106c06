import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nextBatch } from '../../../src/live/audit-streams/audit-batch.ts';
import { splunkEvents } from '../../../src/live/audit-streams/splunk.ts';
import type { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { type NewObject, putNewObject } from '../../../src/platform/storage/foreign-bucket.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { hostileTargets } from '../../support/hostile-targets.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { hostileUrls } from '../../support/receivers.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

let app: TestApp;
let s3: S3Server;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  s3 = await startS3();
});
afterAll(async () => {
  await app.close();
  await s3.stop();
  await Promise.all(closing.map((close) => close()));
});

interface Batch {
  headers: IncomingHttpHeaders;
  text: string;
}
interface Collector {
  url: string;
  got: Batch[];
  /** The records that it accepted, in the order in which they came. */
  records(): Record<string, unknown>[];
}
interface Stream {
  audit_stream_id: string;
  [field: string]: unknown;
}
interface Delivery {
  audit_stream_delivery_id: string;
  status: string;
  tries: number;
  sequence: number;
  record_count: number;
  request: string | null;
  attempts: { status_code: number | null; error: string | null; answer: string | null }[];
}

/** A receiver that accepts everything, unless it is told what to answer: then it says whether it accepted. */
async function collector(answer?: (batch: Batch, response: ServerResponse) => boolean): Promise<Collector> {
  const got: Batch[] = [];
  const accepted: Batch[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const bytes = Buffer.concat(parts);
    const isPacked = request.headers['content-encoding'] === 'gzip';
    const batch = { headers: request.headers, text: (isPacked ? gunzipSync(bytes) : bytes).toString() };
    got.push(batch);
    if (!answer) response.end('thanks');
    if (!answer || answer(batch, response)) accepted.push(batch);
  };
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    got,
    records: () => accepted.flatMap(({ text }) => linesOf(text)),
  };
}

const linesOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const streamsOf = ({ orgId }: Person) => `/v1/orgs/${orgId}/audit-streams`;

async function stream(person: Person, url: string, more: Record<string, unknown> = {}) {
  const given = { name: 'Stream', target_type: 'http', url, ...more };
  const { status, body } = await person.call<Stream>('POST', streamsOf(person), given);
  expect([status, body]).toEqual([201, expect.anything()]);
  const at = `${streamsOf(person)}/${body.audit_stream_id}`;
  const deliveries = async (query = '') =>
    (await person.call<{ audit_stream_deliveries: Delivery[] }>('GET', `${at}/deliveries${query}`)).body
      .audit_stream_deliveries;
  return { ...body, id: body.audit_stream_id, at, deliveries };
}

async function secret(person: Person, name: string, value: Record<string, string>): Promise<string> {
  const given = { name, secret_type: 'custom', value };
  const made = await person.call<{ secret_id: string }>('POST', `/v1/orgs/${person.orgId}/secrets`, given);
  expect(made.status).toBe(201);
  return made.body.secret_id;
}

async function workspace(person: Person, name: string): Promise<string> {
  const made = await person.call<{ workspace_id: string }>('POST', `/v1/orgs/${person.orgId}/workspaces`, {
    organization_id: person.orgId,
    name,
  });
  expect(made.status).toBe(201);
  return made.body.workspace_id;
}

const idsOf = (records: readonly Record<string, unknown>[]) => records.map(({ id }) => id as string);
/** What a stream of workspaces' creations has to send, by the rows. */
const CREATED = { actions: ['create'], resource_types: ['workspace'] };

/** The records of created workspaces, in the order of commits. */
async function createdIn({ orgId }: Person): Promise<string[]> {
  const { rows } = await app.database.pool.query<{ id: string }>(
    `select id from activity where org_id = $1 and action = 'create' and resource_type = 'workspace'
      and user_id is not null order by xid, id`,
    [orgId],
  );
  return rows.map(({ id }) => id);
}

/** As if the waits of all deliveries of a stream were over. */
const passTime = (id: string) =>
  app.database.pool.query(
    'update audit_stream_deliveries set due_at = now() where audit_stream_id = $1 and due_at > now()',
    [id],
  );

test('records arrive as the list has them, and the log says what was sent and answered', async () => {
  const ann = await register(app);
  const inbox = await collector();
  const made = await stream(ann, inbox.url);
  expect(await ann.call('GET', made.at)).toEqual({
    status: 200,
    body: {
      audit_stream_id: expect.stringMatching(/^aus_/),
      org_id: ann.orgId,
      name: 'Stream',
      description: null,
      target_type: 'http',
      url: inbox.url,
      bucket: null,
      region: null,
      prefix: null,
      credentials_ref: null,
      is_compressed: false,
      actions: [],
      resource_types: [],
      success: null,
      is_enabled: true,
      disabled_reason: null,
      acts_for: ann.userId,
      failing_since: null,
      gone_before: null,
      created_by: ann.userId,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    },
  });
  const about = await workspace(ann, 'Research');
  const sent = await waitUntil(() => inbox.records().find((one) => one.resource_id === about));
  const listed = await waitUntil(async () => {
    const { body } = await ann.call<{ activities: unknown[] }>(
      'GET',
      `/v1/orgs/${ann.orgId}/activity?resource_id=${about}&action=create`,
    );
    return body.activities[0];
  });
  expect(sent).toEqual(listed);
  // its own creation is the first
  expect(inbox.records()[0]).toMatchObject({ action: 'create', resource_type: 'audit_stream', resource_id: made.id });
  const [first] = await waitUntil(async () => {
    const found = (await made.deliveries('?status=delivered')).toReversed();
    return found.length > 0 && found;
  });
  expect(first).toMatchObject({
    sequence: 1,
    tries: 1,
    attempts: [{ status_code: 200, error: null, answer: 'thanks' }],
  });
  expect(first!.request).toContain(`"resource_id":"${made.id}"`);
  expect(inbox.got[0]!.headers).toMatchObject({
    'content-type': 'application/x-ndjson',
    'audit-batch-id': first!.audit_stream_delivery_id,
    'audit-batch-sequence': '1',
  });
  expect((await ann.call('DELETE', made.at)).status).toBe(204);
  expect(await eventsOf(app, made.id)).toEqual(['audit_stream.created', 'audit_stream.deleted']);
});

test('filters have the words of the list; bodies are compressed, with headers that no log shows', async () => {
  const ann = await register(app);
  const inbox = await collector(({ headers }, response) =>
    Boolean(response.end(`you sent ${String(headers['x-key'])}`)),
  );
  const id = await secret(ann, 'collector', { 'X-Key': 'nobody sees this' });
  const given = { ...CREATED, success: false, is_compressed: true, credentials_ref: 'secret://collector' };
  const made = await stream(ann, inbox.url, given);
  await workspace(ann, 'Succeeds');
  const failed = await ann.call('POST', `/v1/orgs/${ann.orgId}/workspaces`, { organization_id: ann.orgId, name: '' });
  expect(failed.status).toBe(422);
  await waitUntil(() => inbox.records().length > 0);
  expect(inbox.records()).toMatchObject([{ action: 'create', resource_type: 'workspace', success: false }]);
  expect(inbox.got[0]!.headers).toMatchObject({ 'x-key': 'nobody sees this', 'content-encoding': 'gzip' });
  const [log] = await waitUntil(async () => {
    const found = await made.deliveries('?status=delivered');
    return found.length > 0 && found;
  });
  expect(log!.attempts[0]!.answer).toBe('you sent [redacted]');
  const destroyed = await ann.call('DELETE', `/v1/orgs/${ann.orgId}/secrets/${id}?permanent=true`);
  expect(destroyed).toMatchObject({ status: 409, body: { details: { reason: 'in_use' } } });
  // every record was passed over or delivered, so nothing is behind but what these requests recorded
  await ann.call('PATCH', made.at, { actions: ['merge'] });
  expect((await ann.call('GET', `${made.at}/lag`)).body).toEqual({ record_count: 0, lag_seconds: 0 });
});

test('what fails is tried again in order, with the same batch, and nothing is skipped', async () => {
  const ann = await register(app);
  let isBroken = true;
  const inbox = await collector((_batch, response) => {
    response.writeHead(isBroken ? 503 : 200, isBroken ? { 'retry-after': '60' } : {}).end();
    return !isBroken;
  });
  const made = await stream(ann, inbox.url, CREATED);
  await workspace(ann, 'one');
  const waiting = await waitUntil(async () => {
    const [one] = await made.deliveries('?status=pending');
    return one?.tries === 1 && one;
  });
  // as the receiver asks: later than we would
  const { rows } = await app.database.pool.query<{ seconds: string }>(
    'select extract(epoch from due_at - queued_at) as seconds from audit_stream_deliveries where id = $1',
    [waiting.audit_stream_delivery_id],
  );
  expect(Number(rows[0]!.seconds)).toBeGreaterThan(30);
  await workspace(ann, 'two');
  const lag = await ann.call<{ record_count: number; lag_seconds: number }>('GET', `${made.at}/lag`);
  expect(lag.body).toEqual({ record_count: 2, lag_seconds: expect.any(Number) });
  isBroken = false;
  await passTime(made.id);
  await waitUntil(() => inbox.records().length === 2);
  expect(idsOf(inbox.records())).toEqual(await createdIn(ann));
  expect(new Set(inbox.got.slice(0, 2).map(({ headers }) => headers['audit-batch-id'])).size).toBe(1);
});

test('an answer that repeats what was sent is shown to those who may read it', async () => {
  const ann = await register(app);
  const inbox = await collector(
    ({ text }, response) => !response.writeHead(500, { 'retry-after': '3600' }).end(text.trimEnd()),
  );
  const made = await stream(ann, inbox.url, CREATED);
  await workspace(ann, 'one');
  const [waiting] = await waitUntil(async () => {
    const found = await made.deliveries('?status=pending');
    return found[0]?.tries === 1 && found;
  });
  expect(waiting!.attempts).toMatchObject([{ status_code: 500, answer: waiting!.request }]);
  const log = async (scopes: string[]) => {
    const given = { name: 'reader', scopes };
    const token = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, given);
    const headers = { authorization: `Bearer ${token.body.plaintext_token}` };
    const answer = await app.server.inject({ url: `${made.at}/deliveries?status=pending`, headers });
    return answer.json<{ audit_stream_deliveries: Delivery[] }>().audit_stream_deliveries;
  };
  expect(await log(['audit_stream:read'])).toMatchObject([
    { request: null, attempts: [{ status_code: 500, error: null, answer: null }] },
  ]);
  expect(await log(['audit_stream:read', 'activity:read'])).toMatchObject([
    { request: waiting!.request, attempts: [{ status_code: 500, answer: waiting!.request }] },
  ]);
});

test('what waits when a stream is changed goes to its new address', async () => {
  const ann = await register(app);
  const broken = await collector((_batch, response) => !response.writeHead(500).end());
  const made = await stream(ann, broken.url, CREATED);
  await workspace(ann, 'one');
  await waitUntil(async () => (await made.deliveries('?status=pending'))[0]?.tries === 1);
  const inbox = await collector();
  expect((await ann.call('PATCH', made.at, { url: inbox.url })).status).toBe(200);
  await workspace(ann, 'two');
  await waitUntil(() => inbox.records().length === 2);
  expect(idsOf(inbox.records())).toEqual(await createdIn(ann));
  const log = (await made.deliveries()).toReversed();
  expect(log.map(({ status, sequence }) => [status, sequence]).slice(0, 2)).toEqual([
    ['replaced', 1],
    [expect.any(String), 1],
  ]);
});

test('a test sends one record, and says nothing of what fails', async () => {
  const ann = await register(app);
  let isBroken = true;
  const inbox = await collector((_batch, response) => !response.writeHead(isBroken ? 500 : 200).end());
  const made = await stream(ann, inbox.url, { actions: ['merge'] });
  const sent = await ann.call<Delivery>('POST', `${made.at}/test`);
  expect([sent.status, sent.body]).toMatchObject([202, { is_test: true, status: 'pending', record_count: 1 }]);
  const [batch] = await waitUntil(() => inbox.got.length > 0 && inbox.got);
  expect(linesOf(batch!.text)).toMatchObject([{ resource_id: made.id, metadata: { is_test: true } }]);
  await waitUntil(async () => (await made.deliveries('?status=failed')).length === 1);
  expect((await ann.call('GET', made.at)).body).toMatchObject({ failing_since: null });
  // as if a batch had failed before: only what waits, or another address, ends it
  await app.database.pool.query('update audit_streams set failing_since = now() where id = $1', [made.id]);
  isBroken = false;
  await ann.call('POST', `${made.at}/test`);
  await waitUntil(async () => (await made.deliveries('?status=delivered')).length === 1);
  expect((await ann.call('GET', made.at)).body).toMatchObject({ failing_since: expect.any(String) });
  const unchanged = await ann.call('PATCH', made.at, { url: inbox.url });
  expect(unchanged.body).toMatchObject({ failing_since: expect.any(String) });
  const moved = await ann.call('PATCH', made.at, { url: `${inbox.url}/new` });
  expect([moved.status, moved.body]).toMatchObject([200, { failing_since: null }]);
  // tests that wait are few: each look reads them
  await app.database.pool.query(
    `insert into audit_stream_deliveries (id, org_id, audit_stream_id, resource_id, is_test, records, size_bytes,
        first_at, last_at, excerpt, due_at)
      select 'asd_' || n || $1, $2, $1, 'asd_' || n || $1, true, 1, 1, now(), now(), '', now() + interval '1 day'
      from generate_series(1, 10) n`,
    [made.id, ann.orgId],
  );
  const full = await ann.call('POST', `${made.at}/test`);
  expect(full).toMatchObject({ status: 409, body: { details: { reason: 'limit_reached', limit: 10 } } });
  await ann.call('PATCH', made.at, { is_enabled: false });
  const refused = await ann.call('POST', `${made.at}/test`);
  expect(refused).toMatchObject({ status: 409, body: { details: { reason: 'invalid_status' } } });
});

test('five days of failures disable it, with a notification; enabled again it goes on where it was', async () => {
  const ann = await register(app);
  let status = 500;
  const inbox = await collector((_batch, response) => Boolean(response.writeHead(status).end()) && status === 200);
  const made = await stream(ann, inbox.url, CREATED);
  await workspace(ann, 'one');
  await waitUntil(async () => (await made.deliveries('?status=pending'))[0]?.tries === 1);
  const { pool } = app.database;
  await pool.query(`update audit_streams set failing_since = now() - interval '6 days' where id = $1`, [made.id]);
  await passTime(made.id);
  await waitFor(async () =>
    expect((await ann.call('GET', made.at)).body).toMatchObject({ is_enabled: false, disabled_reason: 'failing' }),
  );
  expect(await eventsOf(app, made.id)).toContain('audit_stream.disabled');
  const query = 'query { notifications(isResolved: false) { nodes { sourceEvent } } }';
  const { data } = await ann.ask<{ notifications: { nodes: { sourceEvent: string }[] } }>(query);
  expect(data.notifications.nodes.map(({ sourceEvent }) => sourceEvent)).toContain('audit_stream.disabled');
  await workspace(ann, 'two');
  // as if it had been disabled for months
  await pool.query(
    `update audit_stream_deliveries set first_at = now() - interval '200 days'
    where audit_stream_id = $1`,
    [made.id],
  );
  status = 200;
  const enabled = await ann.call<Stream>('PATCH', made.at, { is_enabled: true });
  expect(enabled.body).toMatchObject({ disabled_reason: null, failing_since: null, gone_before: expect.any(String) });
  await waitUntil(() => inbox.records().length === 2);
  expect(idsOf(inbox.records())).toEqual(await createdIn(ann));
});

test('Splunk gets its events with the token of the vault, and must say that it has accepted them', async () => {
  const ann = await register(app);
  let answer = { text: 'Server is busy', code: 9 };
  const splunk = await collector((_batch, response) => Boolean(response.end(JSON.stringify(answer))) && !answer.code);
  await secret(ann, 'hec', { token: '0f4a-token' });
  const made = await stream(ann, splunk.url, { ...CREATED, target_type: 'splunk', credentials_ref: 'secret://hec' });
  const about = await workspace(ann, 'one');
  const [waiting] = await waitUntil(async () => {
    const found = await made.deliveries('?status=pending');
    return found[0]?.tries === 1 && found;
  });
  expect(waiting!.attempts).toMatchObject([{ status_code: 200, error: 'not_accepted' }]);
  answer = { text: 'Success', code: 0 };
  await passTime(made.id);
  const [event] = await waitUntil(() => splunk.records().length > 0 && splunk.records());
  expect(event).toEqual({
    time: expect.any(Number),
    source: 'platform:activity',
    sourcetype: '_json',
    event: expect.objectContaining({ resource_id: about, action: 'create' }),
  });
  expect(Date.parse((event!.event as { timestamp: string }).timestamp)).toBe(Math.round(Number(event!.time) * 1_000));
  expect(splunk.got[0]!.headers.authorization).toBe('Splunk 0f4a-token');
});

test('files of a bucket have the records of an hour, and no file is written over', async () => {
  const ann = await register(app);
  await secret(ann, 'bucket', { access_key_id: 'S3RVER', secret_access_key: 'S3RVER' });
  const made = await stream(ann, s3.url, {
    ...CREATED,
    target_type: 's3',
    bucket: 'files',
    prefix: 'audit/',
    credentials_ref: 'secret://bucket',
  });
  expect(made).toMatchObject({ is_compressed: true });
  // a test is a file at once
  await ann.call('POST', `${made.at}/test`);
  await waitUntil(async () => (await made.deliveries('?status=delivered')).length === 1);
  await workspace(ann, 'one');
  await workspace(ann, 'two');
  // as if the next hour had begun
  const { rows } = await app.database.pool.query<{ hour: Date }>(
    `update activity set timestamp = date_trunc('hour', now()) - interval '30 minutes'
      where org_id = $1 returning timestamp as hour`,
    [ann.orgId],
  );
  const [date, time] = rows[0]!.hour.toISOString().split('T');
  const delivered = await waitUntil(async () => {
    const found = (await made.deliveries('?status=delivered')).filter(({ sequence }) => sequence > 0);
    return found.reduce((sum, { record_count }) => sum + record_count, 0) === 2 && found;
  });
  const files = s3.requests
    .filter((request) => request.startsWith(`PUT audit/${ann.orgId}/`))
    .map((request) => request.slice('PUT '.length).split('?')[0]);
  // two files if a transaction, of whichever database of the server, was open while only one of the records was there
  expect(delivered.map(({ sequence }) => sequence).toSorted((a, b) => a - b)).toEqual(
    delivered.length === 1 ? [1] : [1, 2],
  );
  for (const { sequence, audit_stream_delivery_id: name } of delivered)
    expect(files).toContain(`audit/${ann.orgId}/${date}/${time!.slice(0, 2)}/000000000${sequence}-${name}.ndjson.gz`);
  expect(files).toContainEqual(expect.stringMatching(/\/test-asd_\w+\.ndjson\.gz$/));
  // a wrong key is refused by the store, and the log says so without showing it
  s3.failNext('PUT', 1, 403);
  await ann.call('POST', `${made.at}/test`);
  const [refused] = await waitUntil(async () => {
    const found = await made.deliveries('?status=failed');
    return found.length > 0 && found;
  });
  expect(refused!.attempts).toMatchObject([{ status_code: 403 }]);
  // one that is there already is this very file
  s3.failNext('PUT', 1, 412);
  await ann.call('POST', `${made.at}/test`);
  await waitUntil(async () => (await made.deliveries('?status=delivered')).length === delivered.length + 2);
  // what the client of the store cannot work with is an attempt like any other
  await app.database.pool.query(`update audit_streams set region = '-' where id = $1`, [made.id]);
  const { body: faulty } = await ann.call<Delivery>('POST', `${made.at}/test`);
  const ended = await waitUntil(async () => {
    const found = await made.deliveries('?status=failed');
    return found.find((one) => one.audit_stream_delivery_id === faulty.audit_stream_delivery_id);
  });
  expect(ended).toMatchObject({ tries: 1, attempts: [{ status_code: null, error: 'fault' }] });
});

test('a client of a store that wants to send something else than an object sends nothing', async () => {
  const sent: string[] = [];
  const outbound = {
    request: async ({ method }: { method: string }) => {
      sent.push(method);
      throw new Error('nothing is answered');
    },
  } as unknown as Outbound;
  const object: NewObject = {
    endpoint: 'https://s3express-use1-az4.us-east-1.amazonaws.com',
    region: 'us-east-1',
    bucket: 'logs--use1-az4--x-s3',
    credentials: { accessKeyId: 'AKIA', secretAccessKey: 'abc' },
    key: 'one',
    body: new Uint8Array(),
    contentType: 'text/plain',
  };
  const call = { owner: 'nobody', signal: new AbortController().signal, timeoutMs: 1_000 };
  await expect(putNewObject(outbound, object, call)).rejects.toThrow();
  expect(sent.filter((method) => method !== 'PUT')).toEqual([]);
});

test('a batch that is too large for its receiver comes in smaller ones, in order', async () => {
  const ann = await register(app);
  let isDown = true;
  const inbox = await collector(({ text }, response) => {
    const status = isDown ? 503 : linesOf(text).length > 2 ? 413 : 200;
    response.writeHead(status).end();
    return status === 200;
  });
  const made = await stream(ann, inbox.url, CREATED);
  await workspace(ann, 'zero');
  await waitUntil(async () => (await made.deliveries('?status=pending'))[0]?.tries === 1);
  // all of these are one batch: they commit together
  await app.database.pool.query(
    `insert into activity (id, org_id, user_id, principal_type, action, resource_type, status_code, success)
      select 'act_' || n || $1, $1, $2, 'user', 'create', 'workspace', 201, true from generate_series(1, 9) n`,
    [ann.orgId, ann.userId],
  );
  isDown = false;
  await passTime(made.id);
  await waitUntil(() => inbox.records().length >= 10);
  expect(idsOf(inbox.records())).toEqual(await createdIn(ann));
  const log = await waitUntil(async () => {
    const found = (await made.deliveries()).toReversed();
    return found.every(({ status }) => status !== 'pending') && found;
  });
  const refused = log.filter(({ attempts }) => attempts.some(({ status_code }) => status_code === 413));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(['replaced']));
  const sequences = log.filter(({ status }) => status === 'delivered').map(({ sequence }) => sequence);
  expect(sequences).toEqual(sequences.map((_, index) => index + 1));
});

test('receivers that are slow, redirect inside, never end or are gone delay nobody else', async () => {
  const ann = await register(app);
  const held: (() => void)[] = [];
  const slow = await collector((_batch, response) => Boolean(held.push(() => response.end())));
  const inside = await collector();
  const redirecting = await collector((_batch, response) =>
    Boolean(response.writeHead(307, { location: inside.url }).end()),
  );
  const endless = await collector((_batch, response) => {
    const flood = () => {
      while (!response.destroyed && response.write('x'.repeat(64 * 1024)));
    };
    response.on('drain', flood);
    flood();
    return false;
  });
  const urls = [slow.url, redirecting.url, endless.url, 'http://127.0.0.1:9/', 'https://127.0.0.1:9/'];
  const streams: Awaited<ReturnType<typeof stream>>[] = [];
  for (const url of urls) streams.push(await stream(ann, url, CREATED));
  const inbox = await collector();
  await stream(ann, inbox.url, CREATED);
  await workspace(ann, 'one');
  await waitUntil(() => inbox.records().length === 1);
  const errors = await waitUntil(async () => {
    const found = await Promise.all(streams.slice(1).map(async (one) => (await one.deliveries())[0]?.attempts[0]));
    return found.every(Boolean) && found.map((attempt) => attempt!.error);
  });
  expect(errors).toEqual(['redirect', 'too_large', 'network', 'network']);
  expect(inside.got).toEqual([]);
  await waitUntil(() => held.length > 0);
  for (const answer of held) answer();
  await waitUntil(async () => (await streams[0]!.deliveries('?status=delivered')).length === 1);
});

test('refuses what is not called, what is for another target, and who may not read all activity', async () => {
  const ann = await register(app);
  await secret(ann, 'key', { token: 'abc' });
  const create = (more: object) =>
    ann.call<{ detail: { loc: string[] }[] }>('POST', streamsOf(ann), {
      name: 'Stream',
      target_type: 'http',
      url: 'https://logs.example.test/in',
      is_enabled: false,
      ...more,
    });
  const placesOf = async (more: object) => (await create(more)).body.detail?.map(({ loc }) => loc.join('.'));
  const s3Of = { target_type: 's3', url: 'https://s3.example.test', bucket: 'logs', credentials_ref: 'secret://key' };
  expect(await placesOf({ actions: ['create', 'vanish'] })).toEqual(['body.actions.1']);
  expect(await placesOf({ resource_types: ['unicorn'] })).toEqual(['body.resource_types.0']);
  expect(await placesOf({ bucket: 'logs', region: 'eu' })).toEqual(['body.bucket', 'body.region']);
  expect(await placesOf({ target_type: 'splunk' })).toEqual(['body.credentials_ref']);
  expect(await placesOf({ ...s3Of, bucket: undefined })).toEqual(['body.bucket']);
  expect(await placesOf({ ...s3Of, bucket: '../other' })).toEqual(['body.bucket']);
  expect(await placesOf({ ...s3Of, bucket: 'logs--use1-az4--x-s3' })).toEqual(['body.bucket']);
  for (const region of ['-', 'a-', '-a', 'a.b']) expect(await placesOf({ ...s3Of, region })).toEqual(['body.region']);
  expect(await placesOf({ ...s3Of, url: 'https://s3.example.test/other' })).toEqual(['body.url']);
  expect(await placesOf({ ...s3Of, is_compressed: false })).toEqual(['body.is_compressed']);
  expect(await placesOf({ credentials_ref: 'a value' })).toEqual(['body.credentials_ref']);
  expect(await placesOf({ credentials_ref: 'secret://none' })).toEqual(['body.credentials_ref']);
  for (const url of hostileUrls) expect([url, await placesOf({ url })]).toEqual([url, ['body.url']]);
  const { at } = await stream(ann, 'https://logs.example.test/', { is_enabled: false });
  const within = hostileTargets(443).filter(({ url }) => /\/\/(?:169\.254|10\.|192\.168|\[fd)/.test(url));
  for (const { url } of within) expect((await ann.call('PATCH', at, { url })).status, url).toBe(422);

  const token = async (more: object) => {
    const given = { name: 'token', scopes: ['audit_stream:create', 'audit_stream:update', 'secret:read'], ...more };
    const made = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, given);
    expect(made.status).toBe(201);
    return { authorization: `Bearer ${made.body.plaintext_token}` };
  };
  const payload = { name: 'Stream', target_type: 'http', url: 'https://logs.example.test/in', is_enabled: false };
  const ask = async (headers: { authorization: string }, more: object = {}) => {
    const answer = await app.server.inject({
      method: 'POST',
      url: streamsOf(ann),
      headers,
      payload: { ...payload, ...more },
    });
    return [answer.statusCode, answer.json().details?.required_permission];
  };
  expect(await ask(await token({}))).toEqual([403, 'activity:read']);
  const all = ['audit_stream:create', 'activity:read', 'secret:read'];
  const reading = await token({ scopes: all });
  expect(await ask(reading, { credentials_ref: 'secret://key' })).toEqual([403, 'secret:reveal']);
  expect(await ask(reading)).toEqual([201, undefined]);
  const [status] = await ask(await token({ scopes: all, workspace_ids: [ann.workspaceId] }));
  expect(status).toBe(403);
  const statuses = [];
  for (let n = 0; n < 9; n++) statuses.push((await create({})).status);
  expect(statuses).toEqual([...Array(8).fill(201), 409]);
});

test('who may not read all activity any more has no stream that goes on; who enables it takes its place', async () => {
  const ann = await register(app);
  const admin = await colleague(app, ann, 'admin');
  const inbox = await collector();
  const made = await stream(
    { ...admin, orgId: ann.orgId, workspaceId: ann.workspaceId, home: ann.home },
    inbox.url,
    CREATED,
  );
  const member = `/v1/orgs/${ann.orgId}/members/${admin.userId}`;
  expect((await ann.call('PATCH', member, { role: 'member' })).status).toBe(200);
  await workspace(ann, 'one');
  await waitFor(async () =>
    expect((await ann.call('GET', made.at)).body).toMatchObject({ is_enabled: false, disabled_reason: 'no_access' }),
  );
  expect(inbox.records()).toEqual([]);
  const enabled = await ann.call('PATCH', made.at, { is_enabled: true });
  expect(enabled.body).toMatchObject({ is_enabled: true, acts_for: ann.userId });
  await waitUntil(() => inbox.records().length === 1);
});

test('two nodes share the work, and a transaction that commits late is not skipped', async () => {
  const ann = await register(app);
  const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
  const inbox = await collector();
  const late = await app.database.pool.connect();
  const write = (client: { query(text: string, values: unknown[]): Promise<unknown> }, id: string) =>
    client.query(
      `insert into activity (id, org_id, user_id, principal_type, action, resource_type, status_code, success)
        values ($1, $2, $3, 'user', 'create', 'workspace', 201, true)`,
      [id, ann.orgId, ann.userId],
    );
  await late.query('begin');
  await write(late, `act_before_${ann.orgId}`);
  await write(app.database.pool, `act_past_${ann.orgId}`);
  const made = await stream(ann, inbox.url, CREATED);
  for (let n = 0; n < 20; n++) await write(app.database.pool, `act_${n}_${ann.orgId}`);
  await write(late, `act_zlate_${ann.orgId}`);
  await late.query('commit');
  late.release();
  await Promise.all(['a', 'b', 'c'].map((name) => workspace(ann, name)));
  const wanted = (await createdIn(ann)).filter((id) => !id.startsWith('act_past'));
  await waitUntil(() => new Set(idsOf(inbox.records())).size >= wanted.length);
  expect([...new Set(idsOf(inbox.records()))]).toEqual(wanted);
  await waitUntil(async () => (await made.deliveries('?status=pending')).length === 0);
  await other.close();
});

describe('a batch', () => {
  const at = (time: string, isWanted = true, line = '{}\n') => ({
    xid: '1',
    id: time,
    timestamp: new Date(`2026-01-01T${time}Z`),
    line,
    isWanted,
  });
  const now = new Date('2026-01-01T11:30:00Z');
  const TO_HTTP = { targetType: 'http', batchBytes: null } as const;
  const TO_S3 = { targetType: 's3', batchBytes: null } as const;
  const timesOf = (batch: ReturnType<typeof nextBatch>) => batch && [batch.last.id, batch.wanted.map(({ id }) => id)];

  test('is bounded by its bytes, and has one record at least', () => {
    const big = 'x'.repeat(300_000);
    const batch = nextBatch([at('10:00:00', true, big), at('10:00:01', true, big)], TO_HTTP, now)!;
    expect([timesOf(batch), batch.isCut]).toEqual([['10:00:00', ['10:00:00']], true]);
    const huge = nextBatch(
      [at('10:00:00', true, 'x'.repeat(2_000_000))],
      { targetType: 'splunk', batchBytes: null },
      now,
    );
    expect(timesOf(huge)).toEqual(['10:00:00', ['10:00:00']]);
    // what is around the lines of Splunk counts, and what a receiver has refused
    const many = Array.from({ length: 1_000 }, () => at('10:00:00', true, 'x'.repeat(500)));
    const wrapped = nextBatch(many, { targetType: 'splunk', batchBytes: null }, now)!;
    const text = splunkEvents(wrapped.wanted);
    expect([wrapped.isCut, text.length <= 512 * 1024, text.length > 480 * 1024]).toEqual([true, true, true]);
    expect(nextBatch(many, { ...TO_HTTP, batchBytes: 1_999 }, now)!.wanted).toHaveLength(3);
    expect(nextBatch([], TO_HTTP, now)).toBeNull();
  });

  test('for a bucket ends with the hour, waits for its end, and takes late records along', () => {
    const records = [at('10:59:59'), at('09:58:00'), at('11:00:00'), at('10:59:58')];
    expect(timesOf(nextBatch(records, TO_S3, now))).toEqual(['09:58:00', ['10:59:59', '09:58:00']]);
    expect(nextBatch(records.slice(2), TO_S3, now)).toBeNull();
    // what nobody wants holds up nothing
    expect(timesOf(nextBatch([at('11:00:00', false), at('11:00:01')], TO_S3, now))).toEqual(['11:00:00', []]);
    const over = new Date('2026-01-01T12:00:00Z');
    expect(timesOf(nextBatch(records.slice(2), TO_S3, over))).toEqual(['10:59:58', ['11:00:00', '10:59:58']]);
  });
});
