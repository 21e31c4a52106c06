import { randomBytes } from 'node:crypto';
import type http from 'node:http';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { OutboundResponse } from '../../../src/platform/outbound/outbound-response.ts';
import { BoundedThread, ThreadError } from '../../../src/platform/threads/bounded-thread.ts';
import { LargeAnswers } from '../../../src/tools/tool-actions/large-answers.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { gate } from '../../support/gate.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor } from '../../support/wait.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool } from '../tool-instances/instances.ts';

const KEY = 'a-kéy-of-theirs';
const MIB = 1024 * 1024;

interface Result extends Json {
  success: boolean;
  code: string;
  message: string;
  attempts: number;
  format: string;
  result: unknown;
  truncated: boolean;
  size_bytes: number;
  whole_result: { download_url: string | null; size_bytes: number; not_kept: string | null } | null;
  pages: { count: number; items: number; has_more: boolean; ended: string } | null;
}

let app: TestApp;
let target: TargetServer;
let ann: Person;
/** What the provider answers. */
let answer: (response: http.ServerResponse, url: URL) => unknown;
beforeAll(async () => {
  target = await startTarget((request: http.IncomingMessage, response: http.ServerResponse) =>
    answer(response, new URL(request.url!, 'http://target')),
  );
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await target.close();
});

const giving = (body: string | Buffer, headers: http.OutgoingHttpHeaders = { 'content-type': 'application/json' }) => {
  answer = (response) => response.writeHead(200, headers).end(body);
};

async function instanceOf(action: Json = {}): Promise<Instance> {
  const toolId = await newTool(ann, {
    config_schema: [{ name: 'base_url', type: 'string' }],
    credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
    action_schemas: [{ name: 'run', method: 'GET', url_template: '{{base_url}}/things', ...action }],
  });
  return newInstance(ann, toolId, {
    configuration: { base_url: `http://127.0.0.1:${target.port}`, api_key: KEY },
  });
}

async function run({ instance_id }: Instance, input: Json = {}): Promise<Result> {
  const url = `${instancesOf(ann)}/${instance_id}/execute`;
  const { status, body } = await ann.call<Result>('POST', url, { action: 'run', ...input });
  expect(status, JSON.stringify(body).slice(0, 1_000)).toBe(200);
  return body;
}

async function downloaded({ whole_result: whole }: Pick<Result, 'whole_result'>): Promise<Buffer> {
  expect(whole).toMatchObject({ not_kept: null });
  const url = whole!.download_url!.replace(/^https?:\/\/[^/]+/, '');
  const got = await app.server.inject({ method: 'GET', url });
  expect([got.statusCode, got.rawPayload.length]).toEqual([200, whole!.size_bytes]);
  return got.rawPayload;
}

const filesOf = async ({ instance_id }: Instance) => {
  const text = `select storage_key as key, size_bytes::int as size, expires_at as "expiresAt" from files
    where tool_instance_id = $1`;
  const found = await app.database.pool.query<{ key: string; size: number | null; expiresAt: Date }>(text, [
    instance_id,
  ]);
  return found.rows;
};
const recordOf = async () => {
  const where = { orgId: ann.orgId, action: 'execute' };
  const [record] = await app.database.prisma.activity.findMany({ where, orderBy: { timestamp: 'desc' }, take: 1 });
  return record!.metadata;
};

