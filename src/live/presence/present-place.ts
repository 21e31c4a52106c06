import { type Statement, statement } from '../../data/writes.ts';

/** The workspace that users are present in. */
export interface PresentPlace {
  orgId: string;
  workspaceId: string;
}

/** Names what is known about a user in a workspace: who changes it takes turns. */
export const turnOf = ({ workspaceId }: Pick<PresentPlace, 'workspaceId'>, userId: string): string =>
  `presence ${workspaceId} ${userId}`;

/** Locks what is known about a user in a workspace, even if it is nothing yet. */
export const lockOf = (place: Pick<PresentPlace, 'workspaceId'>, userId: string): Statement =>
  statement`select pg_advisory_xact_lock(hashtextextended(${turnOf(place, userId)}, 0))`;

/**
 * The end of a query for rows that are changed together: they are locked in one order by all, a renewal of many users
 * included, so nobody waits in a circle.
 */
export const IN_ORDER = 'order by p.workspace_id, p.user_id, p.connection_id for no key update of p';
