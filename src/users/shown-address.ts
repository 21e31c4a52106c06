import type { Context } from '../graphql/context.ts';

/** Whether a user is the caller: private fields are visible only to the user. */
export const isSelf = ({ id }: { id: string }, { caller }: Context): boolean =>
  caller.principal?.userId === id || caller.signedInAs?.userId === id;

/** A user, as read in an organization. */
interface Addressed {
  id: string;
  email: string;
  /** The organization; `null` for the caller outside of any. */
  orgId: string | null;
  isAddressShown: boolean;
}

/** The address of a user, or `null` for a caller who does not see it (docs/decisions/0028). */
export function shownAddress(context: Context, user: Addressed): string | null | Promise<string | null> {
  const { id, email, orgId, isAddressShown } = user;
  if (isSelf({ id }, context)) return email;
  if (!isAddressShown || orgId === null) return null;
  const sees = context.services.access.seesAddresses(context.actor, orgId);
  return sees instanceof Promise ? sees.then((answer) => (answer ? email : null)) : sees ? email : null;
}
