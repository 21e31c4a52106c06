import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { createUser, type Person, register } from '../support/person.ts';
import { inTransaction } from '../support/rows.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

const create = (key: string, name: string, account = owner) =>
  app.server.inject({
    method: 'POST',
    url: `/v1/orgs/${owner.orgId}/workspaces`,
    headers: { ...account.headers, 'idempotency-key': key },
    payload: { organization_id: owner.orgId, name },
  });

/** The ids of those that were sent so far. */
const keys = async () =>
  (await app.database.prisma.idempotencyKey.findMany({ select: { id: true } })).map(({ id }) => id);
const countOf = (name: string) => app.database.prisma.workspace.count({ where: { name } });

describe('Idempotency-Key', () => {
  it('answers the same request again with the stored answer, and does it once', async () => {
    const first = await create('key-1', 'once');
    const second = await create('key-1', 'once');
    expect(first.statusCode).toBe(201);
    expect(second.statusCode).toBe(201);
    expect(second.body).toBe(first.body);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(await countOf('once')).toBe(1);
  });

  it('makes one of 50 at the same time, and tells the others that it is running or what it answered', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create('key-2', 'parallel')));
    const codes = answers.map((answer) => answer.statusCode);
    expect(codes.filter((code) => code === 201).length).toBeGreaterThanOrEqual(1);
    expect(codes.every((code) => code === 201 || code === 409)).toBe(true);
    const refused = answers.find((answer) => answer.statusCode === 409);
    if (refused)
      expect(refused.json()).toMatchObject({ error: 'IDEMPOTENCY_CONFLICT', details: { reason: 'in_progress' } });
    expect(await countOf('parallel')).toBe(1);
  });

  it('refuses a different request under the same key', async () => {
    await create('key-3', 'this');
    const other = await create('key-3', 'that');
    expect(other.statusCode).toBe(409);
    expect(other.json()).toMatchObject({
      error: 'IDEMPOTENCY_CONFLICT',
      details: { reason: 'different_request' },
      status_code: 409,
    });
    expect(await countOf('that')).toBe(0);
  });

  it('belongs to its caller: another one with the same key is not answered with it', async () => {
    await create('key-4', 'mine');
    const stranger = await register(app);
    const theirs = await app.server.inject({
      method: 'POST',
      url: `/v1/orgs/${owner.orgId}/workspaces`,
      headers: { ...stranger.headers, 'idempotency-key': 'key-4' },
      payload: { organization_id: owner.orgId, name: 'mine' },
    });
    expect(theirs.statusCode).toBe(403);
    expect(theirs.headers['idempotent-replayed']).toBeUndefined();
  });

  it('repeats a conflict, so that a retry cannot succeed behind its back', async () => {
    const { post } = callsOf(app);
    const url = `/v1/orgs/${owner.orgId}/members`;
    const headers = { ...owner.headers, 'idempotency-key': 'key-5' };
    const first = await post(url, { user_id: owner.userId }, headers);
    const second = await post(url, { user_id: owner.userId }, headers);
    expect([first.statusCode, second.statusCode, second.body]).toEqual([409, 409, first.body]);
    expect(second.headers['idempotent-replayed']).toBe('true');
  });

  it('keeps nothing of what was refused otherwise: the key is free', async () => {
    const before = await app.database.prisma.idempotencyKey.count();
    const stranger = await register(app);
    const { post } = callsOf(app);
    const key = { 'idempotency-key': 'refused' };
    const home = `/v1/orgs/${owner.orgId}`;
    const refusals = [
      await post(`${home}/workspaces`, { name: '' }, { ...owner.headers, ...key }),
      await post(`${home}/workspaces`, { organization_id: owner.orgId, name: 'x' }, { ...stranger.headers, ...key }),
      await post(`${home}/workspaces/ws_none/apps`, { name: 'x' }, { ...owner.headers, ...key }),
    ];
    expect(refusals.map(({ statusCode }) => statusCode)).toEqual([422, 403, 404]);
    expect(await app.database.prisma.idempotencyKey.count()).toBe(before);
    const mended = await create('refused', 'mended');
    expect(mended.statusCode).toBe(201);
    expect(mended.headers['idempotent-replayed']).toBeUndefined();
  });

  describe('a quota for each user, be it with several tokens', () => {
    /** Keys of a user that were settled before. */
    const fill = (userId: string, rows: number, sizeBytes: number) =>
      app.database.pool.query(
        `insert into idempotency_keys (id, request_hash, user_id, status_code, size_bytes, created_at)
         select $1 || '-' || n, 'x', $1, 201, $3, now() - n * interval '1 second' from generate_series(1, $2::int) n`,
        [userId, rows, sizeBytes],
      );
    const keysOf = (userId: string) =>
      app.database.prisma.idempotencyKey.findMany({ where: { userId }, orderBy: { createdAt: 'desc' } });

    it.each([
      ['rows', 1_200, 10, 1_000],
      ['bytes', 20, 400_000, 11],
    ])('of %s: the oldest give way', async (what, rows, sizeBytes, left) => {
      const user = await createUser(app, owner, { username: `quota-${what}`, role: 'admin' });
      await fill(user.userId, rows, sizeBytes);
      expect((await create(`quota-${what}`, what, user)).statusCode).toBe(201);
      const keys = await keysOf(user.userId);
      expect(keys).toHaveLength(left);
      expect(keys[0]!.sizeBytes).toBe(keys[0]!.response!.length);
      expect(keys.slice(1).map(({ id }) => id)).toEqual(keys.slice(1).map((_, n) => `${user.userId}-${n + 1}`));
      expect((await create(`quota-${what}`, what, user)).headers['idempotent-replayed']).toBe('true');
    });

    it('also where PostgreSQL believes that nothing is kept, and plans for that', async () => {
      const { pool } = app.database;
      const user = await createUser(app, owner, { username: 'quota-believed', role: 'admin' });
      await fill(user.userId, 1_200, 10);
      await pool.query('delete from idempotency_keys');
      await pool.query('analyze idempotency_keys');
      await fill(user.userId, 1_200, 10);
      expect((await create('quota-believed', 'believed', user)).statusCode).toBe(201);
      expect(await keysOf(user.userId)).toHaveLength(1_000);
    });

    it('waits for no other request that lets the oldest give way', async () => {
      const user = await createUser(app, owner, { username: 'quota-busy', role: 'admin' });
      await fill(user.userId, 1_002, 10);
      await inTransaction(app.database.pool, async (db) => {
        await db.query('delete from idempotency_keys where id = $1', [`${user.userId}-1001`]);
        expect((await create('quota-busy', 'busy', user)).statusCode).toBe(201);
        expect((await create('quota-busy', 'busy', user)).headers['idempotent-replayed']).toBe('true');
      });
      expect(await keysOf(user.userId)).toHaveLength(1_000);
    });
  });

  it('refuses a key that is no visible ASCII with 400', async () => {
    const answer = await create('two words', 'never');
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ error: 'INVALID_REQUEST', details: { reason: 'idempotency_key' } });
    expect(await countOf('never')).toBe(0);
  });

  it('never does a request twice whose node died between its commit and its answer', async () => {
    const known = await keys();
    await create('key-6', 'committed');
    const lost = await app.database.prisma.idempotencyKey.updateMany({
      where: { committedAt: { not: null }, statusCode: 201, id: { notIn: known } },
      data: { statusCode: null, response: null, createdAt: new Date(Date.now() - 3_600_000) },
    });
    expect(lost.count).toBeGreaterThan(0);
    const retry = await create('key-6', 'committed');
    expect(retry.statusCode).toBe(409);
    expect(await countOf('committed')).toBe(1);
  });

  it('lets a request be done anew whose node died before its commit', async () => {
    await create('key-7', 'before');
    await app.database.prisma.workspace.deleteMany({ where: { name: 'before' } });
    await app.database.prisma.idempotencyKey.updateMany({
      data: { committedAt: null, statusCode: null, response: null, createdAt: new Date(Date.now() - 120_000) },
    });
    expect((await create('key-7', 'before')).statusCode).toBe(201);
    expect(await countOf('before')).toBe(1);
  });

  it('forgets a key after 24 hours', async () => {
    await create('key-8', 'yesterday');
    await app.database.prisma.idempotencyKey.updateMany({ data: { createdAt: new Date(Date.now() - 25 * 3_600_000) } });
    const again = await create('key-8', 'yesterday');
    expect(again.headers['idempotent-replayed']).toBeUndefined();
    expect(await countOf('yesterday')).toBe(2);
  });

  it('keeps answers sealed: nothing of them can be read in the table', async () => {
    await create('key-9', 'a very visible name');
    const rows = await app.database.prisma.idempotencyKey.findMany({ where: { response: { not: null } } });
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(Buffer.from(row.response!).toString('latin1')).not.toContain('visible');
  });

  it('keeps no plain hash of a body: it would tell what is in it by trying', async () => {
    const payload = { organization_id: owner.orgId, name: 'guess me' };
    const bodies = [payload, { name: 'guess me', organization_id: owner.orgId }].map((body) => JSON.stringify(body));
    const known = await keys();
    await create('key-10', 'guess me');
    const rows = await app.database.prisma.idempotencyKey.findMany({ where: { id: { notIn: known } } });
    expect(rows).toHaveLength(1);
    for (const algorithm of ['sha256', 'sha512', 'sha1', 'md5'])
      for (const body of bodies)
        expect(rows[0]!.requestHash).not.toBe(createHash(algorithm).update(body).digest('hex'));
  });

  it('repeats nothing for somebody who may not do it any more', async () => {
    const { post, delete: remove, patch } = callsOf(app);
    const home = `/v1/orgs/${owner.orgId}`;
    const workspace = `${home}/workspaces/${owner.workspaceId}`;
    const appId = (await post(`${workspace}/apps`, { name: 'an app' }, owner.headers)).json().app_id as string;
    const requests: [string, object][] = [
      [`${home}/api-tokens`, { name: 'mine' }],
      [`${home}/apps/${appId}/tokens`, { name: 'its' }],
      [`${workspace}/namespaces`, { name: 'there' }],
      ['/v1/users', { email: 'made@example.test', username: 'made', password: 'the password of made' }],
    ];
    const admin = await createUser(app, owner, { username: 'formerly', role: 'admin' });
    const ask = async () => {
      const answers = [];
      for (const [index, [url, payload]] of requests.entries())
        answers.push(await post(url, payload, { ...admin.headers, 'idempotency-key': `gate-${index}` }));
      return answers;
    };
    const told = (answers: Awaited<ReturnType<typeof ask>>) =>
      answers.map((answer) => [
        answer.statusCode,
        answer.headers['idempotent-replayed'] ?? answer.json().details?.required_permission,
      ]);
    const first = await ask();
    expect(first.map(({ statusCode }) => statusCode)).toEqual([201, 201, 201, 201]);
    const again = await ask();
    expect(told(again)).toEqual(first.map(() => [201, 'true']));
    expect(again.map(({ body }) => body)).toEqual(first.map(({ body }) => body));
    // a viewer still issues tokens of their own, but none of apps
    const demoted = await patch(`${home}/members/${admin.userId}`, { role: 'viewer' }, owner.headers);
    expect(demoted.statusCode).toBe(200);
    await post(`${workspace}/members`, { user_id: admin.userId, role: 'viewer' }, owner.headers);
    expect(told(await ask())).toEqual([
      [201, 'true'],
      [403, 'app_token:create'],
      [403, 'namespace:create'],
      [403, 'user:create'],
    ]);
    await remove(`${home}/members/${admin.userId}`, owner.headers);
    const last = await ask();
    expect(last.map(({ statusCode }) => statusCode)).toEqual([403, 403, 403, 403]);
    for (const { body } of last) expect(body).not.toMatch(/(?:pat|app|rft)_[0-9A-Za-z]{8}_/);
  });

  it('repeats nothing in a place where its caller may not do it any more, whatever they may do elsewhere', async () => {
    const { post, patch } = callsOf(app);
    const home = `/v1/orgs/${owner.orgId}`;
    const editor = await createUser(app, owner, { username: 'editor-of-two' });
    const other = (await create('second-workspace', 'Second')).json().workspace_id as string;
    for (const id of [owner.workspaceId, other])
      await post(`${home}/workspaces/${id}/members`, { user_id: editor.userId, role: 'editor' }, owner.headers);
    const headers = (n: number) => ({ ...editor.headers, 'idempotency-key': `there-${n}` });
    const body = { name: 'kept', secret_type: 'api_key', value: { api_key: 'sk' }, workspace_id: other };
    const made = await post(`${home}/secrets`, body, headers(1));
    const rotate = () =>
      post(`${home}/secrets/${made.json().secret_id}/rotate`, { value: { api_key: 'b' } }, headers(2));
    expect([made.statusCode, (await rotate()).statusCode]).toEqual([201, 200]);
    expect((await post(`${home}/secrets`, body, headers(1))).body).toBe(made.body);
    expect((await rotate()).headers['idempotent-replayed']).toBe('true');
    const demoted = await patch(
      `${home}/workspaces/${other}/members/${editor.userId}`,
      { role: 'viewer' },
      owner.headers,
    );
    expect(demoted.statusCode).toBe(200);
    const secondTime = await post(`${home}/secrets`, body, headers(1));
    expect(secondTime.json()).toMatchObject({ error: 'FORBIDDEN', details: { required_permission: 'secret:create' } });
    // the secret is hidden from viewers
    expect((await rotate()).json()).toMatchObject({ error: 'RESOURCE_NOT_FOUND' });
  });
});
