import { type Statement, statement } from '../../data/writes.ts';

/** The workspace that users are present in. */
export interface PresentPlace {
  orgId: string;
  workspaceId: string;
}

/** Names the turns of those who change what is known about a user in a workspace. */
export const turnOf = ({ workspaceId }: Pick<PresentPlace, 'workspaceId'>, userId: string): string =>
  `presence ${workspaceId} ${userId}`;

/** Locks what is known about a user in a workspace, even if it is nothing yet. */
export const lockOf = (place: Pick<PresentPlace, 'workspaceId'>, userId: string): Statement =>
  statement`select pg_advisory_xact_lock(hashtextextended(${turnOf(place, userId)}, 0))`;

/**
 * The end of a query that locks several connections `p` before they are changed. A renewal locks those of many users
 * without their turns: as all lock in this order, no two wait for each other.
 */
export const IN_ORDER = 'order by p.workspace_id, p.user_id, p.connection_id for no key update of p';
