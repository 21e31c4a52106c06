import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import { documentsOf } from '../../../src/engine/path/document-manifest.ts';
import { RegisteredDocuments } from '../../../src/engine/path/registered-documents.ts';
import { projectRoot } from '../../../src/paths.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Run, runScript } from '../../support/command.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { openSocket } from '../../support/sockets.ts';
import { waitUntil } from '../../support/wait.ts';
import { createWorld, type World } from '../../support/world.ts';

// the command is a process of its own

let folder: string;
let app: TestApp;
let only: TestApp;
let world: World;
let url: string;
let onlyUrl: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'documents-'));
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
  only = await app.another({ PERSISTED_ONLY: 'true' });
  [url, onlyUrl] = await Promise.all([app.listen(), only.listen()]);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true, force: true });
});

const command = (...args: string[]): Promise<Run> =>
  runScript('documents', args, { DATABASE_URL: app.database.url, DATA_DIR: folder });

async function add(manifest: unknown): Promise<Run> {
  const file = path.join(folder, 'manifest.json');
  await writeFile(file, typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
  return command('add', file);
}

const stored = async () =>
  (await app.database.pool.query<{ id: string }>('select id from persisted_documents order by id')).rows;

const ME = 'query Me { me { id } }';
const EVENTS = `subscription Events($org: ID!, $workspace: ID!) {
  workspaceEvents(orgId: $org, workspaceId: $workspace) { id } }`;
const RENAME = 'mutation Out { logout { sessionId } }';
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const meIs = () => ({ data: { me: { id: world.accounts.owner.userId } } });

interface Asked {
  query?: string;
  documentId?: unknown;
  variables?: object;
  extensions?: object;
}
const named = (sha256Hash: string) => ({ persistedQuery: { version: 1, sha256Hash } });
const place = () => ({ org: world.ids.org_id, workspace: world.ids.workspace_id });

/** The ways to send an operation, with the status and what is answered. */
const ways = {
  POST: async (node: TestApp, asked: Asked, headers: Record<string, string> = {}) => {
    const answer = await node.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...world.as('owner'), ...headers },
      payload: asked,
    });
    return [answer.statusCode, answer.json<unknown>()];
  },
  'POST by yoga': (node: TestApp, asked: Asked, headers: Record<string, string> = {}) =>
    ways.POST(node, asked, { 'content-type': 'application/graphql+json', ...headers }),
  GET: async (node: TestApp, asked: Asked, headers: Record<string, string> = {}) => {
    const search = new URLSearchParams(
      Object.entries(asked).map(([key, value]): [string, string] => [
        key,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]),
    );
    const answer = await node.server.inject({
      url: `/graphql?${search.toString()}`,
      headers: { accept: 'application/json', ...world.as('owner'), ...headers },
    });
    return [answer.statusCode, answer.json<unknown>()];
  },
  SSE: async (node: TestApp, asked: Asked, headers: Record<string, string> = {}) => {
    const answer = await node.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...world.as('owner'), ...headers },
      payload: asked,
    });
    return [answer.statusCode, JSON.parse(/^data: (.+)$/m.exec(answer.body)![1]!) as unknown];
  },
};

const refusal = {
  errors: [
    {
      message: 'Browsers may send only registered documents, by their ids and without their texts.',
      extensions: { code: 'DOCUMENT_NOT_REGISTERED' },
    },
  ],
};

describe('npm run documents', () => {
  test('registers the documents of codegen, Relay and Apollo, and says what is new', async () => {
    expect(await add({ [hashOf(ME)]: ME, 'relay-1': RENAME })).toEqual({
      code: 0,
      output: '2 documents are new, 0 were registered before.\n',
    });
    const operations = [
      { id: 'apollo-me', name: 'Me', type: 'query', body: ME },
      { id: 'events', name: 'Events', type: 'subscription', body: EVENTS },
      { id: 'relay-1', name: 'Out', type: 'mutation', body: RENAME },
    ];
    expect(await add({ format: 'apollo-persisted-query-manifest', version: 1, operations })).toEqual({
      code: 0,
      output: '2 documents are new, 1 were registered before.\n',
    });
    expect(await command('check')).toEqual({ code: 0, output: '4 documents are registered: all are valid.\n' });
  });

  test('says which documents are not valid, and registers none of the manifest', async () => {
    const before = await stored();
    const { code, output } = await add({ good: ME, unknown: '{ mee { id } }', cut: '{ me { id ' });
    expect(code).toBe(1);
    expect(output).toBe(
      'unknown 1:3: Cannot query field "mee" on type "Query".\n' +
        'cut 1:11: Syntax Error: Expected Name, found <EOF>.\n' +
        '2 of 3 documents are not valid. Nothing was registered.\n',
    );
    expect(await stored()).toEqual(before);
  });

  test('never lets an id stand for another document', async () => {
    const before = await stored();
    expect(await add({ fresh: ME, 'relay-1': ME })).toEqual({
      code: 1,
      output:
        'relay-1: this id already has another document.\n' +
        'An id always stands for the same document. Nothing was registered.\n',
    });
    expect(await stored()).toEqual(before);
  });

  test('lists what the schema does not accept any more', async () => {
    await app.database.pool.query(`insert into persisted_documents (id, text) values ('old', '{ gone }')`);
    expect(await command('check')).toEqual({
      code: 1,
      output: 'old 1:3: Cannot query field "gone" on type "Query".\n5 documents are registered: 1 are not valid.\n',
    });
    await app.database.pool.query(`delete from persisted_documents where id = 'old'`);
  });

  test('shows how it is used', async () => {
    expect(await command('remove')).toMatchObject({
      code: 1,
      output: expect.stringContaining('Usage: npm run documents'),
    });
  });
});

