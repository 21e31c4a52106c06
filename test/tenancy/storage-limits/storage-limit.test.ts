import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, type FormPart, formOf } from '../../support/form.ts';
import { addToWorkspace, caller, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';

const PER_WORKSPACE = 10_000;
const PER_ORGANIZATION = 15_000;

let app: TestApp;
/** The first account administers the platform. */
let operator: Person;
beforeAll(async () => {
  const env = {
    MAX_STORAGE_BYTES_PER_WORKSPACE: String(PER_WORKSPACE),
    MAX_STORAGE_BYTES_PER_ORGANIZATION: String(PER_ORGANIZATION),
  };
  app = await startTestApp({ env });
  operator = await register(app, { name: 'operator' });
});
afterAll(() => app.close());

interface Answer {
  status: number;
  body: Record<string, unknown>;
}
interface Storage {
  used_bytes: number;
  limit_bytes: number | null;
  own_limit_bytes: number | null;
}
const text = (bytes: number) => 'x'.repeat(bytes);
const shelfOf = (person: Person, home = person.home) => `${home}/namespaces/default/artifacts`;
const create = (person: Person, bytes: number, home?: string): Promise<Answer> =>
  person.call('POST', shelfOf(person, home), { name: 'a', content: text(bytes) });
const upload = async (person: Person, bytes: number, more: FormPart[] = [], home?: string): Promise<Answer> => {
  const parts: FormPart[] = [['name', 'a'], ...more, ['file', { name: 'a.bin', content: Buffer.alloc(bytes, 1) }]];
  const answer = await app.server.inject({
    method: 'POST',
    url: `${shelfOf(person, home)}/upload`,
    headers: { ...person.headers, 'content-type': FORM_TYPE },
    payload: formOf(parts),
  });
  return { status: answer.statusCode, body: answer.json() };
};
const storageOf = async (person: Person, home = person.home) =>
  (await person.call<Storage>('GET', `${home}/storage`)).body;
const storageOfOrganization = async (person: Person) =>
  (await person.call<Storage>('GET', `/v1/orgs/${person.orgId}/storage`)).body;
const setLimit = (who: Person, url: string, limit_bytes: number | null): Promise<Answer> =>
  who.call('PUT', `${url}/storage`, { limit_bytes });
const idOf = ({ body }: Answer) => String(body.artifact_id);
const another = async (person: Person): Promise<string> => {
  const input = { organization_id: person.orgId, name: 'Another' };
  const { body } = await person.call<{ workspace_id: string }>('POST', `/v1/orgs/${person.orgId}/workspaces`, input);
  return `/v1/orgs/${person.orgId}/workspaces/${body.workspace_id}`;
};

/** The refusal, as REST answers it. */
const refused = (kind: 'workspace' | 'organization', id: string, used: number, limit: number, more: unknown) => ({
  status: 409,
  body: expect.objectContaining({
    error: 'RESOURCE_CONFLICT',
    details: {
      resource_type: kind,
      resource_id: id,
      reason: 'storage_quota_exceeded',
      used_bytes: used,
      limit_bytes: limit,
      requested_bytes: more,
    },
  }),
});

/** What the store has of a workspace. */
async function stored(person: Person): Promise<number> {
  let files = 0;
  for await (const { key } of app.services.storage.list())
    if (key.startsWith(`${person.workspaceId.toLowerCase()}/`)) files++;
  return files;
}
const artifactsOf = async (person: Person) => (await person.call<{ total: number }>('GET', shelfOf(person))).body.total;

const NAMESPACE = 'orgId: $org, workspaceId: $workspace, namespaceId: "default"';
async function ticket(person: Person): Promise<{ file: string; url: string }> {
  const place = { org: person.orgId, workspace: person.workspaceId };
  const query = `mutation ($org: ID!, $workspace: ID!) {
    createUpload(${NAMESPACE}, input: { fileName: "a.bin" }) { file url } }`;
  const { data } = await person.ask<{ createUpload: { file: string; url: string } }>(query, place);
  return data.createUpload;
}
const put = (url: string, payload: Buffer) =>
  app.server.inject({ method: 'PUT', url: new URL(url).pathname, payload, headers: { 'content-type': 'x/y' } });

describe('bytes beyond the limit of a workspace', () => {
  it('are refused in every way that they come, with what is used, and leave nothing', async () => {
    const ann = await register(app, { name: 'ann' });
    const first = await create(ann, 6_000);
    const file = await upload(ann, 3_000);
    expect([first.status, file.status, await storageOf(ann)]).toEqual([
      201,
      201,
      { used_bytes: 9_000, limit_bytes: PER_WORKSPACE, own_limit_bytes: null },
    ]);
    const refusal = (more: unknown) => refused('workspace', ann.workspaceId, 9_000, PER_WORKSPACE, more);
    const rootId: FormPart = ['root_artifact_id', idOf(file)];
    expect(await create(ann, 1_001)).toEqual(refusal(1_001));
    expect(await ann.call('PUT', `${shelfOf(ann)}/${idOf(first)}`, { content: text(2_000) })).toEqual(refusal(2_000));
    expect(await upload(ann, 1_001)).toEqual(refusal(1_001));
    expect(await upload(ann, 1_002, [rootId])).toEqual(refusal(1_002));
    const sent = await put((await ticket(ann)).url, Buffer.alloc(1_003));
    expect({ status: sent.statusCode, body: sent.json() }).toEqual(refusal(1_003));

    const mutations = {
      create: `createArtifact(${NAMESPACE}, input: { name: "a", content: $content }) { id }`,
      update: `updateArtifact(${NAMESPACE}, id: "${idOf(first)}", input: { content: $content }) { id }`,
    };
    for (const mutation of Object.values(mutations)) {
      const query = `mutation ($org: ID!, $workspace: ID!, $content: String!) { ${mutation} }`;
      const variables = { org: ann.orgId, workspace: ann.workspaceId, content: text(1_500) };
      const { errors } = await ann.ask(query, variables);
      const { error: code, details } = refusal(1_500).body.sample;
      expect(errors![0]!.extensions).toEqual({ code, details });
    }
    expect([await artifactsOf(ann), await stored(ann)]).toEqual([2, 1]);
    await waitUntil(async () => (await storageOf(ann)).used_bytes === 9_000);

    // what fits to the byte is taken, and nothing after it but what has no bytes
    expect((await create(ann, 1_000)).status).toBe(201);
    expect((await create(ann, 1)).status).toBe(409);
    expect([(await create(ann, 0)).status, (await upload(ann, 0)).status]).toEqual([201, 201]);
    expect(await ann.call('PUT', `${shelfOf(ann)}/${idOf(first)}`, { name: 'b' })).toMatchObject({ status: 200 });
  });

  it('are refused before any of them is sent, where their number is known', async () => {
    const ann = await register(app, { name: 'ann' });
    await create(ann, 9_000);
    const { hostname, port } = new URL(await app.listen());
    const heads = [
      `PUT ${new URL((await ticket(ann)).url).pathname} HTTP/1.1\r\ncontent-length: 1001`,
      `POST ${shelfOf(ann)}/upload HTTP/1.1\r\nauthorization: ${ann.headers.authorization}\r\n` +
        `content-type: ${FORM_TYPE}\r\ncontent-length: 9000000`,
    ];
    const beginning = formOf([
      ['name', 'a'],
      ['file', { content: text(1_000) }],
    ]).subarray(0, 500);
    for (const [at, head] of heads.entries()) {
      const socket = net.connect({ port: Number(port), host: hostname });
      socket.on('error', () => undefined); // it is cut off
      await once(socket, 'connect');
      socket.write(`${head}\r\nhost: x\r\n\r\n`);
      // of a form, what comes before the file
      if (at === 1) socket.write(beginning);
      const [answer] = await once(socket.setEncoding('utf8'), 'data');
      expect(answer).toMatch(/^HTTP\/1\.1 409 /);
      socket.destroy();
    }
    expect([await stored(ann), (await storageOf(ann)).used_bytes]).toEqual([0, 9_000]);
  });

  it('are refused while they arrive, where their number is not known', async () => {
    const ann = await register(app, { name: 'ann' });
    await create(ann, 9_000);
    const url = await app.listen();
    const send = async (bytes: number) => {
      const body = new ReadableStream({
        start(controller) {
          for (let sent = 0; sent < bytes; sent += 100) controller.enqueue(Buffer.alloc(100));
          controller.close();
        },
      });
      const { pathname } = new URL((await ticket(ann)).url);
      return fetch(`${url}${pathname}`, { method: 'PUT', body, duplex: 'half' } as RequestInit);
    };
    const answer = await send(1_100);
    expect(await answer.json()).toMatchObject({ details: { reason: 'storage_quota_exceeded' } });
    expect((await send(1_000)).status).toBe(200);
    expect([await stored(ann), (await storageOf(ann)).used_bytes]).toEqual([1, 10_000]);
  });
});

describe('an upload in pieces', () => {
  interface Announced {
    file: string;
    url: string;
  }
  const announce = async (person: Person, input: object = {}): Promise<Announced> =>
    (
      await person.call<Announced>('POST', `${person.home}/namespaces/default/uploads`, {
        file_name: 'a.bin',
        ...input,
      })
    ).body;
  const piece = async ({ url }: Announced, offset: number, bytes: number, headers: object = {}): Promise<Answer> => {
    const answer = await app.server.inject({
      method: 'PATCH',
      url: new URL(url).pathname,
      headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset), ...headers },
      payload: Buffer.alloc(bytes, 1),
    });
    return { status: answer.statusCode, body: answer.body === '' ? {} : answer.json() };
  };
  const used = async (person: Person) => (await storageOf(person)).used_bytes;

  it('reserves what it announces, once, and holds no more when it is complete', async () => {
    const ann = await register(app, { name: 'ann' });
    const upload = await announce(ann, { size_bytes: 6_000 });
    expect(await used(ann)).toBe(0);
    expect((await piece(upload, 0, 2_000)).status).toBe(204);
    expect(await used(ann)).toBe(6_000);
    expect(await create(ann, 5_000)).toEqual(refused('workspace', ann.workspaceId, 6_000, PER_WORKSPACE, 5_000));
    expect((await piece(upload, 2_000, 4_000)).status).toBe(204);
    const done = await ann.call('POST', `${ann.home}/namespaces/default/uploads/finish`, {
      file: upload.file,
      name: 'Whole',
    });
    expect([done.status, await used(ann)]).toEqual([201, 6_000]);
    await app.services.files.removeMarked();
    expect([await used(ann), await stored(ann)]).toEqual([6_000, 1]);
  });

  it('is refused before its first byte counts if it does not fit, and goes on once there is room', async () => {
    const ann = await register(app, { name: 'ann' });
    const big = await create(ann, 5_000);
    const upload = await announce(ann, { size_bytes: 6_000 });
    expect(await piece(upload, 0, 1_000)).toEqual(refused('workspace', ann.workspaceId, 5_000, PER_WORKSPACE, 6_000));
    expect([await used(ann), await stored(ann)]).toEqual([5_000, 0]);
    await app.database.pool.query('delete from artifacts where id = $1', [idOf(big)]);
    expect((await piece(upload, 0, 1_000)).status).toBe(204);
    expect(await used(ann)).toBe(6_000);
  });

  it('of a length that nobody has said reserves what arrives, and keeps what fitted', async () => {
    const ann = await register(app, { name: 'ann' });
    const upload = await announce(ann);
    expect((await piece(upload, 0, 7_000)).status).toBe(204);
    expect(await used(ann)).toBe(7_000);
    expect(await piece(upload, 7_000, 4_000)).toEqual(refused('workspace', ann.workspaceId, 0, PER_WORKSPACE, 11_000));
    await app.services.files.removeMarked();
    expect([await used(ann), await stored(ann)]).toEqual([7_000, 1]);
    expect((await piece(upload, 7_000, 3_000, { 'upload-length': '10000' })).status).toBe(204);
    expect(await used(ann)).toBe(10_000);
  });

  it('with a digest reserves what arrives before the digest is known to be right', async () => {
    const ann = await register(app, { name: 'ann' });
    const upload = await announce(ann);
    const digest = { 'content-digest': `sha-256=:${Buffer.alloc(32).toString('base64')}:` };
    expect(await piece(upload, 0, 11_000, digest)).toEqual(
      refused('workspace', ann.workspaceId, 0, PER_WORKSPACE, 11_000),
    );
    await app.services.files.removeMarked();
    expect([await used(ann), await stored(ann)]).toEqual([0, 0]);
  });

  it('and a version that is restored share the limit: a text counts again, a file does not', async () => {
    const ann = await register(app, { name: 'ann' });
    const made = await create(ann, 4_000);
    expect((await ann.call('PUT', `${shelfOf(ann)}/${idOf(made)}`, { content: text(3_000) })).status).toBe(200);
    const restore = (artifact: Answer, version: number) =>
      ann.call('POST', `${shelfOf(ann)}/${idOf(artifact)}/restore-version`, { version });
    expect(await restore(made, 1)).toEqual(refused('workspace', ann.workspaceId, 7_000, PER_WORKSPACE, 4_000));
    const file = await upload(ann, 2_000);
    expect((await upload(ann, 500, [['root_artifact_id', idOf(file)]])).status).toBe(201);
    expect([(await restore(file, 1)).status, await used(ann)]).toEqual([200, 9_500]);
  });
});