describe('an answer of some MiB', () => {
  test('comes back byte for byte, and GraphQL names its file', async () => {
    const instance = await instanceOf();
    const json = JSON.stringify({ list: 'ä€😀'.repeat(600_000) });
    giving(json);
    const result = await run(instance);
    const sizeBytes = Buffer.byteLength(json);
    expect(result).toMatchObject({ success: true, code: 'ok', truncated: true, size_bytes: sizeBytes });
    expect(json.startsWith(result.result as string)).toBe(true);
    expect((await downloaded(result)).equals(Buffer.from(json))).toBe(true);
    expect(await recordOf()).toMatchObject({ code: 'ok', size_bytes: sizeBytes });
    const query = `mutation ($orgId: ID!, $workspaceId: ID!, $id: ID!) {
      executeToolAction(orgId: $orgId, workspaceId: $workspaceId, id: $id, input: { action: "run" }) {
        truncated wholeResult { downloadUrl sizeBytes notKept }
      } }`;
    const variables = { orgId: ann.orgId, workspaceId: ann.workspaceId, id: instance.instance_id };
    const { body } = await ann.call<Json>('POST', '/graphql', { query, variables });
    const wholeResult = { downloadUrl: expect.stringContaining('/files/tool-results/'), sizeBytes, notKept: null };
    expect(body).toMatchObject({ data: { executeToolAction: { truncated: true, wholeResult } } });
  });

  test('may be bytes, also some that were sent in less', async () => {
    const instance = await instanceOf();
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe, 0]), randomBytes(6 * MIB)]);
    giving(bytes, { 'content-type': 'application/octet-stream' });
    const result = await run(instance);
    expect(result).toMatchObject({ success: true, format: 'base64', size_bytes: bytes.length });
    expect((await downloaded(result)).equals(bytes)).toBe(true);
    const text = 'a line\n'.repeat(MIB);
    giving(gzipSync(text), { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
    expect((await downloaded(await run(instance))).toString() === text).toBe(true);
  });

  test('never has the credential that was sent, wherever it stands', async () => {
    const instance = await instanceOf();
    giving(JSON.stringify({ list: 'x'.repeat(3 * MIB), echo: KEY }));
    expect((await downloaded(await run(instance))).toString().slice(3 * MIB)).toContain('"echo":"********"');
    giving(`${'x'.repeat(3 * MIB)} ${KEY}`, { 'content-type': 'text/plain' });
    expect((await downloaded(await run(instance))).toString().slice(3 * MIB)).toBe(' ********');
    giving(Buffer.concat([Buffer.from([0xff]), randomBytes(3 * MIB), Buffer.from(KEY)]), {});
    expect(await run(instance)).toMatchObject({ result: null, whole_result: { not_kept: 'secret' } });
  });

  test('is taken apart for its result path and for what its action promises', async () => {
    const rows = Array.from({ length: 60_000 }, (_, id) => ({ id, name: `a row with a name ${id}` }));
    giving(JSON.stringify({ padding: 'x'.repeat(MIB), data: { rows, count: rows.length } }));
    const counted = await run(await instanceOf({ response_result_path: '$.data.count' }));
    expect(counted).toMatchObject({ success: true, result: 60_000, truncated: false, whole_result: null });
    const listed = await run(await instanceOf({ response_result_path: '$.data.rows' }));
    expect((await downloaded(listed)).equals(Buffer.from(JSON.stringify(rows)))).toBe(true);
    const output_schema = { type: 'array', items: { type: 'object', properties: { id: { type: 'string' } } } };
    const promised = await run(await instanceOf({ response_result_path: '$.data.rows', output_schema }));
    expect(promised).toMatchObject({
      code: 'schema_mismatch',
      message: 'Tickets answered 200, but [0].id is not of the type string.',
    });
  });

  test('that refuses is shown with its beginning', async () => {
    answer = (response) => response.writeHead(500).end(`no: ${'x'.repeat(2 * MIB)}`);
    const result = await run(await instanceOf());
    expect(result).toMatchObject({ success: false, code: 'http_500', whole_result: null, size_bytes: 2 * MIB + 4 });
    expect(result.excerpt).toMatch(/^no: x+/);
  });

  test('is not kept beyond the share of its workspace', async () => {
    const instance = await instanceOf();
    giving('x'.repeat(5 * MIB), { 'content-type': 'text/plain' });
    await downloaded(await run(instance));
    const text = 'update files set size_bytes = $2 where tool_instance_id = $1';
    await app.database.pool.query(text, [instance.instance_id, 252 * MIB]);
    expect(await run(instance)).toMatchObject({ success: true, whole_result: { not_kept: 'storage_full' } });
    expect(await filesOf(instance)).toHaveLength(1);
  });
});