test.each<[what: string, manifest: string, message: string]>([
  ['no JSON', '{', 'The manifest is not JSON.'],
  ['a list', '[]', 'The manifest must be {"id": "document", …}'],
  ['a document that is no text', '{"a":5}', 'The manifest must be {"id": "document", …}'],
  [
    'an unknown version',
    '{"format":"apollo-persisted-query-manifest","version":2,"operations":[]}',
    'The manifest must',
  ],
  ['an id with a space', '{"a b":"{ me { id } }"}', 'The id "a b" must be'],
  ['an empty id', '{"":"{ me { id } }"}', 'The id "" must be'],
  [
    'an id for two texts',
    '{"format":"apollo-persisted-query-manifest","version":1,' +
      '"operations":[{"id":"a","body":"b"},{"id":"a","body":"c"}]}',
    "The id 'a' names two documents.",
  ],
])('a manifest is refused: %s', (_what, manifest, message) => {
  expect(() => documentsOf(manifest)).toThrow(message);
});

describe.each(Object.entries(ways))('over %s', (how, ask) => {
  test('an id stands for its document, on every node', async () => {
    for (const node of [app, only])
      for (const asked of [{ documentId: 'apollo-me' }, { documentId: hashOf(ME) }, { extensions: named(hashOf(ME)) }])
        expect(await ask(node, asked)).toEqual([200, meIs()]);
  });

  test('an unknown id is refused, and so is one beside a text', async () => {
    expect(await ask(app, { documentId: 'unknown' })).toEqual([
      200,
      {
        errors: [
          {
            message: 'No document is registered under this "documentId".',
            extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' },
          },
        ],
      },
    ]);
    expect(await ask(app, { documentId: 'apollo-me', query: ME })).toMatchObject([
      200,
      { errors: [{ message: 'Send "documentId" or "query", not both.' }] },
    ]);
    if (how === 'GET') return;
    expect(await ask(app, { documentId: 5 })).toMatchObject([
      200,
      { errors: [{ message: '"documentId" must be a string.' }] },
    ]);
  });

  const browsers: [what: string, headers: Record<string, string>][] = [
    ['an origin', { origin: 'https://app.example' }],
    ['the mark of a page of the same origin', { 'sec-fetch-site': 'same-origin' }],
    ['a cookie', { cookie: 'a=b' }],
  ];
  test.each(browsers)('PERSISTED_ONLY lets whoever has %s send registered documents alone', async (_what, headers) => {
    const sent = '{ me { username } }';
    // what a program has sent does not count
    expect(await ask(only, { query: sent, extensions: named(hashOf(sent)) })).toMatchObject([200, { data: {} }]);
    for (const asked of [
      { query: ME },
      { query: sent, extensions: named(hashOf(sent)) },
      { query: ME, extensions: named(hashOf(ME)) },
      { extensions: named(hashOf(sent)) },
      { documentId: 'unknown' },
    ])
      expect(await ask(only, asked, headers)).toEqual([403, refusal]);
    expect(await ask(only, { documentId: 'apollo-me' }, headers)).toEqual([200, meIs()]);
    expect(await ask(only, { extensions: named(hashOf(ME)) }, headers)).toEqual([200, meIs()]);
    expect(await ask(app, { query: ME }, headers)).toEqual([200, meIs()]);
  });

  test('PERSISTED_ONLY is not for programs', async () => {
    expect(await ask(only, { query: ME })).toEqual([200, meIs()]);
  });
});

