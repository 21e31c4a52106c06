import { afterAll, beforeAll, expect, test } from 'vitest';
import { LockOrder } from '../../../src/data/locks.ts';
import { OpenChange } from '../../../src/data/open-change.ts';
import type { Tx } from '../../../src/data/tx.ts';
import { ApiError, InputError } from '../../../src/kernel/errors.ts';
import { systemCaller } from '../../../src/kernel/system-caller.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { type Person, register } from '../../support/person.ts';
import { fromOutside } from '../../support/single-connection.ts';
import { waitFor } from '../../support/wait.ts';
import { newSecret, type Secret, secretBody, secretsOf, VALUE } from './new-secret.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  await app.database.pool.query('create table toys (id text, org_id text, secret_ref text)');
  const references = app.owners.flatMap(({ secretReferences }) => secretReferences ?? []);
  app.services.vault.declare([...references, { resource: 'model', table: 'toys', column: 'secret_ref' }]);
});
afterAll(() => app.close());

const PATH = ['input', 'credentialsRef'];
const caller = systemCaller('a test');

/** A change that is never committed. */
function inChange<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
  const { sql, jobQueue: jobs } = app.services;
  return app.database.transaction((transaction) =>
    work(new OpenChange(caller, { sql, transaction, jobs, notify: () => null, locks: new LockOrder() })),
  );
}

/** Rows of another resource that name secrets. */
const name = ({ orgId }: Person, references: Record<string, string>) =>
  fromOutside(() =>
    app.database.pool.query('insert into toys select key, $1, value from jsonb_each_text($2)', [orgId, references]),
  );

/** The identifier that a reference was found to mean where it is stored; `external`; or the error. */
async function ensured({ orgId }: Person, reference: string): Promise<unknown> {
  const { vault } = app.services;
  try {
    return await inChange(async (tx) => {
      const found = await vault.demandReference(tx, orgId, reference, PATH);
      return found.kind === 'secret' ? found.id : found.kind;
    });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    expect(error.issues.map(({ path }) => path)).toEqual([PATH]);
    return 422;
  }
}

async function opened({ orgId }: Person, reference: string): Promise<unknown> {
  try {
    return await app.services.vault.open(caller, orgId, reference);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.details.reason ?? error.code;
  }
}

test('a reference is an identifier, a name or something external; an unknown one is refused when stored', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { secret_id, url } = await newSecret(ann, { name: 'db (prod)' });
  expect(await ensured(ann, secret_id)).toBe(secret_id);
  expect(await ensured(ann, 'secret://db (prod)')).toBe(secret_id);
  for (const outside of [
    'arn:aws:secretsmanager:eu:1:x',
    'vault/kv/x',
    'DB (PROD)',
    'secret:db',
    'Secret://db (prod)',
    '',
  ])
    expect(await ensured(ann, outside)).toBe('external');
  for (const unknown of ['sec_unknown', 'secret://unknown', 'secret://', 'secret://DB (prod)', 'sec_'])
    expect(await ensured(ann, unknown)).toBe(422);
  expect(await ensured(eve, secret_id)).toBe(422);
  expect(await ensured(eve, 'secret://db (prod)')).toBe(422);
  await ann.call('DELETE', url);
  expect(await ensured(ann, secret_id)).toBe(422);
  expect(await ensured(ann, 'secret://db (prod)')).toBe(422);
});

test("a name means the organization's own secret: one of a workspace is referred to by its identifier", async () => {
  const ann = await register(app, { name: 'ann' });
  const inner = await newSecret(ann, { name: 'key', workspace_id: ann.workspaceId });
  expect(await ensured(ann, 'secret://key')).toBe(422);
  expect(await opened(ann, 'secret://key')).toBe('RESOURCE_NOT_FOUND');
  expect(await ensured(ann, inner.secret_id)).toBe(inner.secret_id);
  const top = await newSecret(ann, { name: 'key' });
  expect(await ensured(ann, 'secret://key')).toBe(top.secret_id);
  // nothing that is made later takes its place
  await newSecret(ann, { name: 'key', environment_id: await newPlace(ann) });
  expect((await ann.call('POST', secretsOf(ann), secretBody({ name: 'key' }))).status).toBe(409);
  expect(await ensured(ann, 'secret://key')).toBe(top.secret_id);
});

async function newPlace(owner: Person): Promise<string> {
  const payload = { name: 'Stage', slug: 'stage' };
  const path = `${owner.home}/environments`;
  const { body } = await owner.call<{ environment: { environment_id: string } }>('POST', path, payload);
  return body.environment.environment_id;
}

test('opening gives the value and counts it; what is expired, disabled or deleted is never used', async () => {
  const ann = await register(app, { name: 'ann' });
  const { secret_id, url, updated_at } = await newSecret(ann, { name: 'live' });
  expect(await opened(ann, secret_id)).toEqual(VALUE);
  expect(await opened(ann, 'secret://live')).toEqual(VALUE);
  expect((await ann.call<Secret>('GET', url)).body).toMatchObject({
    access_count: 2,
    last_accessed_at: expect.any(String),
    updated_at,
  });
  await ann.call('PATCH', url, { status: 'disabled' });
  expect(await opened(ann, secret_id)).toBe('secret_disabled');
  await ann.call('PATCH', url, { status: 'active', expires_at: '2020-01-01T00:00:00Z' });
  expect(await opened(ann, secret_id)).toBe('secret_expired');
  await ann.call('PATCH', url, { expires_at: null });
  expect(await opened(ann, secret_id)).toEqual(VALUE);
  await ann.call('DELETE', url);
  expect(await opened(ann, secret_id)).toBe('RESOURCE_NOT_FOUND');
  expect(await opened(ann, 'arn:aws:x')).toBe('RESOURCE_NOT_FOUND');
  expect((await app.database.prisma.secret.findUniqueOrThrow({ where: { id: secret_id } })).accessCount).toBe(3);
});

