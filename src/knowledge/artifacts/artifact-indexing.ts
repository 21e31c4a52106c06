import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';

/** The head of a chain that has new content or a new file. */
export interface ChangedContent {
  id: string;
  orgId: string;
  /** Rises with each change of the content. What was read of an older version is void. */
  version: number;
  mimeType: string | null;
}

/** What the head says at once of its index. */
export type IndexColumns = Pick<Columns<'artifacts'>, 'isIndexed' | 'indexedAt' | 'indexCollection'>;

/** Whoever indexes artifacts. */
export interface ArtifactIndexing {
  /**
   * Called in the transaction of the change. @returns what the artifact says of its index from now on, besides that
   * nothing of its content is indexed: what has no text, as an image, needs no job
   */
  contentChanged(tx: Tx, artifact: ChangedContent): IndexColumns;

  /** @returns what the row of an artifact says of its index, if the language changes and the content does not */
  languageChanged(
    before: { language: string | null },
    input: { language?: string | null | undefined },
  ): Pick<Columns<'artifacts'>, 'indexVersion'>;
}
