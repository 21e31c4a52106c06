import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { expendable } from '../support/expendable.ts';
import { whileJobsWait } from '../support/held-jobs.ts';
import { gentlestFirst, operations, routeOf } from '../support/operations.ts';
import { closeProviders, PUBLIC_URL, prepared } from '../support/prepared.ts';
import { injectable, type Parts } from '../support/requests.ts';
import { stopClock } from '../support/stopped-clock.ts';
import {
  changesBetween,
  comparable,
  expectAlike,
  idsOfSnapshot,
  type Snapshot,
  snapshotOf,
} from '../support/traces.ts';
import { waitUntil } from '../support/wait.ts';
import { createWorld } from '../support/world.ts';
import { askWritten, restBodyOf } from '../support/written.ts';

/** Questions in the shape of a change, because the specification has them so. */
const withoutChange = ['POST /v1/auth/sso/discover'];

/*
 * One world in two databases that are copies of each other: every change runs over REST in one and over GraphQL in the
 * other. Answers, rows, audit trail, outbox and mails must be the same.
 */
const mutations = gentlestFirst(
  operations.filter((operation) => operation.type === 'mutation' && !withoutChange.includes(routeOf(operation))),
);

/** They give a challenge: what is done with it is recorded. */
const beginnings = [
  'POST /v1/auth/factors/proof/begin',
  'POST /v1/auth/passkeys/begin',
  'POST /v1/auth/passkeys/sign-in/begin',
];

/**
 * Changes by nobody in particular, of which the audit trail says nothing. A new one is added here on purpose, or not at
 * all.
 */
const withoutRecord = [
  ...beginnings,
  'POST /v1/auth/forgot-password',
  'POST /v1/auth/resend-verification',
  'POST /v1/auth/sso/initiate',
];

/** They give an address, which says itself what it is for, or what is there: that leaves only a record. */
const withoutRows: readonly string[] = [
  ...beginnings,
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/connections/{tool_instance_id}/token',
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/connections/{instance_id}/token',
  // keys have no refresh
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/connections/{tool_instance_id}/refresh',
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/connections/{instance_id}/refresh',
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/uploads',
  'POST /v1/orgs/{org_id}/tools/import/preview',
  'POST /v1/orgs/{org_id}/tools/{tool_id}/import/preview',
];

let keysDir: string;
let databases: TestDatabase[];
let rest: TestApp;
let graphql: TestApp;
let known: Set<string>;
let ownerId: string;
const requests = new Map<CompiledOperation, Parts>();
/** When they were made. */
const madeAt = new Map<CompiledOperation, number>();

/** A code of an app is good for half a minute, and a challenge for five. On a busy machine their turn comes later. */
const endsSoon = /^POST \/v1\/auth\/(?:login\/complete|factors\/|passkeys|sso\/callback\/)/;

beforeAll(async () => {
  keysDir = mkdtempSync(path.join(os.tmpdir(), 'keys-'));
  // all have the files that the first one received: a job that finds none would try again later, in another change
  const env = { KEYS_DIR: keysDir, DATA_DIR: path.join(keysDir, 'data'), OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL };
  const original = await createTestDatabase();
  const maker = await startTestApp({ databaseUrl: original.url, env });
  const world = await createWorld(maker);
  ownerId = world.accounts.owner.userId;
  for (const operation of mutations) {
    const parts = await expendable(maker, world, operation, 'owner', { requiredOnly: false });
    await prepared[routeOf(operation)]?.(maker, world, parts);
    requests.set(operation, parts);
    madeAt.set(operation, Date.now());
  }
  // who is present stays so: the end would come in the middle of another change
  await maker.database.pool.query(`create function stay() returns trigger language plpgsql
    as 'begin return null; end'`);
  await maker.database.pool.query(
    'create trigger stay before delete on presences for each row execute function stay()',
  );
  await settled(maker);
  await maker.close();
  const copy = await createTestDatabase({ template: new URL(original.url).pathname.slice(1) });
  databases = [original, copy];
  rest = await startTestApp({ databaseUrl: original.url, env });
  graphql = await startTestApp({ databaseUrl: copy.url, env });
  known = idsOfSnapshot(await snapshotOf(rest.database.pool));
});

afterAll(async () => {
  await rest.close();
  await graphql.close();
  await closeProviders();
  for (const database of databases) await database.drop();
  rmSync(keysDir, { recursive: true, force: true });
});

/** Everything that happens a moment later by itself has happened. */
async function settled(app: TestApp, before?: Snapshot): Promise<Snapshot> {
  await app.jobsDone();
  // what a busy machine could not read in time is tried again, which would come in the middle of another change
  const unread = `select 1 from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id
    where t.identifier = 'index_artifact' and j.attempts < j.max_attempts limit 1`;
  await waitUntil(async () => (await app.database.pool.query(unread)).rowCount === 0);
  await app.services.activity.flush();
  while ((await app.services.buckets.provisionPending()) > 0);
  return snapshotOf(app.database.pool, before);
}

const latest = new Map<TestApp, Snapshot>();

