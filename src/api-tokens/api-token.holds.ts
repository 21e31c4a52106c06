import { forbidden, notFound, unauthenticated } from '../core/errors.ts';
import type { PrismaTx } from '../data/changes.ts';

/** Whose token it is, and where it works. */
export interface TokenMaker {
  orgId: string;
  userId: string;
  /** Of an app's token: the app. */
  appId: string | null;
}

/** What is no more that a token needs; `null` where all of it is there. */
export type Lost = 'user' | 'membership' | 'app' | null;

/**
 * Holds what a new token lives by until the transaction ends: its organization, its user, the membership, its app. Whoever deactivates the
 * user, removes the member or deletes the app either waits, and then finds the new token, or was first, and then it is not made.
 *
 * Everything that changes tokens takes its locks in this one order: organization, user, membership, app, tokens by their ids. Only so
 * nobody waits for one another in a circle.
 */
export async function holdMaker(tx: PrismaTx, { orgId, userId, appId }: TokenMaker): Promise<Lost> {
  const organizations = await tx.db.$queryRaw<unknown[]>`
    select 1 from organizations where id = ${orgId} and deleted_at is null for share`;
  if (organizations.length === 0) return 'membership';
  const users = await tx.db.$queryRaw<unknown[]>`select 1 from users where id = ${userId} and is_active for share`;
  if (users.length === 0) return 'user';
  const members = await tx.db.$queryRaw<unknown[]>`
    select 1 from organization_members where org_id = ${orgId} and user_id = ${userId} for share`;
  if (members.length === 0) return 'membership';
  if (!appId) return null;
  const apps = await tx.db.$queryRaw<unknown[]>`select 1 from apps where id = ${appId} for key share`;
  return apps.length === 0 ? 'app' : null;
}

/**
 * The same for minting, with the token that asks, where it is one: it must be alive by the clock of the database.
 * @throws AUTHENTICATION_FAILED when the user or the asking token is no more, FORBIDDEN `organization:access` after leaving,
 *   RESOURCE_NOT_FOUND `app`
 */
export async function holdForMinting(tx: PrismaTx, maker: TokenMaker, askingTokenId: string | null): Promise<void> {
  const lost = await holdMaker(tx, maker);
  if (lost === 'user') throw unauthenticated();
  if (lost === 'membership') throw forbidden('organization:access');
  if (lost === 'app') throw notFound('app', maker.appId!);
  if (!askingTokenId) return;
  const asking = await tx.db.$queryRaw<unknown[]>`
    select 1 from api_tokens where id = ${askingTokenId} and (revoked_at is null or revoked_at > clock_timestamp())
      and (expires_at is null or expires_at > clock_timestamp()) for share`;
  if (asking.length === 0) throw unauthenticated();
}

/** Holds the tokens of an app, which the caller holds, before they go with it. */
export async function holdTokensOfApp(tx: PrismaTx, appId: string): Promise<void> {
  await tx.db.$queryRaw`select 1 from api_tokens where app_id = ${appId} order by id for update`;
}
