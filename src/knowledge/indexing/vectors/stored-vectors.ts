import type { Vector } from '../../../kernel/embedding.ts';

/** One bit for each component: whether it is positive. Few differ between vectors that point the same way. */
export const signsOf = (vector: Vector): string => vector.map((component) => (component > 0 ? '1' : '0')).join('');

/** A vector as PostgreSQL reads an array; single precision, as it is kept. */
export const arrayOf = (vector: Vector): string => `{${Array.from(Float32Array.from(vector)).join(',')}}`;

/** Whether a chunk `k` has a vector of the model `$2` with the name `$3` at its provider. */
export const HAS_VECTOR = `exists (select 1 from artifact_chunk_vectors v
  where v.artifact_id = k.artifact_id and v.position = k.position and v.model_id = $2 and v.model_name = $3)`;
