/** A position in the order of commits: directly after the record with this transaction and identifier. */
export interface FeedPosition {
  xid: string;
  id: string;
}

/** Which records of an organization are fed: since when, and the filters of the list. */
export interface FeedTerms {
  orgId: string;
  /** What could be seen when it began, and the transaction that made it, whose records it has; `null` for all. */
  begunSnapshot: string | null;
  begunXid: string | null;
  /** Empty for all. */
  actions: readonly string[];
  resourceTypes: readonly string[];
  success: boolean | null;
}

/** A record in the order of commits. */
export interface FedRecord extends FeedPosition {
  timestamp: Date;
  /** As a line of the export, with its end. */
  line: string;
  /** Whether the terms ask for it. */
  isWanted: boolean;
}

/** Activity records in the order of commits: the group of activity has them, and the wiring passes them on. */
export interface RecordFeed {
  /** The next records behind a position, also those that the terms do not ask for. */
  next(terms: FeedTerms, after: FeedPosition, limit: number): Promise<FedRecord[]>;
  /** Those between two positions that the terms ask for. */
  between(terms: FeedTerms, from: FeedPosition, to: FeedPosition): Promise<FedRecord[]>;
}
