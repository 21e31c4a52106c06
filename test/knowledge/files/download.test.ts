import { createHash, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ArtifactFragment } from '../../../rest/generated/documents.ts';
import { LinkKeys } from '../../../src/knowledge/files/link-keys.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

type Artifact = RestBody<ArtifactFragment>;
interface Link {
  artifact_id: string;
  download_url: string;
  file_name: string;
  content_type: string;
  expires_in: number;
  file_size_bytes: number;
}

const SECRET = 'the secret of the test - long enough';
let s3: S3Server;
let app: TestApp;
let ann: Person;
beforeAll(async () => {
  s3 = await startS3();
  app = await startTestApp({ env: { APP_SECRET: SECRET, PUBLIC_URL: 'https://api.example.com' } });
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await s3.stop();
});

const artifactsOf = (person: Person) => `${person.home}/namespaces/default/artifacts`;

async function upload(content: Buffer | string, name: string, { who = ann, to = app } = {}): Promise<Artifact> {
  const answer = await to.server.inject({
    method: 'POST',
    url: `${artifactsOf(who)}/upload`,
    headers: { ...who.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['name', 'An upload'],
      ['file', { name, content }],
    ]),
  });
  expect(answer.statusCode).toBe(201);
  return answer.json<Artifact>();
}

const linkTo = async (id: string, query = '', who = ann) =>
  (await who.call<Link>('GET', `${artifactsOf(who)}/${id}/download${query}`)).body;
/** The path and query of a link. */
const localOf = (link: string) => link.replace(/^https?:\/\/[^/]+/, '');
const open = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET', of = app) =>
  of.server.inject({ method, url: localOf(url), headers });

const bytes = randomBytes(100_000);

test('links to a file, for whom it was not made as well', async () => {
  const artifact = await upload(bytes, "ü 'numbers'.bin");
  const link = await linkTo(artifact.artifact_id, '?expires_in=60');
  expect(link).toEqual({
    artifact_id: artifact.artifact_id,
    download_url: expect.stringMatching(/^https:\/\/api\.example\.com\/files\/artifacts\/art_/),
    file_name: "ü 'numbers'.bin",
    content_type: 'application/octet-stream',
    expires_in: 60,
    file_size_bytes: 100_000,
  });
  const answer = await open(link.download_url);
  expect(answer.statusCode).toBe(200);
  expect(answer.rawPayload.equals(bytes)).toBe(true);
  expect(answer.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-length': '100000',
    'content-disposition': `attachment; filename="_ 'numbers'.bin"; filename*=UTF-8''%C3%BC%20%27numbers%27.bin`,
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
    'accept-ranges': 'bytes',
    etag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
    'cache-control': 'no-store',
  });
  const head = await open(link.download_url, {}, 'HEAD');
  expect([head.statusCode, head.body, head.headers['content-length'], head.headers.etag]).toEqual([
    200,
    '',
    '100000',
    answer.headers.etag,
  ]);
});

test('the link is valid for an hour, unless the caller says so otherwise', async () => {
  const { artifact_id: id } = await upload('x', 'x');
  const { download_url: url, expires_in: expiresIn } = await linkTo(id);
  expect(expiresIn).toBe(3_600);
  const left = Number(new URL(url).searchParams.get('expires')) - Date.now() / 1_000;
  expect(left).toBeGreaterThan(3_500);
  expect(left).toBeLessThanOrEqual(3_600);
  for (const wrong of ['59', '86401', 'x'])
    expect((await ann.call('GET', `${artifactsOf(ann)}/${id}/download?expires_in=${wrong}`)).status).toBe(422);
});