describe('what leaves no file', () => {
  test('is an answer of more than 16 MiB, which says the limit', async () => {
    const instance = await instanceOf();
    const most = 16 * MIB;
    giving('x'.repeat(most), { 'content-type': 'text/plain' });
    expect(await run(instance)).toMatchObject({ success: true, size_bytes: most, whole_result: { size_bytes: most } });
    const message = 'The answer of the target is too large: it has more than 16 MiB.';
    for (const [body, headers] of [
      ['x'.repeat(most + 1), {}],
      [gzipSync('x'.repeat(most + 1)), { 'content-encoding': 'gzip' }],
    ] as const) {
      giving(body, headers);
      const refused = await run(instance);
      expect(refused).toMatchObject({ success: false, code: 'too_large', message, size_bytes: most, result: null });
      expect(await recordOf()).toMatchObject({ code: 'too_large', size_bytes: most });
    }
    expect(await filesOf(instance)).toHaveLength(1);
  });

  test('is a provider that breaks off', async () => {
    const instance = await instanceOf();
    answer = (response) => {
      response.writeHead(200, { 'content-length': 5 * MIB }).write('x'.repeat(3 * MIB), () => response.destroy());
    };
    const code = expect.stringMatching(/^(?:network|bad_response)$/);
    expect(await run(instance)).toMatchObject({ success: false, code, whole_result: null });
    expect(await filesOf(instance)).toEqual([]);
  });

  test('is a store that stands still: it gets no more of the result, and what it has is removed', async () => {
    const instance = await instanceOf();
    giving('x'.repeat(2 * MIB), { 'content-type': 'text/plain' });
    const { storage } = app.services;
    let content: Readable | undefined;
    const still = vi.spyOn(storage, 'put').mockImplementation(async (_key, given) => {
      content = given;
      await finished(given);
      throw new Error('The content has come to its end, though nobody has read it.');
    });
    try {
      expect(await run(instance)).toMatchObject({ success: true, whole_result: { not_kept: 'unavailable' } });
      await waitFor(async () => expect(await filesOf(instance)).toEqual([]));
    } finally {
      still.mockRestore();
    }
    expect(content?.destroyed).toBe(true);
  });

  test('is a process that is killed while it stores: its row ends long before a day', async () => {
    const instance = await instanceOf();
    giving('x'.repeat(2 * MIB), { 'content-type': 'text/plain' });
    const { storage } = app.services;
    const put = storage.put.bind(storage);
    // as it is found after the last moment of a process: bytes in the store, and a row that says nothing of them
    const never = vi.spyOn(storage, 'put').mockImplementation(async (...file) => {
      await put(...file);
      return new Promise(() => undefined);
    });
    try {
      expect(await run(instance)).toMatchObject({ success: true, whole_result: { not_kept: 'unavailable' } });
    } finally {
      never.mockRestore();
    }
    const [{ key, size, expiresAt }] = (await filesOf(instance)) as [{ key: string; size: null; expiresAt: Date }];
    expect([size, await storage.exists(key)]).toEqual([null, true]);
    expect(expiresAt.getTime() - Date.now()).toBeLessThanOrEqual(10 * 60_000);
    const text = `update files set expires_at = now() - interval '1 second' where storage_key = $1`;
    await app.database.pool.query(text, [key]);
    await app.services.files.sweepUnused();
    expect([await filesOf(instance), await storage.exists(key)]).toEqual([[], false]);
  });
});

