import { randomBytes } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { waitFor } from '../../support/wait.ts';
import type { Hand } from './hand.ts';
import { plantInInstance } from './instance-planting.ts';
import { newSecret, type Secret, secretBody, secretsOf } from './new-secret.ts';

/**
 * Each of these sends a random text where a secret goes in, in every way that could make it come out again. It must
 * come out of nothing but the answers that are meant to show it.
 */
interface Planting {
  plant: (marker: string, hand: Hand) => Promise<void>;
  /** No answer is meant to show it. */
  isNeverShown?: true;
  /** Where the text may lie in the database in the clear, as `table.column`: nowhere, unless there is a reason. */
  allowed?: readonly string[];
}

const plantings: Record<string, Planting> = {
  'the value of a secret': {
    plant: async (marker, { owner, member, send, ask, shown }) => {
      const value = { [`key-${marker.slice(0, 4)}`]: marker, nested: { inner: marker } };
      const url = secretsOf(owner);
      const key = { 'idempotency-key': `k-${marker.slice(0, 8)}` };
      const body = secretBody({ value });
      const made = await send(owner, 'POST', url, body, key);
      expect(made.statusCode).toBe(201);
      expect((await send(owner, 'POST', url, body, key)).headers['idempotent-replayed']).toBe('true');
      expect((await send(owner, 'POST', url, { ...body, name: 'other' }, key)).statusCode).toBe(409);
      const secret = `${url}/${made.json<Secret>().secret_id}`;
      expect(
        (await send(owner, 'POST', `${secret}/rotate`, { value }, { 'idempotency-key': 'rotate' })).statusCode,
      ).toBe(200);
      expect((await send(owner, 'POST', `${secret}/rotate`, { value, expected_version: 9 })).statusCode).toBe(412);
      expect((await send(owner, 'POST', url, body)).statusCode).toBe(409);
      expect((await send(owner, 'PATCH', secret, { value, name: 'renamed' })).statusCode).toBe(200);

      // everything that can be wrong with a request that holds it
      const wrong: [object | string, number][] = [
        [{ ...body, name: undefined }, 422],
        [{ ...body, name: 5, secret_type: 'X Y' }, 422],
        [{ ...body, value: marker }, 422],
        [{ ...body, value: [marker] }, 422],
        [{ ...body, value: { a: [marker] } }, 422],
        [{ ...body, value: { a: { b: `${marker}\0` } } }, 422],
        [{ ...body, value: { a: marker.repeat(2_000) } }, 422],
        [{ ...body, workspace_id: 'ws_unknown' }, 404],
        [{ ...body, workspace_id: owner.workspaceId, namespace_id: 'ns_unknown' }, 404],
        [`{"name": "x", "secret_type": "token", "value": {"a": "${marker}"}, oops}`, 422],
        [`{"value": {"a": "${marker}`, 422],
      ];
      for (const [payload, status] of wrong) {
        const answer = await send(owner, 'POST', url, payload, { 'content-type': 'application/json' });
        expect(answer.statusCode, answer.body).toBe(status);
      }
      expect((await send(owner, 'POST', `${secret}/rotate`, { value: { a: [marker] } })).statusCode).toBe(422);
      expect((await send(owner, 'POST', url, JSON.stringify(body), { 'content-type': 'text/plain' })).statusCode).toBe(
        415,
      );
      expect((await send(member, 'POST', url, secretBody({ value }))).statusCode).toBe(403);
      expect((await send(member, 'POST', `${secret}/rotate`, { value })).statusCode).toBe(403);
      expect((await send(member, 'GET', `${secret}?include_value=true`)).statusCode).toBe(403);
      expect((await send(member, 'GET', `${secret}/versions`)).statusCode).toBe(200);
      for (const path of ['', `?limit=5`, '?status=deleted']) await send(owner, 'GET', url + path);

      const create =
        'mutation ($orgId: ID!, $input: CreateSecretInput!) ' +
        '{ createSecret(orgId: $orgId, input: $input) { id value } }';
      const { orgId } = owner;
      const good = { name: 'from GraphQL', secretType: 'token', value };
      for (const input of [
        good,
        good,
        { ...good, name: 5 },
        { ...good, unknown: 1 },
        { ...good, value: marker },
        { ...good, value: [marker] },
        { ...good, value: { a: [marker] } },
        { ...good, workspaceId: 'ws_unknown' },
        { value },
        marker,
      ])
        await ask(owner, create, { orgId, input });
      await ask(owner, create.replace('{ id value }', '{ id nothing }'), { orgId, input: good });
      await ask(owner, create.replace('($orgId: ID!', '($orgId: Int!'), { orgId: marker, input: good });
      await ask(
        owner,
        `mutation { createSecret(orgId: "${orgId}",
          input: { name: "n", secretType: "t", value: "${marker}" }) { id } }`,
      );
      await ask(
        owner,
        `mutation { createSecret(orgId: "${orgId}",
          input: { name: 5, secretType: "t", value: { a: "${marker}" } }) { id } }`,
      );
      await ask(
        owner,
        `mutation { createSecret(orgId: "${orgId}",
          input: { name: "lit", secretType: "t", value: { a: "${marker}" } }) { id value } }`,
      );
      await ask(owner, `mutation { createSecret(orgId: "${orgId}", input: { value: { a: "${marker}" } `);
      await ask(member, create, { orgId, input: { ...good, name: 'never' } });

      await shown(() => send(owner, 'GET', `${secret}?include_value=true`));
      await shown(() => send(owner, 'GET', `${secret}/versions`));
      await shown(() => send(owner, 'GET', `${url}/by-name/renamed?include_value=true`));
      const id = secret.split('/').at(-1);
      await shown(() => ask(owner, `{ secret(orgId: "${orgId}", id: "${id}", includeValue: true) { value } }`));
      await shown(() => ask(owner, `{ secretVersions(orgId: "${orgId}", id: "${id}") { versions { value } } }`));
      await ask(owner, `{ secret(orgId: "${orgId}", id: "${id}", includeValue: true) { value { sub } } }`);
      await ask(
        owner,
        `{ secret(orgId: "${orgId}", id: "${id}") { value } node(id: "${id}") { ... on Secret { value } } }`,
      );
      // opened by the service for itself, and closed to it afterwards
      await app.services.vault.open({ principal: null, request: { ...quietRequest } }, orgId, id!);
      await send(owner, 'PATCH', secret, { expires_at: '2020-01-01T00:00:00Z' });
      await app.services.secretNotices.send();
      await send(owner, 'DELETE', secret);
      await send(owner, 'GET', `${secret}?include_value=true`);
      const destroyed = await newSecret(owner, { value });
      await send(owner, 'DELETE', `${destroyed.url}?permanent=true`);
    },
  },
  'the credentials of a tool instance': { plant: plantInInstance, isNeverShown: true },
};

