import { randomBytes } from 'node:crypto';
import type { TestApp } from './app.ts';
import type { World } from './world.ts';

/** What a statement of retention is about. */
export interface AgingRow {
  /** Matches the text of this statement, and of no other. */
  rule: RegExp;
  table: string;
  /** Its age when it goes, as an interval of PostgreSQL. */
  age: string;
  /** Makes the row: `:key` is for `keyColumn`, `:time` is when it began to age, `:org_id`… are ids of the world. */
  make: string;
  /** `id` if it is not given. */
  keyColumn?: string;
  /** Stays, but emptied: a condition on the row. */
  isEmptied?: string;
}

/** Copies some row that the world has by itself, with other values in some columns. */
const copied = (table: string, changes: string): string =>
  `insert into ${table} select (jsonb_populate_record(null::${table},
     to_jsonb(t) || jsonb_build_object('id', :key, ${changes}))).* from ${table} t
   where org_id = :org_id and id not like 'old_%' limit 1`;

const USER = 'insert into users (id, email, email_key, username, username_key';
const NOTIFICATION = `insert into notifications (id, recipient_id, scope, type, priority, category, title, message,
  source_service, source_event, expires_at) select :key`;
const NOTIFIED = `'user', 'told', 'low', 'system', 'old', 'old', 'tests', 'told'`;
const PROVIDED = ':org_id, :idp_id';

