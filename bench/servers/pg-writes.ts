import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool, PoolClient } from 'pg';
import { newId } from '../../src/kernel/ids.ts';
import type { RootKeys } from '../../src/platform/keys/root-keys.ts';
import { newDataKey, type SecretValue, sealValue, wrapKey } from '../../src/vault/secrets/envelope.ts';

const SHOWN = `id as workspace_id, name, description, owner_id, subscription_plan_id, region, storage_bucket,
  bucket_status, is_active, tags, created_at, updated_at`;
const WORKSPACE = `insert into workspaces (id, org_id, name, description, owner_id, storage_bucket, tags)
  values ($1, $2, $3, $4, $5, $6, $7) returning ${SHOWN}`;
const MEMBER = `insert into workspace_members (id, org_id, workspace_id, user_id, role, added_by)
  values ($1, $2, $3, $4, 'owner', $4)`;
const NAMESPACE = `insert into namespaces (id, org_id, workspace_id, name, slug, created_by)
  values ($1, $2, $3, 'Default', 'default', $4)`;
const UPDATE = `update workspaces set name = $3, updated_at = now()
  where org_id = $1 and id = $2 and deleted_at is null returning ${SHOWN}`;
const SECRET = `insert into secrets (id, org_id, name, secret_type, root_key_id, wrapped_key, created_by)
  values ($1, $2, $3, $4, $5, $6, $7)
  returning id as secret_id, org_id as organization_id, scope, name, secret_type, status, description, vault_version,
    expires_at, last_rotated_at, access_count, created_by, created_at, updated_at`;
const VERSION = 'insert into secret_versions (secret_id, version, ciphertext, created_by) values ($1, 1, $2, $3)';
const RECORD = `insert into activity (id, timestamp, trace_id, org_id, user_id, workspace_id,
  principal_type, principal_id, method, path, resource_type, resource_id, action, status_code, success)
  values ($1, now(), $2, $3, $4, $5, 'user', $4, $6, $7, $8, $9, $10, $11, true)`;
const EVENT = `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, trace_id)
  values ($1, $2, $3, $4, $5, $6, $7, $8)`;

interface Done {
  orgId: string;
  userId: string;
  workspaceId: string | null;
  method: string;
  path: string;
  kind: string;
  id: string;
  action: string;
  event: string;
  status: number;
}

/** Writes the record and the event of a change in the usual way: each with its own statement. */
export async function recorded(client: PoolClient, done: Done): Promise<void> {
  const { orgId, userId, workspaceId, method, path, kind, id, action, event, status } = done;
  const trace = randomUUID();
  const record = [newId('activity'), trace, orgId, userId, workspaceId, method, path, kind, id, action, status];
  await client.query({ name: 'record', text: RECORD, values: record });
  const actor = { principal_type: 'user', principal_id: userId };
  const values = [newId('event'), orgId, workspaceId, event, actor, kind, id, trace];
  await client.query({ name: 'event', text: EVENT, values });
}

export async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Hand-written changes: one transaction of prepared statements, with the same rows, record and event as the product's.
 */
export function addWrites(
  server: FastifyInstance,
  pool: Pool,
  rootKeys: RootKeys,
  userOf: (request: object) => string,
): void {
  server.post<{ Params: { org: string }; Body: { name: string; description?: string; tags?: string[] } }>(
    '/v1/orgs/:org/workspaces',
    async (request) => {
      const orgId = request.params.org;
      const userId = userOf(request);
      const id = newId('workspace');
      const { name, description = null, tags = [] } = request.body;
      return inTransaction(pool, async (client) => {
        const values = [id, orgId, name, description, userId, id.toLowerCase(), tags];
        const { rows } = await client.query({ name: 'workspace', text: WORKSPACE, values });
        const member = [newId('workspace_member'), orgId, id, userId];
        await client.query({ name: 'member', text: MEMBER, values: member });
        await client.query({ name: 'namespace', text: NAMESPACE, values: [newId('namespace'), orgId, id, userId] });
        const change = { kind: 'workspace', id, action: 'create', event: 'workspace.created', status: 200 };
        await recorded(client, { ...change, orgId, userId, workspaceId: id, method: 'POST', path: request.url });
        return rows[0] as object;
      });
    },
  );
  server.put<{ Params: { org: string; id: string }; Body: { name: string } }>(
    '/v1/orgs/:org/workspaces/:id',
    async (request, reply) => {
      const { org: orgId, id } = request.params;
      const userId = userOf(request);
      const row = await inTransaction(pool, async (client) => {
        const values = [orgId, id, request.body.name];
        const { rows } = await client.query<object>({ name: 'rename', text: UPDATE, values });
        const change = { kind: 'workspace', id, action: 'update', event: 'workspace.updated', status: 200 };
        if (rows[0])
          await recorded(client, { ...change, orgId, userId, workspaceId: id, method: 'PUT', path: request.url });
        return rows[0];
      });
      return row ?? reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
    },
  );
  server.post<{ Params: { org: string }; Body: { name: string; secret_type: string; value: SecretValue } }>(
    '/v1/orgs/:org/secrets',
    async (request, reply) => {
      const orgId = request.params.org;
      const userId = userOf(request);
      const id = newId('secret');
      const { name, secret_type, value } = request.body;
      const row = await inTransaction(pool, async (client) => {
        const dataKey = newDataKey();
        const root = rootKeys.newest;
        const wrapped = wrapKey(root, { orgId, id }, dataKey);
        const values = [id, orgId, name, secret_type, root.id, wrapped, userId];
        const { rows } = await client.query({ name: 'secret', text: SECRET, values });
        const sealed = sealValue(dataKey, { orgId, id }, 1, value);
        await client.query({ name: 'version', text: VERSION, values: [id, sealed, userId] });
        const change = { kind: 'secret', id, action: 'create', event: 'secret.created', status: 201 };
        await recorded(client, { ...change, orgId, userId, workspaceId: null, method: 'POST', path: request.url });
        return rows[0] as object;
      });
      return reply.code(201).send(row);
    },
  );
}
