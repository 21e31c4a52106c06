import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diffToSchema } from '../../scripts/schema-engine.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const schema = [
  { path: 'schema.prisma', content: 'datasource db {\n  provider = "postgresql"\n}' },
  {
    path: 'event.prisma',
    content: `
      model Event {
        id      String @id
        xid     Unsupported("xid8") @default(dbgenerated("pg_current_xact_id()"))
        kind    Kind
        payload Json @default("{}")
        email   String? @db.VarChar(20)
        @@index([kind, id(sort: Desc)])
        @@map("events")
      }
      enum Kind {
        a
        b
      }`,
  },
];

// what Prisma has no words for, and migrations write by hand
const HAND_WRITTEN = `
  create function touch() returns trigger language plpgsql as $$
    begin new.email := lower(new.email); return new; end; $$;
  create trigger touch before insert on events for each row execute function touch();
  create unique index events_email on events (lower(email));
  create index events_open on events (id) where email is null;
  alter table events add constraint email_is_not_empty check (email <> '');
`;

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase({ template: 'template0' });
});

afterEach(() => database.drop());

async function run(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

describe('diffToSchema', () => {
  it('gives SQL that leads to the schema, after which there is no difference', async () => {
    await run(await diffToSchema(database.url, schema));
    expect(await diffToSchema(database.url, schema)).toBe('');
  });

  it('does not mistake triggers, functions, checks, partial and expression indexes for drift', async () => {
    await run(await diffToSchema(database.url, schema));
    await run(HAND_WRITTEN);
    expect(await diffToSchema(database.url, schema)).toBe('');
  });

  it('finds a column and an index that the database lacks', async () => {
    await run(await diffToSchema(database.url, schema));
    await run('alter table events drop column email; drop index events_kind_id_idx');
    const sql = await diffToSchema(database.url, schema);
    expect(sql).toContain('ADD COLUMN     "email" VARCHAR(20)');
    expect(sql).toContain('CREATE INDEX "events_kind_id_idx"');
  });
});