/** A row for each statement of each owner. THE place to add one when the suite says that a statement has none. */
export const agingRows: readonly AgingRow[] = [
  {
    rule: /from workspaces w where deleted_at/,
    table: 'workspaces',
    age: '30 days 12 hours',
    make: `insert into workspaces (id, org_id, name, storage_bucket, deleted_at)
      values (:key, :org_id, 'old', :key, :time)`,
  },
  {
    rule: /from organizations o where deleted_at/,
    table: 'organizations',
    age: '30 days 12 hours',
    make: `insert into organizations (id, name, deleted_at) values (:key, 'old', :time)`,
  },
  {
    rule: /from artifacts where deleted_at/,
    table: 'artifacts',
    age: '30 days',
    make: copied(
      'artifacts',
      `'root_artifact_id', :key, 'is_latest', true, 'replaced_by_version', null, 'file_id', null, 'deleted_at', :time`,
    ),
  },
  {
    rule: /from artifacts where expires_at/,
    table: 'artifacts',
    age: '7 days',
    make: copied(
      'artifacts',
      `'root_artifact_id', :key, 'is_latest', true, 'replaced_by_version', null, 'file_id', null,
        'promoted_to_source_id', null, 'expires_at', :time`,
    ),
  },
  {
    rule: /update users set email/,
    table: 'users',
    age: '30 days',
    make: `${USER}, deactivated_at) values (:key, :key, :key, :key, :key, :time)`,
    isEmptied: 'purged_at is not null',
  },
  {
    rule: /from notifications where expires_at/,
    table: 'notifications',
    age: '0 days',
    make: `${NOTIFICATION}, :user_id, ${NOTIFIED}, :time`,
  },
  {
    rule: /from notifications n using users/,
    table: 'notifications',
    age: '30 days',
    make: `with made as (${USER}, deactivated_at) values ('usr' || :key, :key, :key, :key, :key, :time) returning id)
      ${NOTIFICATION}, id, ${NOTIFIED}, now() + interval '1 hour' from made`,
  },
  {
    rule: /from sso_codes/,
    table: 'sso_codes',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into sso_codes (org_id, identity_provider_id, hash, user_id, subject, expires_at)
      values (${PROVIDED}, :key, :user_id, 'old', :time)`,
  },
  {
    rule: /from sso_states/,
    table: 'sso_states',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into sso_states (org_id, identity_provider_id, hash, expires_at) values (${PROVIDED}, :key, :time)`,
  },
  {
    rule: /from sso_assertions/,
    table: 'sso_assertions',
    keyColumn: 'assertion_id',
    age: '0 days',
    make: `insert into sso_assertions (identity_provider_id, assertion_id, expires_at) values (:idp_id, :key, :time)`,
  },
  {
    rule: /from identity_provider_tests/,
    table: 'identity_provider_tests',
    age: '0 days',
    make: `insert into identity_provider_tests (org_id, identity_provider_id, id, started_by, expires_at)
      values (${PROVIDED}, :key, :user_id, :time)`,
  },
  {
    rule: /from identity_links l using users/,
    table: 'identity_links',
    age: '30 days',
    make: `with made as (${USER}, deactivated_at) values ('usr' || :key, :key, :key, :key, :key, :time) returning id)
      insert into identity_links (org_id, identity_provider_id, id, subject, user_id, reason)
      select ${PROVIDED}, :key, :key, id, 'created' from made`,
  },
  {
    rule: /from scim_tokens where/,
    table: 'scim_tokens',
    age: '30 days',
    make: `insert into scim_tokens (id, org_id, name, prefix, token_hash, expires_at)
      values (:key, :org_id, :key, :key, :key, :time)`,
  },
  {
    rule: /from scim_users s using users/,
    table: 'scim_users',
    age: '30 days',
    make: `with made as (${USER}, deactivated_at) values ('usr' || :key, :key, :key, :key, :key, :time) returning id)
      insert into scim_users (org_id, user_id, id, user_name, user_name_key)
      select :org_id, id, :key, :key, :key from made`,
  },
  {
    rule: /from oauth_grants where/,
    table: 'oauth_grants',
    age: '90 days',
    make: `insert into oauth_grants (id, org_id, application_id, user_id, revoked_at)
      values (:key, :org_id, :application_id, :user_id, :time)`,
  },
  {
    rule: /from webhook_deliveries where/,
    table: 'webhook_deliveries',
    age: '7 days',
    make: `insert into webhook_deliveries (id, org_id, webhook_id, event_id, event_type, resource_type, resource_id,
        body, status, created_at)
      values (:key, :org_id, :webhook_id, :key, 'secret.destroyed', 'secret', :key, '{}', 'failed', :time)`,
  },
  {
    rule: /from audit_stream_deliveries where/,
    table: 'audit_stream_deliveries',
    age: '7 days',
    make: `insert into audit_stream_deliveries (id, org_id, audit_stream_id, resource_id, records, size_bytes, first_at,
        last_at, excerpt, status, created_at)
      values (:key, :org_id, :audit_stream_id, :key, 1, 2, :time, :time, '{}', 'delivered', :time)`,
  },
  {
    rule: /from oauth_records where/,
    table: 'oauth_records',
    keyColumn: 'id_hash',
    age: '0 days',
    make: `insert into oauth_records (kind, id_hash, payload, expires_at) values ('Session', :key, '', :time)`,
  },
  {
    rule: /from secrets where/,
    table: 'secrets',
    age: '30 days',
    make: copied('secrets', `'name', :key, 'status', 'deleted', 'deleted_at', :time`),
  },
  {
    rule: /from api_tokens where/,
    table: 'api_tokens',
    age: '90 days',
    make: copied('api_tokens', `'token_hash', :key, 'refresh_hash', :key, 'revoked_at', :time`),
  },
  {
    rule: /from api_tokens where/,
    table: 'api_tokens',
    age: '90 days',
    make: copied('api_tokens', `'token_hash', :key, 'refresh_hash', :key, 'refresh_expires_at', :time`),
  },
  {
    rule: /from nodes where/,
    table: 'nodes',
    age: '1 day',
    make: `insert into nodes (id, host_name, version, started_at, last_seen_at, worker_count, running_worker_count)
      values (:key, :key, '0', :time, :time, 1, 1)`,
  },
  {
    rule: /from sessions where/,
    table: 'sessions',
    age: '1 day',
    make: 'insert into sessions (id, user_id, expires_at) values (:key, :user_id, :time)',
  },
  {
    rule: /from sessions where/,
    table: 'sessions',
    age: '30 days',
    make: `insert into sessions (id, user_id, expires_at, revoked_at)
      values (:key, :user_id, now() + interval '1 day', :time)`,
  },
  {
    rule: /from refresh_tokens/,
    table: 'refresh_tokens',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into refresh_tokens (hash, session_id, expires_at)
      select :key, id, :time from sessions where user_id = :user_id and expires_at > now() limit 1`,
  },
  {
    rule: /from email_tokens/,
    table: 'email_tokens',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into email_tokens (hash, user_id, purpose, email, expires_at)
      values (:key, :user_id, 'verify', 'old', :time)`,
  },
  {
    rule: /from login_failures/,
    table: 'login_failures',
    keyColumn: 'key',
    age: '1 day',
    make: 'insert into login_failures (key, window_start) values (:key, :time)',
  },
  {
    rule: /from tool_confirmations/,
    table: 'tool_confirmations',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into tool_confirmations (hash, org_id, tool_instance_id, user_id, digest, expires_at)
      select :key, org_id, id, :user_id, 'old', :time from tool_instances where org_id = :org_id limit 1`,
  },
  {
    rule: /from used_challenges/,
    table: 'used_challenges',
    keyColumn: 'hash',
    age: '1 day',
    make: 'insert into used_challenges (hash, expires_at) values (:key, :time)',
  },
  {
    rule: /from oauth_states/,
    table: 'oauth_states',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into oauth_states (hash, org_id, workspace_id, tool_instance_id, connection_id, user_id, verifier,
        redirect_uri, expires_at)
      select :key, org_id, workspace_id, tool_instance_id, id, :user_id, '', 'old', :time from connections
      where org_id = :org_id limit 1`,
  },
  {
    rule: /from connect_links/,
    table: 'connect_links',
    keyColumn: 'hash',
    age: '1 day',
    make: `insert into connect_links (hash, org_id, workspace_id, tool_instance_id, end_user_id, user_id, expires_at)
      select :key, org_id, workspace_id, id, 'old', :user_id, :time from tool_instances where org_id = :org_id limit 1`,
  },
  {
    rule: /from executions where/,
    table: 'executions',
    age: '90 days',
    make: copied('executions', `'execution_id', :key, 'created_at', :time`),
  },
  {
    rule: /from events where/,
    table: 'events',
    age: '7 days',
    make: `insert into events (id, org_id, type, actor, resource_type, resource_id, timestamp)
      values (:key, :org_id, 'thread.created', '{}', 'thread', :key, :time)`,
  },
  {
    rule: /from execution_sums/,
    table: 'execution_sums',
    keyColumn: 'scope_id',
    age: '91 days',
    make: `insert into execution_sums (org_id, scope_id, span, start, slot) values (:org_id, :key, 'day', :time, 0)`,
  },
  {
    rule: /from model_usage_sums/,
    table: 'model_usage_sums',
    keyColumn: 'model_name',
    age: '91 days',
    make: `insert into model_usage_sums (workspace_id, start, logical_model_id, provider_account_id, model_name,
      requests, errors, input_tokens, output_tokens, cost) values (:workspace_id, :time, 'm', '', :key, 1, 0, 1, 1, 0)`,
  },
  {
    rule: /from activity_latencies/,
    table: 'activity_latencies',
    keyColumn: 'scope',
    age: '91 days',
    make: `insert into activity_latencies (org_id, scope, span, start, bucket, requests)
      values (:org_id, :key, 'day', :time, 0, 1)`,
  },
  {
    rule: /from activity_uses/,
    table: 'activity_uses',
    keyColumn: 'resource_id',
    age: '91 days',
    make: `insert into activity_uses (org_id, workspace_id, start, resource_type, resource_id, requests, errors)
      values (:org_id, :workspace_id, :time, 'app', :key, 1, 0)`,
  },
  {
    // a later sample that is also past its age
    rule: /from storage_samples s where s\.at/,
    table: 'storage_samples',
    keyColumn: 'org_id',
    isEmptied: 'bytes = 2',
    age: '400 days',
    make: `with later as (insert into storage_samples (org_id, place_id, at, bytes)
        values (:key, :workspace_id, now() - interval '400 days 1 minute', 2))
      insert into storage_samples (org_id, place_id, at, bytes) values (:key, :workspace_id, :time, 1)`,
  },
  {
    rule: /from idempotency_keys/,
    table: 'idempotency_keys',
    age: '24 hours',
    make: `insert into idempotency_keys (id, request_hash, created_at) values (:key, 'old', :time)`,
  },
];

/** Makes a row that is just past its age, or just before it. @returns its key */
export async function makeAged(app: TestApp, { ids }: World, row: AgingRow, isPast: boolean): Promise<string> {
  const key = `old_${randomBytes(8).toString('hex')}`;
  const time = `(now() - interval '${row.age}' ${isPast ? '-' : '+'} interval '10 minutes')`;
  const text = row.make.replace(/(?<!:):([a-z_]+)/g, (_, name: string) => {
    if (name === 'time') return time;
    const value = name === 'key' ? key : ids[name];
    if (value === undefined) throw new Error(`The world has no '${name}' for a row of ${row.table}.`);
    return `'${value}'`;
  });
  const { rowCount } = await app.database.pool.query(text);
  if (rowCount !== 1) throw new Error(`There is nothing to make a row of ${row.table} from.`);
  return key;
}

/** Whether a row is still there, with what it says. */
export async function isKept(app: TestApp, { table, keyColumn = 'id', isEmptied }: AgingRow, key: string) {
  const text = `select 1 from ${table} where ${keyColumn} = $1 and not (${isEmptied ?? 'false'})`;
  return (await app.database.pool.query(text, [key])).rowCount === 1;
}
