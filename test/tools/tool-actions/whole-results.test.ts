import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { gate } from '../../support/gate.ts';
import { colleague, type Person, register, signIn } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { type Instance, instancesOf, newInstance, newTool } from '../tool-instances/instances.ts';

const KEY = 'a-kéy-of-theirs';
const DAY_MS = 24 * 3_600_000;

interface Whole {
  download_url: string | null;
  expires_at: string | null;
  file_name: string | null;
  content_type: string | null;
  size_bytes: number;
  not_kept: string | null;
}
interface Result {
  success: boolean;
  format: string;
  result: string | null;
  truncated: boolean;
  whole_result: Whole | null;
}

let app: TestApp;
let target: TargetServer;
let ann: Person;
let instance: Instance;
/** What the provider answers. */
let answer: { body: string | Buffer; type: string };
beforeAll(async () => {
  target = await startTarget((_request: http.IncomingMessage, response: http.ServerResponse) =>
    response.writeHead(200, { 'content-type': answer.type }).end(answer.body),
  );
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  instance = await newInstance(ann, await toolOf(ann), {
    configuration: { base_url: `http://127.0.0.1:${target.port}`, api_key: KEY },
  });
  answer = { body: JSON.stringify({ list: 'ä'.repeat(200_000) }), type: 'application/json' };
});
afterAll(async () => {
  await app.close();
  await target.close();
});

const toolOf = (person: Person) =>
  newTool(person, {
    config_schema: [{ name: 'base_url', type: 'string' }],
    credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
    action_schemas: [{ name: 'run', method: 'GET', url_template: '{{base_url}}/things' }],
  });

async function run({ headers }: Pick<Person, 'headers'> = ann): Promise<Result> {
  const url = `${instancesOf(ann)}/${instance.instance_id}/execute`;
  const answered = await app.server.inject({ method: 'POST', url, headers, payload: { action: 'run' } });
  expect(answered.statusCode, answered.body).toBe(200);
  const result = answered.json<Result>();
  expect(result.success).toBe(true);
  return result;
}
/** The address of the whole result of a call. */
async function addressOf(person: Pick<Person, 'headers'> = ann): Promise<string> {
  const { whole_result: whole } = await run(person);
  expect(whole).toMatchObject({ not_kept: null });
  return whole!.download_url!;
}
const localOf = (address: string) => address.replace(/^https?:\/\/[^/]+/, '');
const open = (address: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' | 'PUT' = 'GET') =>
  app.server.inject({ method, url: localOf(address), headers });
const statusOf = async (address: string) => (await open(address)).statusCode;
const filesOf = async () => {
  const text = 'select storage_key as key from files where tool_instance_id = $1';
  return (await app.database.pool.query<{ key: string }>(text, [instance.instance_id])).rows;
};
const usedBytes = async () => {
  const text = `select sum(n)::int as n from place_counts where place_id = $1 and counter = 'storage.bytes'`;
  return (await app.database.pool.query<{ n: number | null }>(text, [ann.workspaceId])).rows[0]!.n ?? 0;
};

describe('a result that is cut', () => {
  test('is kept whole for a day, and can be downloaded without signing in', async () => {
    const { result, truncated, whole_result: whole } = await run();
    expect(truncated).toBe(true);
    const text = answer.body as string;
    const size = Buffer.byteLength(text);
    expect(whole).toEqual({
      download_url: expect.stringContaining('/files/tool-results/'),
      expires_at: expect.any(String),
      file_name: 'run.json',
      content_type: 'application/json',
      size_bytes: size,
      not_kept: null,
    });
    const left = Date.parse(whole!.expires_at!) - Date.now();
    expect(left).toBeLessThanOrEqual(DAY_MS);
    expect(left).toBeGreaterThan(DAY_MS - 600_000);
    const got = await open(whole!.download_url!);
    expect([got.statusCode, got.body === text]).toEqual([200, true]);
    expect(text.startsWith(result!)).toBe(true);
    expect(got.headers).toMatchObject({
      'content-type': 'application/json',
      'content-disposition': `attachment; filename="run.json"; filename*=UTF-8''run.json`,
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
    });
    const part = await open(whole!.download_url!, { range: 'bytes=0-7' });
    expect([part.statusCode, part.body]).toEqual([206, text.slice(0, 8)]);
    const head = await open(whole!.download_url!, {}, 'HEAD');
    expect([head.statusCode, head.headers['content-length'], head.body]).toEqual([200, String(size), '']);
  });

  test('counts as what its workspace holds, and is in no list of artifacts', async () => {
    const before = await usedBytes();
    await addressOf();
    expect((await usedBytes()) - before).toBe(Buffer.byteLength(answer.body as string));
    const { body } = await ann.call<{ total: number }>('GET', `${ann.home}/namespaces/default/artifacts`);
    expect(body.total).toBe(0);
  });

  test('is a text or bytes as the provider says', async () => {
    answer = { body: `a;b\n${'1;2\n'.repeat(100_000)}`, type: 'text/csv; charset=utf-8' };
    const csv = (await run()).whole_result!;
    expect(csv).toMatchObject({ file_name: 'run.csv', content_type: 'text/csv' });
    expect((await open(csv.download_url!)).body).toBe(answer.body);
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe, 0]), randomBytes(400_000)]);
    answer = { body: bytes, type: 'application/octet-stream' };
    const { format, whole_result: whole } = await run();
    expect([format, whole!.size_bytes]).toEqual(['base64', bytes.length]);
    expect((await open(whole!.download_url!)).rawPayload.equals(bytes)).toBe(true);
  });

  test('never has the credential that was sent', async () => {
    answer.body = JSON.stringify({ padding: 'x'.repeat(300_000), echo: [KEY, encodeURIComponent(KEY)] });
    const got = await open(await addressOf());
    expect(got.body).not.toContain(KEY);
    expect(JSON.parse(got.body).padding).toHaveLength(300_000);
    const texts = ['latin1', 'utf8', 'utf16le'] as const;
    const written = texts.map((how) => Buffer.from(KEY, how));
    for (const key of [...written, Buffer.from(KEY, 'utf16le').swap16()])
      for (const before of [
        [0xff, 0xc0],
        [0xff, 0xc0, 0x80],
      ]) {
        answer = { body: Buffer.concat([Buffer.from(before), key]), type: 'application/octet-stream' };
        const { result, whole_result: whole } = await run();
        expect([result, whole]).toEqual([null, expect.objectContaining({ download_url: null, not_kept: 'secret' })]);
      }
    expect(await filesOf()).toHaveLength(1);
  });

  test('is none if it is not cut', async () => {
    answer.body = '[1]';
    expect((await run()).whole_result).toBeNull();
    expect(await filesOf()).toEqual([]);
  });
});

