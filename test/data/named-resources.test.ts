import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RESOURCE_IS_THERE } from '../../src/data/named-resources.ts';
import { type ResourceWord, resourceWords } from '../../src/kernel/resources.ts';
import { type BareDatabase, openBareDatabase } from '../support/bare-database.ts';

/** The resources whose rows are in a table, by the column that names them. */
const tables: Readonly<Record<string, Readonly<Record<string, readonly ResourceWord[]>>>> = {
  organizations: { id: ['organization'] },
  organization_members: { user_id: ['organization_member', 'user', 'presence'] },
  invitations: { id: ['invitation'] },
  identity_providers: { id: ['identity_provider'] },
  workspaces: { id: ['workspace'] },
  workspace_members: { user_id: ['workspace_member'] },
  namespaces: { id: ['namespace'] },
  apps: { id: ['app'] },
  releases: { id: ['release'] },
  augmentations: { id: ['augmentation'] },
  endpoints: { id: ['endpoint'] },
  actions: { id: ['action'] },
  executions: { execution_id: ['execution'] },
  threads: { id: ['thread'] },
  artifacts: { id: ['artifact'] },
  sources: { id: ['source'] },
  secrets: { id: ['secret'] },
  api_tokens: { id: ['api_token', 'app_token'] },
  environments: { id: ['environment'] },
  deployments: { id: ['deployment'] },
  logical_models: { logical_model_id: ['model'] },
  provider_accounts: { id: ['provider_account'] },
  model_entitlements: { id: ['model_entitlement'] },
  tools: { id: ['tool'] },
  tool_instances: { id: ['tool_instance', 'tool_action'] },
  connections: { id: ['connection'] },
  entities: { id: ['entity'] },
  memories: { id: ['memory'] },
  notifications: { id: ['notification'] },
  entity_relations: { id: ['entity_relation'] },
};

let database: BareDatabase;
let client: pg.PoolClient;
beforeAll(async () => {
  database = await openBareDatabase();
  client = await database.pool.connect();
  // the columns of the tables, without what else rows of them need
  for (const table of Object.keys(tables))
    await client.query(`create temp table ${table} as select * from public.${table} with no data`);
});
beforeEach(() => client.query('begin'));
afterEach(() => client.query('rollback'));
afterAll(async () => {
  client.release();
  await database.close();
});

async function add(table: string, row: Readonly<Record<string, string>>): Promise<void> {
  const values = Object.keys(row).map((_, index) => `$${index + 1}`);
  await client.query(
    `insert into ${table} (${Object.keys(row).join(', ')}) values (${values.join(', ')})`,
    Object.values(row),
  );
}

/** The kinds of resources that are there, where a record says that it is about one with this id. */
async function found(id: string, { org = 'o', workspace = 'w' } = {}): Promise<string[]> {
  const { rows } = await client.query<{ word: string }>(
    `select r.resource_type as word from unnest($1::text[]) with ordinality u(word, at), lateral (
       select u.word as resource_type, $2::text as resource_id, $3::text as org_id, $4::text as workspace_id) r
     where ${RESOURCE_IS_THERE} order by u.at`,
    [resourceWords, id, org, workspace],
  );
  return rows.map(({ word }) => word);
}

const rowsOfTables = Object.entries(tables).flatMap(([table, columns]) =>
  Object.entries(columns).map(([column, words]) => ({ table, column, words })),
);
const inOrganization = rowsOfTables.filter(({ table }) => !['organizations', 'executions'].includes(table));

describe('what a record is about is there', () => {
  it.each(inOrganization)('where its organization has a row in $table', async ({ table, column, words }) => {
    await add(table, { [column]: 'x', org_id: 'o' });
    expect(await found('x')).toEqual(words);
    expect(await found('x', { workspace: 'v' })).toEqual(words);
    expect(await found('y')).toEqual([]);
    expect(await found('x', { org: 'p' })).toEqual([]);
  });

  it('where it is the organization itself', async () => {
    await add('organizations', { id: 'o' });
    await add('organizations', { id: 'p' });
    expect(await found('o')).toEqual(['organization']);
    expect(await found('p')).toEqual([]);
  });

  it('where it is a run of its workspace', async () => {
    await add('executions', { execution_id: 'x', id: 'y', org_id: 'o', workspace_id: 'w' });
    expect(await found('x')).toEqual(['execution']);
    expect(await found('x', { workspace: 'v' })).toEqual([]);
    expect(await found('x', { org: 'p' })).toEqual([]);
    expect(await found('y')).toEqual([]);
  });

  it('where it is a tool of every organization', async () => {
    await add('tools', { id: 'x' });
    expect([await found('x'), await found('x', { org: 'p' }), await found('y')]).toEqual([['tool'], ['tool'], []]);
  });
});