const quietRequest = {
  traceId: 'marker',
  method: 'TASK',
  path: 'marker',
  ip: '',
  successStatus: 200,
  startedAt: 0,
  recorded: false,
  isRest: false,
};

let app: TestApp;
const log: string[] = [];
beforeAll(async () => {
  app = await startTestApp({
    env: { OUTBOUND_ALLOW: '127.0.0.1' },
    logger: pino({ level: 'trace' }, { write: (line: string) => log.push(line) }),
  });
});
afterAll(() => app.close());

/** The ways in which a text may be written down. */
const forms = (text: string) => [
  text,
  Buffer.from(text).toString('hex'),
  Buffer.from(text).toString('base64').slice(0, 40),
];
const holds = (haystack: string, text: string) => forms(text).some((form) => haystack.includes(form));

/** `table.column` of everything in the database that holds the text. */
async function columnsWith(text: string): Promise<string[]> {
  const { pool } = app.database;
  const { rows } = await pool.query<{ table: string; column: string }>(
    `select table_name as table, column_name as column from information_schema.columns
     where table_schema = 'public' order by 1, 2`,
  );
  const found: string[] = [];
  for (const { table, column } of rows) {
    const like = forms(text).map((_, index) => `"${column}"::text like $${index + 1}`);
    const hit = await pool.query(
      `select 1 from "${table}" where ${like.join(' or ')} limit 1`,
      forms(text).map((form) => `%${form}%`),
    );
    if (hit.rows.length > 0) found.push(`${table}.${column}`);
  }
  return found;
}