test('serves parts', async () => {
  const { artifact_id: id } = await upload('0123456789', 'digits');
  const { download_url: url } = await linkTo(id);
  const { etag } = (await open(url)).headers as { etag: string };
  const part = async (headers: { range: string; 'if-range'?: string }) => {
    const { statusCode, body, headers: answered } = await open(url, { ...headers });
    return [statusCode, body, answered['content-range'], answered['content-length']];
  };
  expect(await part({ range: 'bytes=2-5' })).toEqual([206, '2345', 'bytes 2-5/10', '4']);
  expect(await part({ range: 'bytes=7-' })).toEqual([206, '789', 'bytes 7-9/10', '3']);
  expect(await part({ range: 'bytes=-3' })).toEqual([206, '789', 'bytes 7-9/10', '3']);
  expect(await part({ range: 'bytes=-99999999999999' })).toEqual([206, '0123456789', 'bytes 0-9/10', '10']);
  expect(await part({ range: 'bytes=0-99999999999999' })).toEqual([206, '0123456789', 'bytes 0-9/10', '10']);
  expect(await part({ range: 'bytes=2-5', 'if-range': etag })).toEqual([206, '2345', 'bytes 2-5/10', '4']);
  for (const headers of [
    { range: 'bytes=2-5', 'if-range': '"another"' },
    { range: 'bytes=5-2' },
    { range: 'bytes=0-1,3-4' },
    { range: `bytes=${'0-0,'.repeat(1_000)}1-1` },
    { range: 'lines=1-2' },
    { range: 'bytes=-' },
    { range: 'bytes=0x1-2' },
  ])
    expect((await part(headers)).slice(0, 2)).toEqual([200, '0123456789']);
  for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=-0', 'bytes=999999999999999-']) {
    const refused = await open(url, { range });
    expect([refused.statusCode, refused.headers['content-range']]).toEqual([416, 'bytes */10']);
    expect(refused.json()).toMatchObject({ error: 'RANGE_NOT_SATISFIABLE', details: { size_bytes: 10 } });
  }
  expect((await open(url, { 'if-none-match': `"x", W/${etag}` })).statusCode).toBe(304);
  expect((await open(url, { 'if-none-match': '"x"' })).statusCode).toBe(200);
});

test.each([
  ['Notes', { content: '# Hi €' }, 'Notes.txt', 'text/plain; charset=utf-8'],
  ['Notes.md', { content: '# Hi €', mime_type: 'text/markdown' }, 'Notes.md', 'text/markdown; charset=utf-8'],
  ['a/b', { content: '# Hi €', artifact_type: 'html' }, 'b.html', 'text/html; charset=utf-8'],
  ['data', { content: '# Hi €', artifact_type: 'json' }, 'data.json', 'application/json; charset=utf-8'],
])('downloads the text %s as a file', async (name, fields, fileName, contentType) => {
  const artifact = (await ann.call<Artifact>('POST', artifactsOf(ann), { name, ...fields })).body;
  const link = await linkTo(artifact.artifact_id);
  expect(link).toMatchObject({ file_name: fileName, content_type: contentType, file_size_bytes: 8 });
  const answer = await open(link.download_url);
  expect([answer.statusCode, answer.body, answer.headers['content-type']]).toEqual([200, '# Hi €', contentType]);
  expect(answer.headers['content-disposition']).toContain(`filename="${fileName}"`);
  expect((await open(link.download_url, { range: 'bytes=2-3' })).body).toBe('Hi');
});

test('a link stays with its version', async () => {
  const { artifact_id: id } = (await ann.call<Artifact>('POST', artifactsOf(ann), { name: 'x', content: 'one' })).body;
  const first = await linkTo(id);
  await ann.call('PUT', `${artifactsOf(ann)}/${id}`, { content: 'two' });
  const second = await linkTo(id);
  expect([(await open(first.download_url)).body, (await open(second.download_url)).body]).toEqual(['one', 'two']);
});

