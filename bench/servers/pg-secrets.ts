import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { RootKeys } from '../../src/platform/keys/root-keys.ts';
import { openValue, unwrapKey } from '../../src/vault/secrets/envelope.ts';

const COUNT = `update secrets s set access_count = access_count + 1, last_accessed_at = now() from secret_versions v
  where s.org_id = $1 and s.id = $2 and s.status <> 'deleted' and v.secret_id = s.id and v.version = s.vault_version
  returning s.*, v.ciphertext`;
const RECORD = `insert into activity (id, trace_id, org_id, user_id, principal_type, principal_id, method, path,
  resource_type, resource_id, action, status_code, success, metadata)
  values ($1, $2, $3, $4, 'user', $4, 'GET', $5, 'secret', $6, 'reveal', 200, true, $7)`;

interface SecretRow {
  id: string;
  org_id: string;
  expires_at: Date | null;
  vault_version: number;
  root_key_id: string;
  wrapped_key: Uint8Array;
  ciphertext: Uint8Array;
}

/** A hand-written reveal: counted and recorded in one transaction, then decrypted with the same envelope. */
export function addSecrets(
  server: FastifyInstance,
  pool: Pool,
  rootKeys: RootKeys,
  userOf: (request: object) => string,
): void {
  server.get<{ Params: { org: string; id: string } }>('/v1/orgs/:org/secrets/:id', async (request, reply) => {
    const { org, id } = request.params;
    const client = await pool.connect();
    let row: SecretRow | undefined;
    try {
      await client.query('begin');
      row = (await client.query<SecretRow>({ name: 'count', text: COUNT, values: [org, id] })).rows[0];
      if (row) {
        const metadata = { version: row.vault_version };
        const values = [`act_${randomUUID()}`, randomUUID(), org, userOf(request), request.url, id, metadata];
        await client.query({ name: 'record', text: RECORD, values });
      }
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
    if (!row) return reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
    const { ciphertext, wrapped_key: wrappedKey, root_key_id: rootKeyId, org_id: orgId, ...shown } = row;
    const dataKey = unwrapKey(rootKeys, { orgId, id, rootKeyId, wrappedKey });
    const value = openValue(dataKey, { orgId, id }, { version: row.vault_version, ciphertext });
    const isExpired = row.expires_at !== null && row.expires_at < new Date();
    return { ...shown, secret_id: id, organization_id: orgId, is_expired: isExpired, needs_rotation: false, value };
  });
}