describe('what cannot be kept is said, and the call stays a success', () => {
  test('without storage', async () => {
    await app.database.pool.query('update workspaces set storage_limit_bytes = 1000 where id = $1', [ann.workspaceId]);
    const { truncated, whole_result: whole } = await run();
    expect([truncated, whole]).toEqual([
      true,
      {
        download_url: null,
        expires_at: null,
        file_name: null,
        content_type: null,
        size_bytes: Buffer.byteLength(answer.body as string),
        not_kept: 'storage_full',
      },
    ]);
    expect(await filesOf()).toEqual([]);
    expect(await usedBytes()).toBe(0);
  });

  test('beyond the share of results in a workspace, until some have gone', async () => {
    await addressOf();
    const most = 256 * 1024 * 1024;
    const hold = (bytes: number) =>
      app.database.pool.query('update files set size_bytes = $2 where tool_instance_id = $1', [
        instance.instance_id,
        bytes,
      ]);
    const size = Buffer.byteLength(answer.body as string);
    await hold(most - size + 1);
    expect((await run()).whole_result).toMatchObject({ download_url: null, not_kept: 'storage_full' });
    await hold(most - size);
    await addressOf();
    expect((await run()).whole_result).toMatchObject({ not_kept: 'storage_full' });
    // what is no result goes on
    const { status } = await ann.call('POST', `${ann.home}/namespaces/default/artifacts`, { name: 'a', content: 'b' });
    expect(status).toBe(201);
    await app.database.pool.query('update files set expires_at = now() where tool_instance_id = $1', [
      instance.instance_id,
    ]);
    await app.services.files.sweepUnused();
    await addressOf();
  });

  test('in time: what arrives later is removed', async () => {
    const { storage } = app.services;
    const put = storage.put.bind(storage);
    const { opened: held, open: goOn } = gate();
    const slow = vi.spyOn(storage, 'put').mockImplementation(async (...file) => {
      await held;
      return put(...file);
    });
    try {
      expect((await run()).whole_result).toMatchObject({ download_url: null, not_kept: 'unavailable' });
      expect(await filesOf()).toHaveLength(1);
    } finally {
      slow.mockRestore();
      goOn();
    }
    await waitFor(async () => expect([await filesOf(), await usedBytes()]).toEqual([[], 0]));
  });

  test('without a store', async () => {
    const away = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
    try {
      // a file where the folder of the files should be
      const folder = path.join(away.dataDir, 'files');
      rmSync(folder, { recursive: true, force: true });
      writeFileSync(folder, '');
      const eve = await register(away, { name: 'eve' });
      const { instance_id } = await newInstance(eve, await toolOf(eve), {
        configuration: { base_url: `http://127.0.0.1:${target.port}`, api_key: KEY },
      });
      const url = `${instancesOf(eve)}/${instance_id}/execute`;
      const { status, body } = await eve.call<Result>('POST', url, { action: 'run' });
      expect([status, body.success, body.whole_result?.not_kept]).toEqual([200, true, 'unavailable']);
    } finally {
      await away.close();
    }
  });
});

