import type { QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import { peopleInCharge } from '../../tenancy/organizations/people-in-charge.ts';
import { type AuthType, lifetimeOf } from './connection-state.ts';
import type { OAuthGrant } from './oauth-provider.ts';

/** A tool instance shows the state of its connection for the whole workspace, and of no end user. */
export function showInInstance(
  tx: Pick<Tx, 'update'>,
  { namespaceId, toolInstanceId, endUserId }: Pick<Connection, 'namespaceId' | 'toolInstanceId' | 'endUserId'>,
  connectionStatus: string,
): void {
  if (namespaceId === null && endUserId === null)
    tx.update('tool_instances', { id: toolInstanceId }, { connectionStatus });
}

/**
 * Who is told that a connection must be authorized again. Of those of end users, which may be thousands, only the app
 * is, by the event: nobody in the organization could authorize them.
 */
export const toldOf = async (db: QueryRunner, connection: Connection): Promise<string[]> =>
  connection.endUserId === null ? peopleInCharge(db, connection, 'connection:read') : [];

/** The columns of a connection that has just got its credential. */
export function connected(
  authType: AuthType,
  asked: readonly string[],
  grant: Pick<OAuthGrant, 'lifetime' | 'scopes' | 'accountLabel' | 'refreshToken'>,
) {
  const lifetime = lifetimeOf(grant.lifetime, grant.refreshToken !== null);
  return {
    authType,
    status: 'connected',
    scopes: grant.scopes ?? [...asked],
    accountLabel: grant.accountLabel,
    ...lifetime,
    lastRefreshedAt: null,
    lastError: null,
    refreshFailures: 0,
    refreshClaim: null,
    claimedUntil: null,
  };
}
