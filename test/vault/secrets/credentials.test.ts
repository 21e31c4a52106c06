import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Changes } from '../../../src/data/changes.ts';
import type { Tx } from '../../../src/data/tx.ts';
import { newId } from '../../../src/kernel/ids.ts';
import { systemCaller } from '../../../src/kernel/system-caller.ts';
import { RootKeys } from '../../../src/platform/keys/root-keys.ts';
import { Credentials } from '../../../src/vault/secrets/credentials.ts';
import { examine, type VaultFinding } from '../../../src/vault/secrets/doctor.ts';
import { rewrap } from '../../../src/vault/secrets/rewrap.ts';
import { ROOT_KEYS, startTestApp, type TestApp } from '../../support/app.ts';
import { changesOver } from '../../support/changes.ts';
import { type Person, register } from '../../support/person.ts';

let app: TestApp;
let owner: Person;
let changes: Changes;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
  changes = changesOver(app);
});
afterAll(() => app.close());

const put = (tx: Tx, toolInstanceId: string, value: Record<string, unknown>) =>
  app.services.credentials.put(tx, owner.orgId, { toolInstanceId }, value, { setBy: owner.userId });
const stored = (toolInstanceId: string) =>
  app.services.credentials.open(app.services.sql, owner.orgId, { toolInstanceId });
const change = <T>(work: (tx: Tx) => Promise<T>) => changes.run(systemCaller('a test'), work);

/** An instance of a new tool of the owner's. */
async function newInstance(): Promise<string> {
  const { prisma } = app.database;
  const { orgId, workspaceId } = owner;
  const toolId = newId('tool');
  await prisma.tool.create({ data: { id: toolId, orgId, name: 'A tool', slug: toolId, description: 'A tool.' } });
  const id = newId('tool_instance');
  await prisma.toolInstance.create({ data: { id, orgId, workspaceId, toolId, name: 'An instance' } });
  return id;
}

test('opens to what was put last, under the same id, and is nowhere in the clear', async () => {
  const toolInstanceId = await newInstance();
  const marker = randomBytes(12).toString('hex');
  const first = await change((tx) => put(tx, toolInstanceId, { token: `${marker}-1` }));
  expect(await stored(toolInstanceId)).toEqual({ token: `${marker}-1` });
  const second = await change((tx) => put(tx, toolInstanceId, { token: `${marker}-2`, more: { a: 1 } }));
  expect(second).toBe(first);
  expect(await stored(toolInstanceId)).toEqual({ token: `${marker}-2`, more: { a: 1 } });
  const { rows } = await app.database.pool.query<{ row: string; bytes: Buffer }>(
    'select to_jsonb(c)::text as row, ciphertext as bytes from credentials c where id = $1',
    [first],
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]!.row).not.toContain(marker);
  expect(rows[0]!.bytes.includes(marker)).toBe(false);
});

test('an earlier ciphertext, and that of another owner, do not open', async () => {
  const [one, other] = [await newInstance(), await newInstance()];
  await change((tx) => put(tx, one, { token: 'one' }));
  await change((tx) => put(tx, other, { token: 'other' }));
  const { pool } = app.database;
  await pool.query(
    `update credentials c set ciphertext = o.ciphertext, wrapped_key = o.wrapped_key from credentials o
     where c.tool_instance_id = $1 and o.tool_instance_id = $2`,
    [one, other],
  );
  await expect(stored(one)).rejects.toThrow('cannot be decrypted');
  await pool.query('update credentials set version = version + 1 where tool_instance_id = $1', [other]);
  await expect(stored(other)).rejects.toThrow('cannot be decrypted with the data key');
  await pool.query('delete from credentials where tool_instance_id = any($1)', [[one, other]]);
});

test('goes with its instance, or alone', async () => {
  const [one, other] = [await newInstance(), await newInstance()];
  for (const id of [one, other]) await change((tx) => put(tx, id, { token: id }));
  await app.database.prisma.toolInstance.delete({ where: { id: one } });
  await change((tx) => app.services.credentials.remove(tx, owner.orgId, { toolInstanceId: other }));
  expect(await app.database.prisma.credential.count({ where: { toolInstanceId: { in: [one, other] } } })).toBe(0);
  expect(await stored(other)).toBeNull();
});

test('follows a new root key, which keeps the old one from being needed; the doctor opens it', async () => {
  const toolInstanceId = await newInstance();
  await change((tx) => put(tx, toolInstanceId, { token: 'kept' }));
  const { database } = app;
  const newer = `newer:${randomBytes(32).toString('base64')}`;
  const keys = await RootKeys.open({ rootKeys: parsed(`${newer},${ROOT_KEYS}`), keysDir: app.keysDir }, database);
  const result = await rewrap(database.prisma, keys, () => undefined);
  expect(result).toMatchObject({ rootKeyId: 'newer', faults: [], retired: ['test'], needed: [] });
  const onlyNewer = RootKeys.unchecked({ rootKeys: parsed(newer), keysDir: app.keysDir });
  const opened = await new Credentials({ rootKeys: onlyNewer }).open(app.services.sql, owner.orgId, { toolInstanceId });
  expect(opened).toEqual({ token: 'kept' });

  const findings: VaultFinding[] = [];
  const count = await database.prisma.credential.count();
  const examined = await examine(database.prisma, onlyNewer, (finding) => findings.push(finding));
  expect({ examined, findings }).toEqual({ examined: { secrets: count, versions: count }, findings: [] });
  const { id } = await database.prisma.credential.findUniqueOrThrow({ where: { toolInstanceId } });
  await database.pool.query(
    'update credentials set ciphertext = set_bit(ciphertext, 0, 1 - get_bit(ciphertext, 0)) where id = $1',
    [id],
  );
  await examine(database.prisma, onlyNewer, (finding) => findings.push(finding));
  expect(findings).toEqual([
    { secretId: id, orgId: owner.orgId, version: null, reason: 'cannot be decrypted with the data key' },
  ]);
});

const parsed = (text: string) =>
  text.split(',').map((item) => {
    const at = item.indexOf(':');
    return { id: item.slice(0, at), key: Buffer.from(item.slice(at + 1), 'base64') };
  });