describe('an address', () => {
  test('is good as it was made, and for nothing else', async () => {
    const address = await addressOf();
    const ticket = address.split('/').at(-1)!;
    const other = `${ticket[0] === 'A' ? 'B' : 'A'}${ticket.slice(1)}`;
    for (const wrong of [other, ticket.slice(0, -2), 'x', `${ticket}AA`]) {
      const refused = await open(address.replace(ticket, wrong));
      expect([wrong, refused.statusCode]).toEqual([wrong, 403]);
    }
    expect(await statusOf(address.replace('tool-results', 'uploads'))).toBe(405);
    expect((await open(address.replace('tool-results', 'uploads'), {}, 'PUT')).statusCode).toBe(403);
    expect((await open(address, {}, 'PUT')).statusCode).toBe(405);
  });

  test('ends with the membership of who ran the action, and with their token', async () => {
    const bob = await colleague(app, ann, 'editor');
    const ofBob = await addressOf(bob);
    expect(await statusOf(ofBob)).toBe(200);
    const { headers } = await issueToken(app, ann);
    const ofToken = await addressOf({ headers });
    expect(await statusOf(ofToken)).toBe(200);
    await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`);
    await app.database.pool.query('update api_tokens set revoked_at = now() where org_id = $1', [ann.orgId]);
    expect([await statusOf(ofBob), await statusOf(ofToken)]).toEqual([403, 403]);
  });

  test('ends with the session in which the action was run', async () => {
    const again = await signIn(app, ann);
    const [ended, other] = [await addressOf(again), await addressOf()];
    expect(await statusOf(ended)).toBe(200);
    expect((await again.call('POST', '/v1/auth/logout')).status).toBeLessThan(300);
    expect([await statusOf(ended), await statusOf(other)]).toEqual([403, 200]);
  });

  test('is of a result that is gone if a backup was restored without its bytes', async () => {
    const address = await addressOf();
    const [{ key }] = (await filesOf()) as [{ key: string }];
    await app.services.storage.remove(key);
    const gone = await open(address);
    expect([gone.statusCode, gone.json<{ error: string }>().error]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  });

  test('ends with its instance, and the bytes go with it', async () => {
    const address = await addressOf();
    const [{ key }] = (await filesOf()) as [{ key: string }];
    expect((await ann.call('DELETE', `${instancesOf(ann)}/${instance.instance_id}`)).status).toBe(204);
    expect(await statusOf(address)).toBe(404);
    await app.services.files.sweepUnused();
    expect([await filesOf(), await app.services.storage.exists(key)]).toEqual([[], false]);
  });

  test('ends after its day, and the bytes go with it', async () => {
    const address = await addressOf();
    const [{ key }] = (await filesOf()) as [{ key: string }];
    await app.services.files.sweepUnused();
    expect(await statusOf(address)).toBe(200);
    await app.database.pool.query(`update files set expires_at = now() - interval '1 second' where storage_key = $1`, [
      key,
    ]);
    expect(await statusOf(address)).toBe(404);
    await app.services.files.sweepUnused();
    expect([await filesOf(), await app.services.storage.exists(key)]).toEqual([[], false]);
    expect(await usedBytes()).toBe(0);
  });
});