describe('pages', () => {
  const pagination = { type: 'page', has_more_path: '$.more' };
  const list = { response_result_path: '$.items', pagination };
  /** Pages of ten items. */
  const pagesOf = (count: number, size: number) => {
    answer = (response, url) => {
      const page = Number(url.searchParams.get('page'));
      const items = Array.from({ length: 10 }, (_, at) => itemOf(page, at, size));
      response.end(JSON.stringify({ items, more: page < count }));
    };
  };
  const itemOf = (page: number, at: number, size: number) => ({ id: (page - 1) * 10 + at, text: 'ä'.repeat(size / 2) });
  const allOf = (count: number, size: number) =>
    Array.from({ length: count * 10 }, (_, id) => itemOf(1 + Math.floor(id / 10), id % 10, size));

  test('of more than is shown are kept whole', async () => {
    const instance = await instanceOf(list);
    pagesOf(5, 50_000);
    const result = await run(instance, { max_pages: 10 });
    expect(result.pages).toEqual({ count: 5, items: 50, has_more: false, ended: 'end' });
    expect(result).toMatchObject({ success: true, format: 'json', truncated: true });
    expect(result.result).toEqual(allOf(5, 50_000).slice(0, 5));
    expect(JSON.parse((await downloaded(result)).toString())).toEqual(allOf(5, 50_000));
    pagesOf(2, 100);
    expect(await run(instance, { max_pages: 10 })).toMatchObject({
      result: allOf(2, 100),
      truncated: false,
      whole_result: null,
    });
  });

  test('before one that fails are kept, too', async () => {
    const instance = await instanceOf(list);
    pagesOf(9, 50_000);
    const good = answer;
    answer = (response, url) =>
      url.searchParams.get('page') === '3' ? response.writeHead(500).end() : good(response, url);
    const result = await run(instance, { max_pages: 10 });
    expect(result).toMatchObject({ success: false, code: 'http_500', truncated: true });
    expect(JSON.parse((await downloaded(result)).toString())).toEqual(allOf(2, 50_000));
  });

  test('are read until they have 16 MiB', async () => {
    const instance = await instanceOf(list);
    pagesOf(100, 90_000);
    const result = await run(instance, { max_pages: 100 });
    expect(result).toMatchObject({ success: true, truncated: true, pages: { ended: 'size', has_more: true } });
    const whole = await downloaded(result);
    expect(whole.length).toBeLessThanOrEqual(16 * MIB);
    expect(whole.length).toBeGreaterThan(16 * MIB - 90_100);
    expect(JSON.parse(whole.toString())).toHaveLength(result.pages!.items);
  });
});

describe('an answer that cannot be read now', () => {
  const message = 'The target has answered, but its answer could not be read to its end now.';

  test('is one of a provider that stands still, and its room is given back', async () => {
    const instance = await instanceOf({ retry_count: 3, timeout_seconds: 300 });
    answer = (response) => response.writeHead(200).write('x'.repeat(2 * MIB));
    const hurried = new LargeAnswers({ onFault: unexpected, heldMs: 100 });
    const given = vi.spyOn(app.services.largeAnswers, 'with').mockImplementation((...of) => hurried.with(...of));
    try {
      const result = await run(instance);
      expect(result).toMatchObject({ success: false, code: 'answer_not_read', message, attempts: 1 });
    } finally {
      given.mockRestore();
    }
    expect(await recordOf()).toMatchObject({ code: 'answer_not_read' });
  });

  test.each(['crash', 'fault', 'full'] as const)('is recorded: %s', async (reason) => {
    const instance = await instanceOf();
    giving('x'.repeat(2 * MIB), { 'content-type': 'text/plain' });
    const failing = vi.spyOn(BoundedThread.prototype, 'run').mockRejectedValue(new ThreadError(reason));
    try {
      expect(await run(instance)).toMatchObject({ success: false, code: 'answer_not_read', message });
    } finally {
      failing.mockRestore();
    }
    expect(await recordOf()).toMatchObject({ code: 'answer_not_read' });
  });
});

const unexpected = (error: unknown) => {
  throw error;
};

