import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { caller } from '../support/person.ts';
import { createWorld, type World } from '../support/world.ts';

/** Columns that look like references to secrets and are none, with the reason. */
const notReferences: Record<string, string> = {
  'secret_versions.secret_id': 'a version is part of its secret and goes with it',
};

/** Tables whose rows end at some time and for which no retention is declared, with the reason. */
const kept: Record<string, string> = {
  connections: 'its access token ends and is refreshed; it goes with its tool instance',
  files: 'a task removes those that nobody uses, bytes first',
  invitations: 'an expired invitation stays listed until somebody removes it, and goes with its organization',
  presences: 'a task removes them within a second, with the event that their users have left',
};

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

const references = () => app.owners.flatMap(({ secretReferences }) => secretReferences ?? []);

/** `table.column` of all columns whose name is like the pattern. */
async function columns(pattern: string): Promise<string[]> {
  const { rows } = await app.database.pool.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
     join pg_class c on c.oid = format('%I.%I', table_schema, table_name)::regclass and not c.relispartition
     where table_schema = 'public' and column_name ~ $1 order by 1`,
    [pattern],
  );
  return rows.map(({ name }) => name);
}

describe('references to secrets', () => {
  it('are declared to the vault, with each database column that may contain them', async () => {
    const declared = references().map(({ table, column }) => `${table}.${column}`);
    expect(declared).not.toEqual([]);
    const found = await columns('(_ref|secret_id|secret|vault_id)$');
    expect(found).toEqual([...declared, ...Object.keys(notReferences)].toSorted());
  });

  it('keep the secret that they name, by its identifier or its name, and let it go when they are gone', async () => {
    const owner = caller(app, world.accounts.owner);
    const secrets = `/v1/orgs/${owner.orgId}/secrets`;
    const destroy = (id: string) => owner.call('DELETE', `${secrets}/${id}?permanent=true`);
    for (const { resource, table, column } of references()) {
      const name = `named by ${table}`;
      const made = await owner.call<{ secret_id: string }>('POST', secrets, {
        name,
        secret_type: 'token',
        value: { a: 'b' },
      });
      const { secret_id } = made.body;
      const refer = (text: string) =>
        app.database.pool.query<{ id: string }>(`update ${table} set ${column} = $1 where org_id = $2 returning id`, [
          text,
          owner.orgId,
        ]);
      for (const reference of [secret_id, `secret://${name}`]) {
        const { rows } = await refer(reference);
        expect(rows, `the world has nothing in ${table}`).not.toEqual([]);
        const ids = rows.map(({ id }) => id).toSorted();
        const uses = ids.map((id) => ({ resource_type: resource, resource_id: id }));
        expect(await destroy(secret_id)).toMatchObject({
          status: 409,
          body: { details: { resource_id: secret_id, reason: 'in_use', references: uses } },
        });
      }
      await refer('elsewhere');
      expect((await destroy(secret_id)).status).toBe(204);
    }
  });
});

describe('retention', () => {
  it('is declared for each table whose rows end at some time', async () => {
    const rules = app.owners.flatMap(({ retention }) => retention ?? []);
    const declared = rules.map(
      (rule) => /^(?:delete from |update |select drop_)([a-z_]+?)(?: |_before\()/.exec(rule)?.[1],
    );
    const ending = await columns('^(deleted|deactivated|expires|revoked|window)_(at|start)$|^timestamp$');
    const tables = new Set(ending.map((name) => name.split('.')[0]));
    expect([...tables].filter((table) => !declared.includes(table))).toEqual(Object.keys(kept));
  });
});
