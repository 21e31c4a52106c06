import { type Statement, statement } from '../../data/writes.ts';

/** The workspace that users are present in. */
export interface PresentPlace {
  orgId: string;
  workspaceId: string;
}

/** Locks what is known about a user in a workspace, even if it is nothing yet. */
export const lockOf = ({ workspaceId }: Pick<PresentPlace, 'workspaceId'>, userId: string): Statement =>
  statement`select pg_advisory_xact_lock(hashtextextended(${`presence ${workspaceId} ${userId}`}, 0))`;