describe('the room for large answers', () => {
  const signal = new AbortController().signal;
  const room = { total: 2, perOwner: 1, waitingPerOwner: 1 };

  test('is for a few at once, and given back however the work ends', async () => {
    const answers = new LargeAnswers({ onFault: unexpected, room, waitMs: 600_000 });
    const ends: (() => void)[] = [];
    const begun: string[] = [];
    const work = (owner: string) =>
      answers.with(owner, async ({ room: take }) => {
        await take(signal);
        await take(signal); // another try of the same call
        begun.push(owner);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (owner === 'failing') throw new Error('as asked');
      });
    const first = work('one');
    const second = work('one');
    await expect(work('one')).rejects.toMatchObject({ code: 'answer_not_read' });
    const failing = work('failing');
    const third = work('three');
    await waitFor(() => expect(begun).toEqual(['one', 'failing']));
    ends[1]!();
    await expect(failing).rejects.toThrow('as asked');
    await waitFor(() => expect(begun).toEqual(['one', 'failing', 'three']));
    ends[0]!();
    await first;
    await waitFor(() => expect(begun).toEqual(['one', 'failing', 'three', 'one']));
    for (const end of ends) end();
    await Promise.all([second, third]);
    // nobody has to wait who needs none
    expect(await answers.with('one', async ({ isTaken }) => isTaken)).toBe(false);
  });

  test('is not all for those who take the most', async () => {
    const answers = new LargeAnswers({ onFault: unexpected, waitMs: 600_000 });
    const { opened: isOver, open: end } = gate();
    const begun: string[] = [];
    const works = ['one', 'one', 'two', 'two', 'three', 'three', 'four', 'four', 'five', 'six'].map((owner) =>
      answers.with(owner, async ({ room: take }) => {
        await take(signal);
        begun.push(owner);
        await isOver;
      }),
    );
    await waitFor(() => expect(begun).toEqual(['one', 'one', 'two', 'two', 'three', 'four', 'five', 'six']));
    end();
    await Promise.all(works);
  });

  test('is waited for a moment by a call, and as long as it takes by a list, which holds up nobody', async () => {
    const answers = new LargeAnswers({ onFault: unexpected, room: { ...room, waitingPerOwner: 2 }, waitMs: 1 });
    const { opened: isOver, open: end } = gate();
    const first = answers.with('one', async ({ room: take }) => {
      await take(signal);
      await isOver;
    });
    const list = answers.with('one', ({ hold }) => hold(signal));
    await expect(answers.with('one', ({ room: take }) => take(signal))).rejects.toMatchObject({
      code: 'answer_not_read',
    });
    end();
    await Promise.all([first, list]);
  });

  test('goes to nobody who has stopped to wait', async () => {
    const answers = new LargeAnswers({ onFault: unexpected, room, waitMs: 600_000 });
    let late: Promise<void> | undefined;
    const { opened: isOver, open: end } = gate();
    const first = answers.with('one', async ({ room: take }) => {
      await take(signal);
      await isOver;
    });
    await answers.with('one', async ({ room: take }) => {
      late = take(signal);
      late.catch(() => undefined); // looked at below
    });
    end();
    await first;
    await expect(late).rejects.toMatchObject({ code: 'aborted' });
    await answers.with('one', ({ room: take }) => take(signal));
  });

  test('does not help an answer that takes too long to read', async () => {
    const answers = new LargeAnswers({ onFault: unexpected, thread: { timeMs: 1 } });
    const secrets = Array.from({ length: 30 }, (_, at) => `a secret ${at}`);
    const answer = { status: 200, headers: new Headers(), url: 'http://target/' };
    const body = Buffer.from('a secret '.repeat(MIB));
    try {
      await expect(
        answers.shown({ name: 'run' }, new OutboundResponse({ ...answer, body }), { secrets, signal }),
      ).rejects.toMatchObject({ code: 'too_complex' });
      const left = new AbortController();
      const reading = answers.shown({ name: 'run' }, new OutboundResponse({ ...answer, body }), {
        secrets,
        signal: left.signal,
      });
      left.abort(new OutboundError('answer_not_read'));
      await expect(reading).rejects.toMatchObject({ code: 'answer_not_read' });
    } finally {
      await answers.close();
    }
  });
});
