import { noCache } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import type { SecretReads } from './secret.reads.ts';
import type { Resolution, Vault } from './vault.ts';

/** What decides about secrets that the service sends to an address. */
export interface SecretSender {
  sql: Sql;
  vault: Vault;
  secretReads: SecretReads;
}

/**
 * A user who decides where the service sends a secret could read it there: only users who may see its value decide.
 * @returns the secret that a reference means, if any
 * @throws FORBIDDEN `secret:reveal`, RESOURCE_NOT_FOUND
 */
export async function demandReveal(
  { sql, vault, secretReads }: SecretSender,
  caller: Caller,
  orgId: string,
  reference: string,
): Promise<string | null> {
  const found = await vault.resolve(sql, orgId, reference);
  const secret = found.kind === 'secret' ? await secretReads.all.findInTenant(noCache, orgId, found.id) : null;
  if (!secret) return null;
  await secretReads.demand(caller, secret, 'secret:reveal');
  return secret.id;
}

/**
 * Between the check and the change, a reference may have come to mean another secret, and its address may be another.
 * @param shown what {@link demandReveal} said
 * @throws FORBIDDEN `secret:reveal`
 */
export function demandShown(found: Resolution, shown: string | null): void {
  if (found.kind === 'secret' && found.id !== shown)
    throw forbidden('secret:reveal', 'The service would send a secret whose value you may not see.');
}
