import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { request as send } from 'undici';
import type { RootKeys } from '../../src/platform/keys/root-keys.ts';
import { openValue, unwrapKey } from '../../src/vault/secrets/envelope.ts';

const FIND = `select i.configuration, t.action_schemas, c.id, c.org_id, c.root_key_id, c.wrapped_key, c.version,
    c.ciphertext
  from tool_instances i join tools t on t.id = i.tool_id join credentials c on c.tool_instance_id = i.id
    join workspaces w on w.id = i.workspace_id
  where i.org_id = $1 and i.workspace_id = $2 and i.id = $3 and i.is_active and t.status <> 'disabled'
    and w.deleted_at is null and (
      exists (select from organization_members m
        where m.org_id = i.org_id and m.user_id = $4 and m.role in ('owner', 'admin'))
      or exists (select from workspace_members m
        where m.workspace_id = i.workspace_id and m.user_id = $4 and m.role <> 'viewer'))`;
const COUNT = `update tool_instances set usage_count = usage_count + 1, last_used_at = now()
  where org_id = $1 and id = $2`;
const RECORD = `insert into activity (id, trace_id, org_id, user_id, principal_type, principal_id, method, path,
  resource_type, resource_id, action, status_code, success, metadata)
  values ($1, $2, $3, $4, 'user', $4, $5, $6, 'tool_instance', $7, 'execute', 200, true, $8)`;
const EMIT = `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
  values ($1, $2, $3, 'tool_action.executed', $4, 'tool_instance', $5, $6)`;

interface Found {
  configuration: { base_url: string };
  action_schemas: { name: string; url_template: string }[];
  id: string;
  org_id: string;
  root_key_id: string;
  wrapped_key: Uint8Array;
  version: number;
  ciphertext: Uint8Array;
}

interface Params {
  org: string;
  ws: string;
  id: string;
}

/** `BENCH_FRESH=1`: a connection for each call, as the product has it for what changes something. */
const isFresh = process.env.BENCH_FRESH === '1';

/** Hand-written calls of providers, with what whoever calls must have, and what is recorded of them. */
export function addToolCalls(
  server: FastifyInstance,
  pool: Pool,
  rootKeys: RootKeys,
  userOf: (request: object) => string,
): void {
  const find = async (request: object, { org, ws, id }: Params) => {
    const values = [org, ws, id, userOf(request)];
    const { rows } = await pool.query<Found>({ name: 'find call', text: FIND, values });
    const row = rows[0]!;
    const { root_key_id: rootKeyId, wrapped_key: wrappedKey, version, ciphertext } = row;
    const identity = { orgId: row.org_id, id: row.id };
    const dataKey = unwrapKey(rootKeys, { ...identity, rootKeyId, wrappedKey });
    return { row, key: String(openValue(dataKey, identity, { version, ciphertext }).api_key) };
  };
  const recordOf = (request: { method: string; url: string }, { org, id }: Params, metadata: object) => ({
    name: 'record call',
    text: RECORD,
    values: [`act_${randomUUID()}`, randomUUID(), org, userOf(request), request.method, request.url, id, metadata],
  });
  const home = '/v1/orgs/:org/workspaces/:ws/tool-instances/:id';
  server.post<{ Params: Params; Body: { action: string } }>(`${home}/execute`, async (request) => {
    const { params, body } = request;
    const { row, key } = await find(request, params);
    const action = row.action_schemas.find(({ name }) => name === body.action)!;
    const url = action.url_template.replace('{{base_url}}', row.configuration.base_url);
    const answer = await send(url, { headers: { 'x-api-key': key }, reset: isFresh });
    const result = await answer.body.json();
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query({ name: 'count call', text: COUNT, values: [params.org, params.id] });
      await client.query(recordOf(request, params, { action: body.action, status: answer.statusCode }));
      await client.query({
        name: 'emit call',
        text: EMIT,
        values: [`evt_${randomUUID()}`, params.org, params.ws, { user_id: userOf(request) }, params.id, {}],
      });
      await client.query('commit');
    } finally {
      client.release();
    }
    return { tool_instance_id: params.id, success: true, status: answer.statusCode, result };
  });
  server.get<{ Params: Params & { '*': string } }>(`${home}/proxy/*`, async (request, reply) => {
    const { params } = request;
    const { row, key } = await find(request, params);
    const answer = await send(`${row.configuration.base_url}/${params['*']}`, {
      headers: { 'x-api-key': key },
      reset: isFresh,
    });
    await pool.query(recordOf(request, params, { status: answer.statusCode }));
    return reply.code(answer.statusCode).header('content-type', answer.headers['content-type']).send(answer.body);
  });
}
