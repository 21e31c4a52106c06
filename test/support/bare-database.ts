import pg from 'pg';
import { Sql } from '../../src/data/sql.ts';
import type { NewRow, TableName } from '../../src/data/tables.ts';
import { insert } from '../../src/data/writes.ts';
import { newId } from '../../src/kernel/ids.ts';
import type { Role } from '../../src/kernel/roles.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { Transaction } from '../../src/platform/postgres/transaction.ts';
import { createTestDatabase } from './database.ts';

/** A database with all migrations and without the service, for tests of what reads and writes it. */
export interface BareDatabase extends Pick<Database, 'transaction'> {
  pool: pg.Pool;
  sql: Sql;
  /** Writes a row. */
  add: <Name extends TableName>(table: Name, row: NewRow<Name>) => Promise<void>;
  close(): Promise<void>;
}

export async function openBareDatabase(): Promise<BareDatabase> {
  const own = await createTestDatabase();
  const pool = new pg.Pool({ connectionString: own.url, max: 2, pipeline: true });
  return {
    pool,
    sql: new Sql(pool),
    async transaction(work) {
      const transaction = new Transaction(pool);
      try {
        return await work(transaction);
      } finally {
        await transaction.end();
      }
    },
    async add(table, row) {
      const write = insert(table, row);
      await pool.query(write.text(1, null), [...write.values]);
    },
    async close() {
      await pool.end();
      await own.drop();
    },
  };
}

/** A new user without a password. */
export async function addUser(
  { add }: BareDatabase,
  given: Partial<NewRow<'users'>> = {},
): Promise<{ id: string; username: string }> {
  const id = newId('user');
  const row = { email: `${id}@example.test`, emailKey: id, username: id, usernameKey: id, isVerified: true, ...given };
  await add('users', { ...row, id });
  return { id, username: row.username };
}

/** A new organization with these members, by user. */
export async function addOrganization(
  { add }: BareDatabase,
  members: Readonly<Record<string, Role>> = {},
): Promise<string> {
  const id = newId('organization');
  await add('organizations', { id, name: 'o' });
  for (const [userId, role] of Object.entries(members))
    await add('organization_members', {
      id: newId('organization_member'),
      orgId: id,
      userId,
      role,
      usedAt: new Date(),
    });
  return id;
}

/** A new workspace with these members, by user. */
export async function addWorkspace(
  { add }: BareDatabase,
  orgId: string,
  members: Readonly<Record<string, Role>> = {},
): Promise<string> {
  const id = newId('workspace');
  await add('workspaces', { id, orgId, name: id, storageBucket: id });
  for (const [userId, role] of Object.entries(members))
    await add('workspace_members', { id: newId('workspace_member'), orgId, workspaceId: id, userId, role });
  return id;
}
