import type { Tx } from '../../data/tx.ts';
import type { Artifact } from '../../generated/prisma/client.ts';

/** The version of an artifact that a job is about. */
interface JobVersion {
  artifactId: string;
  version: number;
}

/** The head that a job is about, under its lock; `null` if it has a newer version or was deleted meanwhile. */
export async function lockHead(tx: Tx, { artifactId, version }: JobVersion): Promise<Artifact | null> {
  const artifact = await tx.lock('artifacts', { id: artifactId }, 'no key update');
  return artifact?.version === version && artifact.isLatest && !artifact.deletedAt ? artifact : null;
}