describe('what artifacts hold', () => {
  it('has old versions, what is deleted until it is removed, and uploads that nobody has used', async () => {
    const ann = await register(app, { name: 'ann' });
    const first = await create(ann, 100);
    await ann.call('PUT', `${shelfOf(ann)}/${idOf(first)}`, { content: text(10) });
    const file = await upload(ann, 2_000);
    await upload(ann, 3_000, [['root_artifact_id', idOf(file)]]);
    await put((await ticket(ann)).url, Buffer.alloc(400));
    const used = async () => [(await storageOf(ann)).used_bytes, (await storageOfOrganization(ann)).used_bytes];
    expect(await used()).toEqual([5_510, 5_510]);
    for (const answer of [first, file]) await ann.call('DELETE', `${shelfOf(ann)}/${idOf(answer)}`);
    expect(await used()).toEqual([5_510, 5_510]);
    await app.database.pool.query(
      `update artifacts set deleted_at = deleted_at - interval '31 days'
        where workspace_id = $1 and deleted_at is not null`,
      [ann.workspaceId],
    );
    await app.retention.run();
    await app.services.files.removeMarked();
    expect(await used()).toEqual([400, 400]);
    await app.database.pool.query(`update files set created_at = now() - interval '3 hours' where workspace_id = $1`, [
      ann.workspaceId,
    ]);
    await app.services.files.sweepUnused();
    expect([await used(), await stored(ann)]).toEqual([[0, 0], 0]);
  });

  it('is shown by analytics, with the number of artifacts', async () => {
    const ann = await register(app, { name: 'ann' });
    const home = await another(ann);
    const first = await create(ann, 100);
    await ann.call('PUT', `${shelfOf(ann)}/${idOf(first)}`, { content: text(10) });
    await ann.call('DELETE', `${shelfOf(ann)}/${idOf(await create(ann, 7))}`);
    await upload(ann, 50, [], home);
    const query = `query ($org: ID!, $ws: ID!) {
      organization(id: $org) { storage { usedBytes limitBytes ownLimitBytes }
        analytics { storageBytes resources { artifacts } } }
      workspace(orgId: $org, id: $ws) { storage { usedBytes limitBytes ownLimitBytes }
        analytics { storageBytes resources { artifacts } } } }`;
    const { data } = await ann.ask(query, { org: ann.orgId, ws: ann.workspaceId });
    expect(data).toEqual({
      organization: {
        storage: { usedBytes: 167, limitBytes: PER_ORGANIZATION, ownLimitBytes: null },
        analytics: { storageBytes: 167, resources: { artifacts: 2 } },
      },
      workspace: {
        storage: { usedBytes: 117, limitBytes: PER_WORKSPACE, ownLimitBytes: null },
        analytics: { storageBytes: 117, resources: { artifacts: 1 } },
      },
    });
    const { body } = await ann.call<{ storage_bytes: number }>('GET', `/v1/orgs/${ann.orgId}/analytics`);
    expect(body.storage_bytes).toBe(167);
  });

  it('is limited for an organization in all, also with what deleted workspaces have', async () => {
    const ann = await register(app, { name: 'ann' });
    const home = await another(ann);
    await create(ann, 8_000);
    expect((await create(ann, 7_000, home)).status).toBe(201);
    const refusal = refused('organization', ann.orgId, 15_000, PER_ORGANIZATION, 1);
    expect(await create(ann, 1, home)).toEqual(refusal);
    await ann.call('DELETE', home);
    expect(await create(ann, 1)).toEqual(refusal);
    // the limits of another organization are its own
    expect((await create(await register(app), 9_000)).status).toBe(201);
  });
});

