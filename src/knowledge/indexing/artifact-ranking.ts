import type { NamespacePlace } from '../../kernel/checked-place.ts';

/** What artifacts are searched for. */
export interface RankingQuery {
  text: string;
  artifactTypes: readonly string[] | null;
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

/** One way to rank the artifacts of a namespace. Vectors would be another: the search takes the best of all. */
export interface ArtifactRanking {
  rank(place: NamespacePlace, query: RankingQuery): Promise<RankedList>;
}
