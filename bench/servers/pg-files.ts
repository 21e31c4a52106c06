import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { newId, newIdWith } from '../../src/kernel/ids.ts';
import { inTransaction, recorded } from './pg-writes.ts';

const MAY = `select 1 from workspace_members m join namespaces n on n.workspace_id = m.workspace_id
  where m.user_id = $1 and m.workspace_id = $2 and n.id = $3`;
const FILE = `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, mime_type, size_bytes,
  sha256, state, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'kept', $10)`;
const ARTIFACT = `insert into artifacts (id, org_id, workspace_id, namespace_id, name, artifact_type, root_artifact_id,
  file_id, file_name, mime_type, size_bytes, source, created_by)
  values ($1, $2, $3, $4, $5, 'file', $1, $6, $7, $8, $9, 'upload', $10) returning *`;
const STORED = `select f.storage_key, f.size_bytes, f.sha256, f.file_name, a.mime_type from artifacts a
  join files f on f.id = a.file_id join users u on u.id = $3
  join workspace_members m on m.workspace_id = a.workspace_id and m.user_id = u.id
  where a.id = $1 and a.org_id = $2 and a.deleted_at is null and u.is_active`;

interface Place {
  org: string;
  workspace: string;
  namespace: string;
}

const KEY = 'a key of this server';
const sign = (text: string) => createHmac('sha256', KEY).update(text).digest();

/** The signed path of a download from this server. */
export const downloadPath = (orgId: string, id: string, userId: string): string =>
  `/download/${id}?org=${orgId}&by=${userId}&signature=${sign(`${orgId} ${id} ${userId}`).toString('base64url')}`;

/** Uploads and downloads as one usually writes them; the files are flushed and hashed, as those of the product. */
export async function addFiles(
  server: FastifyInstance,
  pool: Pool,
  dir: string,
  callerOf: (request: FastifyRequest) => string,
): Promise<void> {
  await server.register(multipart, { limits: { fileSize: 50 * 1024 * 1024, files: 1 } });
  server.post<{ Params: Place }>(
    '/v1/orgs/:org/workspaces/:workspace/namespaces/:namespace/artifacts/upload',
    async (request, reply) => {
      const { org: orgId, workspace: workspaceId, namespace: namespaceId } = request.params;
      const userId = callerOf(request);
      const allowed = await pool.query({ name: 'may', text: MAY, values: [userId, workspaceId, namespaceId] });
      if (allowed.rowCount === 0) return reply.code(403).send({ error: 'FORBIDDEN' });
      let name = '';
      const stored = { id: newIdWith('file'), key: '', size: 0, sha256: '', fileName: '', type: '' };
      for await (const part of request.parts()) {
        if (part.type === 'field') {
          if (part.fieldname === 'name') name = String(part.value);
          continue;
        }
        stored.key = `${workspaceId.toLowerCase()}/${stored.id}`;
        stored.fileName = part.filename;
        stored.type = part.mimetype;
        const hash = createHash('sha256');
        const count = new Transform({
          transform(chunk: Buffer, _encoding, done) {
            stored.size += chunk.length;
            hash.update(chunk);
            done(null, chunk);
          },
        });
        await mkdir(path.join(dir, workspaceId.toLowerCase()), { recursive: true });
        await pipeline(part.file, count, createWriteStream(path.join(dir, stored.key), { flags: 'wx', flush: true }));
        stored.sha256 = hash.digest('hex');
      }
      const { id: fileId, key, size, sha256, fileName, type } = stored;
      const artifact = await inTransaction(pool, async (client) => {
        const place = [orgId, workspaceId, namespaceId];
        const file = [fileId, ...place, key, fileName, type, size, sha256, userId];
        await client.query({ name: 'file', text: FILE, values: file });
        const id = newId('artifact');
        const values = [id, ...place, name, fileId, fileName, type, size, userId];
        const { rows } = await client.query({ name: 'artifact', text: ARTIFACT, values });
        await recorded(client, {
          orgId,
          userId,
          workspaceId,
          method: 'POST',
          path: request.url,
          kind: 'artifact',
          id,
          action: 'create',
          event: 'artifact.created',
          status: 201,
        });
        return rows[0] as object;
      });
      return reply.code(201).send(artifact);
    },
  );
  server.get<{ Params: { id: string }; Querystring: { org: string; by: string; signature: string } }>(
    '/download/:id',
    async (request, reply) => {
      const { org, by, signature } = request.query;
      const given = Buffer.from(signature, 'base64url');
      const right = sign(`${org} ${request.params.id} ${by}`);
      if (given.length !== right.length || !timingSafeEqual(given, right)) return reply.code(403).send();
      const { rows } = await pool.query<{
        storage_key: string;
        size_bytes: string;
        sha256: string;
        file_name: string;
        mime_type: string;
      }>({ name: 'stored', text: STORED, values: [request.params.id, org, by] });
      const [file] = rows;
      if (!file) return reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
      return reply
        .headers({
          etag: `"${file.sha256}"`,
          'content-length': file.size_bytes,
          'content-type': file.mime_type,
          'content-disposition': `attachment; filename="${file.file_name}"`,
        })
        .send(createReadStream(path.join(dir, file.storage_key)));
    },
  );
}