/**
 * The files of the database and of its log, dead rows and all, that hold the text. The server reads them: they may be
 * on another machine.
 */
async function filesWith(text: string): Promise<string[]> {
  const { pool } = app.database;
  await pool.query('checkpoint');
  // the server may remove a file of its log while we look
  const { rows } = await pool.query<{ path: string }>(
    `select f.path from (
       select format('base/%s/%s', d.oid, n) as path
         from pg_database d cross join lateral pg_ls_dir(format('base/%s', d.oid)) n
         where d.datname = current_database()
       union all select format('pg_wal/%s', w.name) from pg_ls_waldir() w
     ) f cross join lateral pg_read_binary_file(f.path, 0, 1000000000, true) bytes
     where exists (select 1 from unnest($1::bytea[]) form where position(form in bytes) > 0) order by 1`,
    [forms(text).map((form) => Buffer.from(form))],
  );
  return rows.map(({ path }) => path);
}

describe.each(Object.entries(plantings))('%s', (_what, { plant, isNeverShown = false, allowed = [] }) => {
  const marker = randomBytes(32).toString('hex');
  const hidden: LightMyRequestResponse[] = [];
  const shownAnswers: LightMyRequestResponse[] = [];

  beforeAll(async () => {
    const owner = await register(app, { name: 'ann' });
    const member = await colleague(app, owner, 'member');
    let isShown = false;
    const keep = (answer: LightMyRequestResponse) => {
      (isShown ? shownAnswers : hidden).push(answer);
      return answer;
    };
    const hand: Hand = {
      owner,
      member: { ...member, orgId: owner.orgId },
      send: async (as, method, url, payload, headers = {}) =>
        keep(
          await app.server.inject({
            method,
            url,
            headers: { authorization: `Bearer ${as.accessToken}`, ...headers },
            ...(payload === undefined ? {} : { payload }),
          }),
        ),
      ask: async (as, query, variables) =>
        keep(await app.server.inject(graphqlRequest(query, variables, `Bearer ${as.accessToken}`))),
      shown: async (work) => {
        isShown = true;
        await work();
        isShown = false;
      },
    };
    await plant(marker, hand);
    await app.services.activity.flush();
    await app.jobsDone();
  });

  test('is shown by the answers that are meant to', () => {
    expect(shownAnswers.length > 0).toBe(!isNeverShown);
    for (const { body } of shownAnswers) expect(body).toContain(marker);
  });

  test('is in no other answer, of success or of failure', () => {
    const leaks = hidden.filter(({ body, headers }) => holds(body + JSON.stringify(headers), marker));
    expect(leaks.map(({ statusCode, body }) => `${statusCode} ${body}`)).toEqual([]);
  });

  test('is in no line of the log, in no mail and in no metric', async () => {
    expect(log.length).toBeGreaterThan(10);
    expect(log.filter((line) => holds(line, marker))).toEqual([]);
    expect(app.mails.filter(({ subject, text }) => holds(subject + text, marker))).toEqual([]);
    expect(holds((await app.server.inject('/metrics')).body, marker)).toBe(false);
  });

  test('is in no column of the database: not in records, events, idempotency keys nor anywhere else', async () => {
    expect(await columnsWith(marker)).toEqual(allowed);
  });

  test('is in no file of the database that its columns do not explain', async () => {
    // what may lie in a column lies in the files
    const files = await filesWith(marker);
    expect(files.some((file) => file.startsWith('base/'))).toBe(allowed.length > 0);
    if (allowed.length === 0) expect(files).toEqual([]);
  });
});

test('the search finds a text that lies in the clear', async () => {
  const ann = await register(app, { name: 'ann' });
  // checkpoints of other databases remove files of the log at any moment: then it is tried with another text
  await waitFor(async () => {
    const text = randomBytes(32).toString('hex');
    await newSecret(ann, { name: `secret ${text.slice(0, 8)}`, description: text });
    expect(await columnsWith(text)).toEqual(['secrets.description']);
    const files = await filesWith(text);
    expect(files.some((file) => file.startsWith('base/'))).toBe(true);
    expect(files.some((file) => file.startsWith('pg_wal/'))).toBe(true);
  });
});
