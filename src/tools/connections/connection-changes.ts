import type { Tx } from '../../data/tx.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import { type AuthType, lifetimeOf } from './connection-state.ts';
import type { OAuthGrant } from './oauth-provider.ts';

/** A tool instance shows the state of its connection for the whole workspace. */
export function showInInstance(
  tx: Pick<Tx, 'update'>,
  { namespaceId, toolInstanceId }: Pick<Connection, 'namespaceId' | 'toolInstanceId'>,
  connectionStatus: string,
): void {
  if (namespaceId === null) tx.update('tool_instances', { id: toolInstanceId }, { connectionStatus });
}

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