test('what is named by something is not destroyed; a soft deletion may go before', async () => {
  const ann = await register(app, { name: 'ann' });
  const [byId, byName] = [await newSecret(ann), await newSecret(ann, { name: 'named' })];
  const inner = await newSecret(ann, { name: 'named', workspace_id: ann.workspaceId });
  await name(ann, { toy_1: byId.secret_id, toy_2: 'secret://named', toy_3: byId.secret_id });
  const inUse = (id: string, ...toys: string[]) => ({
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: {
        resource_type: 'secret',
        resource_id: id,
        reason: 'in_use',
        references: toys.map((resource_id) => ({ resource_type: 'model', resource_id })),
      },
    },
  });
  expect(await ann.call('DELETE', `${byId.url}?permanent=true`)).toMatchObject(inUse(byId.secret_id, 'toy_1', 'toy_3'));
  expect(await ann.call('DELETE', `${byName.url}?permanent=true`)).toMatchObject(inUse(byName.secret_id, 'toy_2'));
  await ann.call('PATCH', byId.url, { status: 'disabled' });
  expect((await ann.call('DELETE', `${byId.url}?permanent=true`)).status).toBe(409);
  // it is not this one that is named
  expect((await ann.call('DELETE', `${inner.url}?permanent=true`)).status).toBe(204);
  expect((await ann.call('DELETE', byId.url)).status).toBe(204);
  expect((await ann.call('DELETE', `${byId.url}?permanent=true`)).status).toBe(204);
});

test('a secret referred to by name keeps it: else it could be destroyed and another take its place', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann, { name: 'provider' });
  const inner = await newSecret(ann, { name: 'provider', workspace_id: ann.workspaceId });
  const accounts = `/v1/orgs/${ann.orgId}/provider-accounts`;
  const account = { name: 'p', provider_type: 'openai', credentials_ref: 'secret://provider' };
  const made = await ann.call<{ provider_account_id: string }>('POST', accounts, account);
  const { provider_account_id: accountId } = made.body;
  const rename = (path: string, name: string) => ann.call('PATCH', path, { name, description: 'changed' });
  expect(await rename(url, 'other')).toMatchObject({
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: {
        resource_id: secret_id,
        reason: 'in_use',
        references: [{ resource_type: 'provider_account', resource_id: accountId }],
      },
    },
  });
  expect((await ann.call('GET', url)).body).toMatchObject({ name: 'provider', description: null });
  expect((await rename(url, 'provider')).status).toBe(200);
  expect((await rename(inner.url, 'anything')).status).toBe(200);
  // by its identifier it stays the same whatever it is called
  expect((await ann.call('PATCH', `${accounts}/${accountId}`, { credentials_ref: secret_id })).status).toBe(200);
  expect((await rename(url, 'other')).status).toBe(200);
});

test('a renaming and a new reference to the name wait for each other, and the later sees the earlier', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann, { name: 'held' });
  let renamed: Promise<{ status: number }> | undefined;
  await inChange(async (tx) => {
    await app.services.vault.demandReference(tx, ann.orgId, 'secret://held', PATH);
    renamed = fromOutside(() => ann.call('PATCH', url, { name: 'gone' }));
    await waitFor(async () => expect(await waiting()).toBe(1));
    await name(ann, { toy_8: 'secret://held' });
  });
  expect((await renamed!).status).toBe(409);
  let stored: Promise<unknown> | undefined;
  const renaming = await app.database.pool.connect();
  try {
    await renaming.query(`begin; select 1 from secrets where name = 'held' for update`);
    stored = fromOutside(() => ensured(ann, 'secret://held'));
    await waitFor(async () => expect(await waiting()).toBe(1));
    await renaming.query(`update secrets set name = 'gone' where name = 'held'; commit`);
  } finally {
    renaming.release(true);
  }
  expect(await stored).toBe(422);
});

test('a reference that is being stored holds its secret: a destroy waits for it, and then finds it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { secret_id, url } = await newSecret(ann);
  let destroyed: Promise<{ status: number }> | undefined;
  await inChange(async (tx) => {
    await app.services.vault.demandReference(tx, ann.orgId, secret_id, PATH);
    destroyed = fromOutside(() => ann.call('DELETE', `${url}?permanent=true`));
    await waitFor(async () => expect(await waiting()).toBe(1));
    await name(ann, { toy_9: secret_id });
  });
  expect((await destroyed!).status).toBe(409);
});

const waiting = () => fromOutside(() => lockWaits(app.database.pool));

test('a secret that is being put into a namespace goes with it: of both at once none is left behind', async () => {
  const ann = await register(app, { name: 'ann' });
  for (let round = 0; round < 5; round++) {
    const { body } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: `n${round}` });
    await Promise.all([
      ann.call('POST', secretsOf(ann), secretBody({ namespace_id: body.namespace_id })),
      ann.call('DELETE', `${ann.home}/namespaces/${body.namespace_id}`),
    ]);
    const left = { namespaceId: body.namespace_id, status: { not: 'deleted' } };
    expect(await app.database.prisma.secret.count({ where: left })).toBe(0);
  }
});