describe('a link that is not as it was made', () => {
  let url: URL;
  let other: URL;
  beforeAll(async () => {
    url = new URL((await linkTo((await upload('mine', 'x')).artifact_id)).download_url);
    other = new URL((await linkTo((await upload('other', 'x')).artifact_id)).download_url);
  });

  const refused = async (changed: string) => {
    const answer = await open(changed);
    expect([answer.statusCode, answer.json()]).toEqual([
      403,
      expect.objectContaining({ error: 'FORBIDDEN', details: { required_permission: 'artifact:read' } }),
    ]);
  };
  const changed = (change: (url: URL) => void) => {
    const copy = new URL(url);
    change(copy);
    return copy.toString();
  };

  test.each(['version', 'org', 'by', 'via', 'expires', 'disposition', 'key', 'signature'])(
    'is refused when %s is altered, missing, twice or empty',
    async (name) => {
      const value = url.searchParams.get(name) ?? '';
      await refused(changed(({ searchParams }) => searchParams.set(name, `${value}1`)));
      await refused(changed(({ searchParams }) => searchParams.delete(name)));
      await refused(changed(({ searchParams }) => searchParams.append(name, value)));
      if (value !== '') await refused(changed(({ searchParams }) => searchParams.set(name, '')));
    },
  );

  test('is refused with the artifact of another link, and with anything more', async () => {
    await refused(`${other.pathname}${url.search}`);
    await refused(`${url.toString()}&more=1`);
    await refused(url.pathname);
    await refused(url.toString().replace('expires=', 'expires=0'));
    await refused(`${url.toString()}=`);
  });

  test('is refused a second after it has expired', async () => {
    const expires = Math.floor(Date.now() / 1_000);
    const make = (at: number) => {
      const claims = ['GET', url.pathname.split('/').at(-1), 1, ann.orgId, ann.userId, null, at, 'attachment'];
      const { keyId, signature } = new LinkKeys(Buffer.from(SECRET), [], 'download link').sign(JSON.stringify(claims));
      return changed(({ searchParams }) => {
        searchParams.set('expires', String(at));
        searchParams.set('key', keyId);
        searchParams.set('signature', signature);
      });
    };
    expect((await open(make(expires + 60))).statusCode).toBe(200);
    await refused(make(expires - 1));
    await refused(make(expires));
  });

  test('opens nothing else', async () => {
    const local = localOf(url.toString());
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'] as const)
      expect((await app.server.inject({ method, url: local })).statusCode).toBe(405);
    const put = await app.server.inject({ method: 'PUT', url: `/files/uploads/${url.searchParams.get('signature')}` });
    expect(put.statusCode).toBe(403);
    const api = `${artifactsOf(ann)}/${url.pathname.split('/').at(-1)}${url.search}`;
    expect((await app.server.inject({ method: 'GET', url: api })).statusCode).toBe(401);
  });
});