describe('the limit of a workspace', () => {
  it('is set by administrators of its organization, up to the setting of the operator', async () => {
    const ann = await register(app, { name: 'ann' });
    const admin = { ...(await colleague(app, ann, 'member')), orgId: ann.orgId, home: ann.home };
    const boss = { ...(await colleague(app, ann, 'admin')), orgId: ann.orgId, home: ann.home };
    // an administrator of the workspace, and only a member of the organization
    await ann.call('PATCH', `${ann.home}/members/${admin.userId}`, { role: 'admin' });
    const stranger = await register(app, { name: 'stranger' });
    for (const [who, permission] of [
      [admin, 'organization:update'],
      [stranger, 'organization:access'],
    ] as const)
      expect(await setLimit(who, ann.home, 50)).toMatchObject({
        status: 403,
        body: { details: { required_permission: permission } },
      });
    const own = await issueToken(app, ann, { permissions: ['organization:update'], workspace_ids: [ann.workspaceId] });
    const byToken = caller(app, { ...ann, accessToken: own.plaintext_token });
    expect((await setLimit(byToken, ann.home, 50)).status).toBe(403);

    const before = (await ann.call<{ updated_at: string }>('GET', ann.home)).body;
    expect(await setLimit(boss, ann.home, 9_000)).toEqual({
      status: 200,
      body: { used_bytes: 0, limit_bytes: 9_000, own_limit_bytes: 9_000 },
    });
    expect((await ann.call<{ updated_at: string }>('GET', ann.home)).body.updated_at).not.toBe(before.updated_at);
    expect((await eventsOf(app, ann.workspaceId)).at(-1)).toBe('workspace.updated');
    expect(await create(ann, 9_001)).toEqual(refused('workspace', ann.workspaceId, 0, 9_000, 9_001));
    expect(await setLimit(boss, ann.home, PER_WORKSPACE + 1)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'limit_bytes'], type: 'value_error' }] },
    });
    expect((await setLimit(boss, ann.home, 0)).status).toBe(422);
    expect((await setLimit(boss, `/v1/orgs/${ann.orgId}/workspaces/${stranger.workspaceId}`, 5)).status).toBe(404);
    expect((await setLimit(ann, ann.home, null)).body).toEqual({
      used_bytes: 0,
      limit_bytes: PER_WORKSPACE,
      own_limit_bytes: null,
    });
  });

  it('may be lowered below what is used: nothing goes, and nothing is added until there is room', async () => {
    const ann = await register(app, { name: 'ann' });
    const first = await create(ann, 5_000);
    expect((await setLimit(ann, ann.home, 1_000)).body).toMatchObject({ used_bytes: 5_000, limit_bytes: 1_000 });
    expect(await create(ann, 1)).toEqual(refused('workspace', ann.workspaceId, 5_000, 1_000, 1));
    expect((await upload(ann, 1)).status).toBe(409);
    expect((await ann.call('GET', `${shelfOf(ann)}/${idOf(first)}`)).status).toBe(200);
    const { body } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
      name: 'n',
      slug: 'n',
    });
    const there = `${ann.home}/namespaces/${body.namespace_id}`;
    await setLimit(ann, ann.home, 5_500);
    expect((await ann.call('POST', `${there}/artifacts`, { name: 'a', content: text(500) })).status).toBe(201);
    expect((await create(ann, 500)).status).toBe(409);
    // a namespace goes with its artifacts at once
    await ann.call('DELETE', there);
    expect((await create(ann, 500)).status).toBe(201);
  });
});

