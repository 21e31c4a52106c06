import type pg from 'pg';

/** Writes a vector of a chunk, and that a change of its workspace was seen to: without a provider the API cannot. */
export async function seedVectors(db: pg.Client): Promise<void> {
  await db.query(`insert into artifact_chunk_vectors
      (artifact_id, position, org_id, namespace_id, model_id, model_name, dimensions, signs, vector)
    select artifact_id, position, org_id, namespace_id, 'meaning', 'meaning-1', 3, b'101', '{0.6,-0.64,0.48}'
    from artifact_chunks order by artifact_id, position limit 1`);
  await db.query(`insert into embedding_changes (workspace_id, is_marked)
    select id, true from workspaces order by id limit 1 on conflict do nothing`);
}