describe('a link ends with', () => {
  const linkOf = async (who: Person) => {
    const artifact = await upload('x', 'x', { who });
    return { artifact, url: (await linkTo(artifact.artifact_id, '', who)).download_url };
  };
  const homeOf = (who: Person) => ({ ...who, home: ann.home, headers: who.headers }) as Person;

  test('its artifact', async () => {
    const { artifact, url } = await linkOf(ann);
    await ann.call('DELETE', `${artifactsOf(ann)}/${artifact.artifact_id}`);
    const answer = await open(url);
    expect([answer.statusCode, answer.json()]).toEqual([
      404,
      expect.objectContaining({ details: { resource_type: 'artifact', resource_id: artifact.artifact_id } }),
    ]);
  });

  test('the account of who asked for it', async () => {
    const bob = homeOf(await colleague(app, ann, 'member'));
    const { url } = await linkOf(bob);
    expect((await open(url)).statusCode).toBe(200);
    await app.database.pool.query('update users set is_active = false where id = $1', [bob.userId]);
    expect((await open(url)).statusCode).toBe(403);
  });

  test('the membership of who asked for it', async () => {
    const eve = homeOf(await colleague(app, ann, 'member'));
    const { url } = await linkOf(eve);
    await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${eve.userId}`);
    expect((await open(url)).statusCode).toBe(403);
  });

  test('the token that asked for it', async () => {
    const tokens = `/v1/orgs/${ann.orgId}/api-tokens`;
    const { body } = await ann.call<Record<string, string>>('POST', tokens, { name: 'ci' });
    const plain = Object.values(body).find((value) => typeof value === 'string' && /^pat_.{40}/.test(value));
    const { artifact_id: id } = await upload('x', 'x');
    const answer = await app.server.inject({
      method: 'GET',
      url: `${artifactsOf(ann)}/${id}/download`,
      headers: { authorization: `Bearer ${plain}` },
    });
    const { download_url: url } = answer.json<Link>();
    expect((await open(url)).statusCode).toBe(200);
    await app.database.pool.query(`update api_tokens set revoked_at = now() where org_id = $1`, [ann.orgId]);
    expect((await open(url)).statusCode).toBe(403);
  });
});

test('links of a former secret stay valid, and new ones are signed with the new one', async () => {
  const { artifact_id: id } = await upload('x', 'x');
  const { download_url: url } = await linkTo(id);
  const renewed = 'another secret - which is long enough too';
  const rotated = await app.another({ APP_SECRET: renewed, FORMER_APP_SECRETS: SECRET, KEYS_DIR: app.keysDir });
  const forgetful = await app.another({ APP_SECRET: renewed, KEYS_DIR: app.keysDir });
  expect((await open(url, {}, 'GET', rotated)).statusCode).toBe(200);
  expect((await open(url, {}, 'GET', forgetful)).statusCode).toBe(403);
  const answer = await rotated.server.inject({
    method: 'GET',
    url: `${artifactsOf(ann)}/${id}/download`,
    headers: ann.headers,
  });
  expect((await open(answer.json<Link>().download_url, {}, 'GET', forgetful)).statusCode).toBe(200);
});

test('a file whose bytes are gone is a fault, before the first byte', async () => {
  const { artifact_id: id } = await upload('x', 'x');
  const { download_url: url } = await linkTo(id);
  const { rows } = await app.database.pool.query<{ key: string }>(
    'select f.storage_key as key from files f join artifacts a on a.file_id = f.id where a.id = $1',
    [id],
  );
  rmSync(path.join(app.dataDir, 'files', rows[0]!.key));
  expect((await open(url)).json()).toMatchObject({ error: 'INTERNAL_SERVER_ERROR', status_code: 500 });
});

test('on S3, the link leads to the store if clients can reach it, and otherwise to the service', async () => {
  // the service has renewed it above
  const env = { ...s3.env, APP_SECRET: SECRET, FORMER_APP_SECRETS: 'another secret - which is long enough too' };
  const hidden = await app.another(env);
  const reachable = await app.another({ ...env, S3_PUBLIC_ENDPOINT: s3.url.replace('127.0.0.1', 'localhost') });
  const { artifact_id: id } = await upload('<svg/>', 'ü.svg', { to: hidden });
  const { download_url: url } = await linkTo(id);
  expect((await open(url, {}, 'GET', hidden)).body).toBe('<svg/>');
  expect((await open(url, { range: 'bytes=1-3' }, 'GET', hidden)).body).toBe('svg');
  const redirect = await open(url, {}, 'GET', reachable);
  expect([redirect.statusCode, redirect.headers['cache-control']]).toEqual([302, 'no-store']);
  const address = new URL(redirect.headers.location!);
  expect(address.hostname).toBe('localhost');
  expect(Number(address.searchParams.get('X-Amz-Expires'))).toBe(60);
  const answer = await fetch(address);
  expect([answer.status, await answer.text()]).toEqual([200, '<svg/>']);
  expect(answer.headers.get('content-type')).toBe('application/octet-stream');
  expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="_.svg"; filename*=UTF-8''%C3%BC.svg`);
  expect((await open(url, {}, 'HEAD', reachable)).headers['content-length']).toBe('6');
});
