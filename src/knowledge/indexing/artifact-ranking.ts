/** What an artifact has to be besides what it says: all that is given. */
export interface ArtifactConditions {
  /** One of these types. */
  artifactTypes?: readonly string[] | null;
  /** One of these media types, as `text/plain` or `text/*`. */
  mimeTypes?: readonly string[] | null;
  /** Has all of these tags. */
  tags?: readonly string[] | null;
  /** Has each of these keys, with this value. */
  metadata?: Readonly<Record<string, unknown>> | null;
  createdFrom?: Date | null;
  /** Exclusive, as the next one. */
  createdTo?: Date | null;
  updatedFrom?: Date | null;
  updatedTo?: Date | null;
}

/** What artifacts are searched for. */
export interface RankingQuery {
  text: string;
  conditions: ArtifactConditions;
  threadId: string | null;
  /** From 0 to 1; artifacts with a lower score are not found. */
  minScore: number;
  /** Also artifacts that expired and can still be read. */
  includeExpired: boolean;
  /** How many of the best are asked for. */
  limit: number;
}

/** An artifact that was found. */
export interface RankedArtifact {
  artifactId: string;
  /** From 0 to 1. */
  score: number;
  /** The chunk that fits best; `null` if only labels of the artifact fit. */
  chunk: string | null;
  /** The words that were found, as they are stored. */
  lexemes: readonly string[];
}

/** The best artifacts in one order, and how many there are. */
export interface RankedList {
  artifacts: readonly RankedArtifact[];
  total: number;
}

/** Namespaces of an organization that the caller may read. */
export interface SearchedPlaces {
  orgId: string;
  namespaceIds: readonly string[];
}

/** Namespaces of a workspace with artifacts that a model embedded, and the model that the workspace has now. */
export interface EmbeddedPlaces {
  workspaceId: string;
  modelId: string;
  namespaceIds: readonly string[];
}

/** What words find, and where vectors may find more. */
export interface WordRanking extends RankedList {
  embedded: readonly EmbeddedPlaces[];
}

/** How far vectors took part in a search. */
export type VectorUse = 'none' | 'used' | 'partial' | 'unavailable';

/** What vectors find, the best first, or why they find nothing. */
export interface VectorRanking {
  artifacts: readonly RankedArtifact[];
  use: VectorUse;
  /** Why not all vectors that are there took part; `null` if they did, or if there are none. */
  reason: string | null;
}
