import { FreshFactorNeeded } from '../../access/step-up.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type ApiError, forbidden, isRefusal } from '../../kernel/errors.ts';
import { canonicalJson } from '../../kernel/json-object.ts';

/** The lists of a tool that say where credentials go, and how. */
export interface SendingLists {
  configSchema: readonly object[];
  credentialSchema: readonly object[];
  actionSchemas: readonly object[];
}

/** What only people read of an entry, beside properties that begin with `x-`. */
const READ_ONLY: ReadonlySet<string> = new Set(['description', 'display_name', 'placeholder']);

const sentPart = (entry: object): string =>
  canonicalJson(
    Object.fromEntries(
      Object.entries(entry).filter(([key, value]) => value !== null && !READ_ONLY.has(key) && !key.startsWith('x-')),
    ),
  );
const isSame = (before: readonly object[], after: readonly object[]): boolean =>
  before.length === after.length && before.every((entry, at) => sentPart(entry) === sentPart(after[at]!));

/** What of a change of a tool could send credentials elsewhere. */
export interface Steering {
  /** Client secrets go only to the addresses of the credential schema. */
  clients: boolean;
  any: boolean;
}

/** Compares a tool with what it becomes. An action that is taken away sends nothing. */
export function steeringOf(before: SendingLists, after: SendingLists): Steering {
  const known = new Set(before.actionSchemas.map(sentPart));
  const clients = !isSame(before.credentialSchema, after.credentialSchema);
  const any =
    clients ||
    !isSame(before.configSchema, after.configSchema) ||
    after.actionSchemas.some((action) => !known.has(sentPart(action)));
  return { clients, any };
}

/** Why a caller may not see secrets; `null` if the caller may. */
export async function revealRefusal(demand: () => unknown): Promise<ApiError | null> {
  try {
    await demand();
    return null;
  } catch (error) {
    if (isRefusal(error)) return error as ApiError;
    throw error;
  }
}

/** The refusal of a change that could send credentials of others elsewhere. */
export const refusedBecause = (refusal: ApiError, message: string): ApiError =>
  refusal instanceof FreshFactorNeeded ? refusal : forbidden('secret:reveal', message);

/**
 * Whether an instance keeps credentials of others than a user. Whose a credential is, is who gave it last: not who made
 * the instance or the connection that has it. So is one that somebody, or an end user, is about to bring
 * from a provider; an exchange may end shortly after its state has expired.
 * @param instance `isKept` says whether something stays of what the instance keeps itself
 */
export async function keepsOfOthers(
  tx: Tx,
  { id, isKept, userId }: { id: string; isKept: boolean; userId: string },
): Promise<boolean> {
  const [kept] = await tx.query(statement`
    select 1 where (${isKept}::boolean and exists (select 1 from credentials k
        where k.tool_instance_id = ${id} and k.set_by is distinct from ${userId}))
      or exists (select 1 from connections c join credentials k on k.connection_id = c.id
        where c.tool_instance_id = ${id} and k.set_by is distinct from ${userId})
      or exists (select 1 from oauth_states s where s.tool_instance_id = ${id} and s.user_id <> ${userId}
        and s.expires_at > clock_timestamp() - interval '1 minute')
      or exists (select 1 from connect_links l where l.tool_instance_id = ${id}
        and l.expires_at > clock_timestamp() - interval '1 minute')`);
  return kept !== undefined;
}

/**
 * The tool decides where the credentials of all its instances go. Whoever changes that could have those of others sent
 * to a host of their own, and client secrets, whoever named them.
 * @param refusal why the caller may not see secrets
 * @throws FORBIDDEN `secret:reveal`
 */
export async function demandNoCredentials(
  tx: Tx,
  { principal: { userId } }: Caller,
  { id, orgId }: { id: string; orgId: string },
  { clients }: Steering,
  refusal: ApiError,
): Promise<void> {
  const [kept] = await tx.query(statement`
    select 1 from tool_instances i where i.org_id = ${orgId} and i.tool_id = ${id} and (
      (${clients}::boolean and i.client_secret_vault_id is not null)
      or exists (select 1 from credentials k
        where k.tool_instance_id = i.id and k.set_by is distinct from ${userId})
      or exists (select 1 from connections c join credentials k on k.connection_id = c.id
        where c.tool_instance_id = i.id and k.set_by is distinct from ${userId})
      or exists (select 1 from oauth_states s where s.tool_instance_id = i.id and s.user_id <> ${userId}
        and s.expires_at > clock_timestamp() - interval '1 minute')
      or exists (select 1 from connect_links l where l.tool_instance_id = i.id
        and l.expires_at > clock_timestamp() - interval '1 minute'))
    limit 1`);
  if (kept)
    throw refusedBecause(
      refusal,
      'Instances of the tool have credentials of others, or client secrets, which this change could send elsewhere.',
    );
}
