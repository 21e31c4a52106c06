import type { DatabaseShape } from '../platform/postgres/table-copy.ts';

/** What a backup says of itself. */
export interface About {
  /** Of the service that made it. */
  version: string;
  createdAt: string;
  database: DatabaseShape;
}