describe('the limit of an organization', () => {
  it('is set by administrators of the platform only, and lets its workspaces have as much', async () => {
    const ann = await register(app, { name: 'ann' });
    const home = `/v1/orgs/${ann.orgId}`;
    expect(await setLimit(ann, home, 100)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization:update' } },
    });
    const bob = await register(app, { name: 'bob' });
    await addToWorkspace(app, ann, bob.userId);
    expect((await bob.call('GET', `${home}/storage`)).status).toBe(403);
    expect(await setLimit(operator, home, 40_000)).toEqual({
      status: 200,
      body: { used_bytes: 0, limit_bytes: 40_000, own_limit_bytes: 40_000 },
    });
    expect((await setLimit(ann, ann.home, 30_000)).body).toMatchObject({ limit_bytes: 30_000 });
    expect((await create(ann, 25_000)).status).toBe(201);
    // without the grant, the setting is the most again
    await setLimit(operator, home, 26_000);
    expect(await storageOf(ann)).toEqual({ used_bytes: 25_000, limit_bytes: 26_000, own_limit_bytes: 30_000 });
    await setLimit(operator, home, null);
    expect(await storageOf(ann)).toEqual({ used_bytes: 25_000, limit_bytes: 10_000, own_limit_bytes: 30_000 });
    expect(await storageOfOrganization(ann)).toEqual({
      used_bytes: 25_000,
      limit_bytes: PER_ORGANIZATION,
      own_limit_bytes: null,
    });
    expect((await setLimit(operator, '/v1/orgs/org_01JD0000000000000000000000', 5)).status).toBe(404);
  });
});

it('no limit is set with 0', async () => {
  const env = { MAX_STORAGE_BYTES_PER_WORKSPACE: '0', MAX_STORAGE_BYTES_PER_ORGANIZATION: '0' };
  const free = await startTestApp({ env });
  const ann = await register(free, { name: 'ann' });
  expect((await create(ann, 500_000)).status).toBe(201);
  expect(await storageOf(ann)).toEqual({ used_bytes: 500_000, limit_bytes: null, own_limit_bytes: null });
  await setLimit(ann, ann.home, 500_001);
  expect((await create(ann, 2)).status).toBe(409);
  await free.close();
});