/** What a request leaves behind: rows, and mails. */
async function tracesOf<T>(app: TestApp, work: () => Promise<T>) {
  const [before, mails] = [latest.get(app) ?? (await settled(app)), app.mails.length];
  const answer = await work();
  const after = await settled(app, before);
  latest.set(app, after);
  // several leave at once, in whatever order
  const sent = app.mails.slice(mails).sort((a, b) => a.subject.localeCompare(b.subject));
  return { answer, rows: changesBetween(before, after), mails: sent };
}

type Traces = Awaited<ReturnType<typeof tracesOf>>;

/** What a request left behind, without how it came in: each record must say that as `cameIn` does. */
function left({ rows, mails }: Traces, records: number, cameIn: Record<string, unknown>) {
  const byRequest = (rows.activity?.written ?? []).filter(({ principal_type }) => principal_type !== 'system');
  expect(byRequest).toHaveLength(records);
  for (const record of byRequest) {
    expect(record).toMatchObject(cameIn);
    for (const key of Object.keys(cameIn)) delete record[key];
    // only a record of GraphQL names its field
    const metadata = record.metadata as Record<string, unknown>;
    expect(metadata.graphql_field === undefined).toBe(cameIn.path !== '/graphql');
    delete metadata.graphql_field;
  }
  // what a task works off soon after a change of language or of models, in the middle of whatever is looked at then
  const { search_language_changes: _due, embedding_changes: _dueToo, ...others } = rows;
  return { rows: others, mails };
}

/** Where REST takes a form, GraphQL takes the id of a file that was sent before: the same file. */
async function withFileSent({ body }: CompiledOperation, parts: Parts): Promise<Parts> {
  if (!body?.fileField) return parts;
  const given = parts.body as Record<string, unknown>;
  const owner = {
    orgId: parts.params.org_id!,
    workspaceId: parts.params.workspace_id!,
    namespaceId: parts.params.namespace_id!,
    userId: ownerId,
  };
  const { id } = await graphql.services.files.receive(owner, {
    content: Readable.from([Buffer.from(String(given[body.fileField]))]),
    fileName: 'file.bin',
    contentType: 'application/octet-stream',
  });
  return { ...parts, body: { ...given, [body.fileField]: id } };
}

/** The addresses of a sign-in and of an upload without what is random and packed. */
const withoutQuery = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body).replace(/("redirect_url":"[^"?]+)\?[^"]+|("url":"[^"]+\/files\/uploads\/)[^"]+/, '$1$2'),
  );

describe.each(mutations.map((operation) => [routeOf(operation), operation] as const))('%s', (title, operation) => {
  test('REST and GraphQL do the same: answer, rows, events, records and mails', async () => {
    const parts = requests.get(operation)!;
    // also, both ways then send one code
    if (endsSoon.test(title)) stopClock(madeAt.get(operation));
    parts.headers['x-trace-id'] = operation.name;
    const now = Date.now();
    const request = injectable(operation, parts);
    // an answer may show the first step of what its change has started
    const calmly = <T>(app: TestApp, work: () => Promise<T>) =>
      /\/(?:artifacts|uploads)/.test(title) ? whileJobsWait(app, work) : work();
    const one = await tracesOf(rest, () => calmly(rest, async () => rest.server.inject(request)));
    expect(one.answer.statusCode, `${title} needs a sample in test/support/prepared.ts: ${one.answer.body}`).toBe(
      operation.status,
    );
    const other = await tracesOf(graphql, () =>
      calmly(graphql, async () => askWritten(graphql, operation, await withFileSent(operation, parts))),
    );
    expect(other.answer.errors).toBeUndefined();

    const body = one.answer.body === '' ? null : one.answer.json<unknown>();
    const wanted = operation.status === 204 ? null : restBodyOf(operation, other.answer.data!);
    const answers = [body, wanted].map((answer) => [comparable({ body: withoutQuery(answer) }, known, now)]);
    expectAlike(answers[0]!, answers[1]!, 'answer');

    const records = withoutRecord.includes(title) ? 0 : 1;
    const cameAs = { method: operation.method, path: request.url.split('?')[0], status_code: operation.status };
    const byRest = comparable(left(one, records, cameAs), known, now);
    const cameIn = { method: 'POST', path: '/graphql', status_code: 200 };
    const byGraphQL = comparable(left(other, records, cameIn), known, now);
    const changed = Object.keys(byRest.rows).filter((table) => table !== 'activity');
    expect(changed.length > 0, 'it changes something').toBe(!withoutRows.includes(title));
    expect(Object.keys(byGraphQL.rows)).toEqual(Object.keys(byRest.rows));
    for (const [table, { gone, written: came }] of Object.entries(byRest.rows)) {
      expectAlike(byGraphQL.rows[table]!.gone, gone, `rows of ${table} that went`);
      expectAlike(byGraphQL.rows[table]!.written, came, `rows of ${table} that came`);
    }
    expectAlike(byGraphQL.mails, byRest.mails, 'mails');
  });
});

test('every change is in here', () => {
  expect(mutations.length).toBeGreaterThan(50);
  const routes = mutations.map(routeOf);
  expect([...Object.keys(prepared), ...withoutRecord].filter((route) => !routes.includes(route))).toEqual([]);
});
