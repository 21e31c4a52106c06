import { Kind, parse, visit } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { measureDocument } from '../../src/engine/path/document-size.ts';
import { wholeSchemaBytes } from '../../src/engine/path/introspection-size.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type HostileDocument, hostileDocuments } from '../support/hostile-documents.ts';
import { openAcknowledged } from '../support/sockets.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let url: string;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
  url = await app.listen();
});
afterAll(() => app.close());

interface Answer {
  status: number;
  text: string;
}

const jsonOf = ({ query, variables = '{}', operationName }: HostileDocument) =>
  `{"query":${JSON.stringify(query)},"variables":${variables},` +
  `"operationName":${JSON.stringify(operationName ?? null)}}`;

/** One operation over each transport. What a URL or a message cannot carry is refused as such. */
const transports: Record<string, (document: HostileDocument) => Promise<Answer>> = {
  POST: async (document) => {
    const answer = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...world.as('owner') },
      body: jsonOf(document),
    });
    return { status: answer.status, text: await answer.text() };
  },
  GET: async ({ query, variables, operationName }) => {
    const search = new URLSearchParams({
      query,
      ...(variables ? { variables } : {}),
      ...(operationName ? { operationName } : {}),
    });
    const answer = await fetch(`${url}/graphql?${search}`, {
      headers: { accept: 'application/json', ...world.as('owner') },
    });
    return { status: answer.status, text: await answer.text() };
  },
  WebSocket: async (document) => {
    const socket = await openAcknowledged(url, world.as('owner').authorization);
    socket.send(`{"id":"1","type":"subscribe","payload":${jsonOf(document)}}`);
    const said = socket.next(({ id }) => id === '1').then((message) => JSON.stringify(message.payload));
    const text = await Promise.race([said, socket.closed().then((code) => `closed with ${code}`)]);
    said.catch(() => undefined); // a socket that was closed says nothing more
    socket.close();
    return { status: 200, text };
  },
};

/** Largest URL that is read, and largest message. */
const carried: Record<string, number> = { POST: Number.POSITIVE_INFINITY, GET: 16 * 1024, WebSocket: 60 * 1024 };

describe.each(Object.keys(transports))('over %s', (transport) => {
  // each document over one of them at least
  const documents = hostileDocuments.filter(({ what }) => thinned(Object.keys(transports), what).includes(transport));
  test.each(documents.map((document) => [document.what, document] as const))('%s', async (_what, document) => {
    const { status, text } = await transports[transport]!(document);
    expect(status, text.slice(0, 300)).toBeLessThan(500);
    expect(text).not.toMatch(/INTERNAL_SERVER_ERROR|node_modules|\.ts:\d|Did you mean/);
    const length = transport === 'GET' ? encodeURIComponent(jsonOf(document)).length : jsonOf(document).length;
    if (document.isAnswered && length < carried[transport]!) {
      expect(text).toContain('"data"');
      expect(text).not.toContain('"errors":');
      expect(text.length).toBeLessThan(1.2 * wholeSchemaBytes(schema));
    } else {
      expect(text).not.toContain('"data":{');
      expect(text.length).toBeLessThan(10_000);
    }
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});

test('the corpus is worth its name', () => {
  expect(hostileDocuments.length).toBeGreaterThanOrEqual(60);
  expect(new Set(hostileDocuments.map(({ what }) => what)).size).toBe(hostileDocuments.length);
});

describe('the measure of a document', () => {
  const limits = { maxDepth: 12, maxAliases: 30 };

  it('visits each selection and value once, however often it is spread', () => {
    for (const { query, what } of hostileDocuments) {
      if (query.length > 64 * 1024) continue;
      const document = parsed(query);
      if (!document) continue;
      let size = 0;
      visit(document, {
        enter(node) {
          if (node.kind !== Kind.NAME) size++;
        },
      });
      const visits = { count: 0 };
      try {
        measureDocument(document, limits, visits);
      } catch {
        // refused, after no more visits than this
      }
      expect(visits.count, what).toBeLessThanOrEqual(size);
    }
  });
});

function parsed(query: string) {
  try {
    return parse(query, { noLocation: true, maxTokens: 5_000 });
  } catch {
    return null;
  }
}

describe('a document of more than 64 KiB', () => {
  const long = `{ me { id } } #${'x'.repeat(64 * 1024)}`;

  it('is refused before it is read, over POST', async () => {
    const { text } = await transports.POST!({ what: '', query: long });
    expect(JSON.parse(text)).toMatchObject({
      errors: [{ message: 'The document has more than 65536 bytes.', extensions: { code: 'OPERATION_TOO_LARGE' } }],
    });
  });

  it('is counted in bytes, not in characters', async () => {
    const { text } = await transports.POST!({ what: '', query: `{ me { id } } #${'é'.repeat(33_000)}` });
    expect(text).toContain('OPERATION_TOO_LARGE');
    const short = await transports.POST!({ what: '', query: `{ me { id } } #${'é'.repeat(32_000)}` });
    expect(short.text).toContain(world.accounts.owner.userId);
  });
});

describe('mistakes in a document', () => {
  it('is said with its place in the text, for the first few', async () => {
    const { text } = await transports.POST!({ what: '', query: '{\n  me {\n    id\n    nothing\n  }\n}' });
    expect(JSON.parse(text)).toMatchObject({
      errors: [{ message: 'Cannot query field "nothing" on type "User".', locations: [{ line: 4, column: 5 }] }],
    });
    const many = await transports.POST!({ what: '', query: `{ ${'nothing '.repeat(200)} }` });
    expect((JSON.parse(many.text) as { errors: unknown[] }).errors.length).toBeLessThanOrEqual(6);
  });

  it('is said of an operation that ran, too', async () => {
    const query = '{\n  workspace(orgId: "org_x", id: "ws_x") { id }\n}';
    const { text } = await transports.POST!({ what: '', query });
    expect(JSON.parse(text)).toMatchObject({ errors: [{ path: ['workspace'], locations: [{ line: 2, column: 3 }] }] });
  });
});