test("the documents of the service's own pages are there", async () => {
  const page = readFileSync(path.join(projectRoot, 'public', 'account', 'sign-in.js'), 'utf8');
  const documentId = /documentId: '([^']+)'/.exec(page)![1]!;
  const asked = { documentId, variables: { id: 'ntf_x' } };
  expect(await ways.POST(only, asked, { origin: onlyUrl })).toMatchObject([
    200,
    { errors: [{ path: ['notification'], extensions: { code: 'RESOURCE_NOT_FOUND' } }] },
  ]);
});

test('a mutation by its id is not for GET', async () => {
  const answer = await app.server.inject({
    url: '/graphql?documentId=relay-1',
    headers: { accept: 'application/json', ...world.as('owner') },
  });
  expect(answer.statusCode).toBe(405);
});

test('an id that was unknown is known once it is registered', async () => {
  const text = '{ authConfig { allowRegistration } }';
  expect((await ways.POST(app, { documentId: 'late' }))[1]).toHaveProperty('errors');
  await app.database.pool.query('insert into persisted_documents (id, text) values ($1, $2)', ['late', text]);
  expect((await ways.POST(app, { documentId: 'late' }))[1]).toHaveProperty('data.authConfig');
  expect(await ways.POST(app, { documentId: 'late\u0000' })).toMatchObject([200, { errors: [{}] }]);
});

test.each([
  ['a subscription that is registered', {}, () => url],
  ['one of a browser', { origin: 'https://app.example' }, () => onlyUrl],
])('%s is streamed over SSE', async (_what, headers, base) => {
  const ended = new AbortController();
  const answer = await fetch(`${base()}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...world.as('owner'), ...headers },
    body: JSON.stringify({ documentId: 'events', variables: place() }),
    signal: ended.signal,
  });
  const { value } = await answer.body!.getReader().read();
  expect([answer.status, Buffer.from(value!).toString()]).toEqual([200, ':\n\n']);
  ended.abort();
});

describe('over WebSocket', () => {
  const answerTo = async (base: string, payload: object, headers: Record<string, string> = {}) => {
    const socket = await openSocket(base, headers);
    socket.send({ type: 'connection_init', payload: { authorization: world.as('owner').authorization } });
    await socket.next(({ type }) => type === 'connection_ack');
    socket.send({ id: '1', type: 'subscribe', payload });
    const { type, payload: answer } = await socket.next(({ id }) => id === '1');
    socket.close();
    return [type, answer];
  };
  const origin = { origin: 'https://app.example' };

  test('an id stands for its document', async () => {
    for (const asked of [
      { query: '', documentId: 'apollo-me' },
      { query: '', extensions: named(hashOf(ME)) },
    ]) {
      expect(await answerTo(url, asked)).toEqual(['next', meIs()]);
      expect(await answerTo(onlyUrl, asked, origin)).toEqual(['next', meIs()]);
    }
    expect(await answerTo(url, { query: '', documentId: 'unknown' })).toEqual([
      'error',
      [
        {
          message: 'No document is registered under this "documentId".',
          extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' },
        },
      ],
    ]);
  });

  test('PERSISTED_ONLY refuses others from browsers, and the socket goes on', async () => {
    expect(await answerTo(onlyUrl, { query: ME }, origin)).toEqual(['error', refusal.errors]);
    expect(await answerTo(onlyUrl, { query: '', documentId: 'unknown' }, origin)).toEqual(['error', refusal.errors]);
    expect(await answerTo(onlyUrl, { query: ME })).toEqual(['next', meIs()]);
    expect(await answerTo(url, { query: ME }, origin)).toEqual(['next', meIs()]);
  });
});

test('of two texts that are registered under one id at once, one is refused', async () => {
  const { pool } = app.database;
  const other = await pool.connect();
  try {
    // both have begun and wait for a document between them, which then is not registered after all
    await other.query(`begin; insert into persisted_documents (id, text) values ('at-once-0', '${ME}')`);
    const register = (text: string) =>
      new RegisteredDocuments(new Sql(pool)).register(
        new Map([
          ['at-once-0', ME],
          ['at-once-1', text],
        ]),
      );
    const registering = Promise.all([register(ME), register(RENAME)]);
    await waitUntil(async () => (await lockWaits(other)) === 2);
    await other.query('rollback');
    expect(await registering).toEqual(
      expect.arrayContaining([
        { added: ['at-once-0', 'at-once-1'], taken: [] },
        { added: [], taken: ['at-once-1'] },
      ]),
    );
  } finally {
    other.release();
  }
});
