import type { Tx } from '../data/changes.ts';

/** The head of a chain that has new content or a new file. */
export interface ChangedContent {
  id: string;
  /** Rises with each change of the content. What was read of an older version is void. */
  version: number;
}

/** Whoever indexes artifacts. */
export interface ArtifactIndexing {
  /** Called in the transaction of the change. The index columns say already that nothing of the content is indexed. */
  contentChanged(tx: Tx, artifact: ChangedContent): void;
}
