import { isDemandedDomain, isInDemandedDomain } from '../../access/sso-demand.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import { invalidInput } from '../../kernel/errors.ts';

// the new address is compared as the rule itself does: what only reads like the domain is outside of it
const LEFT = `select 1 from organization_members m
  join organizations o on o.id = m.org_id and o.deleted_at is null
  where m.user_id = $1 and ${isInDemandedDomain('o', 'm.user_id')}
    and not ${isDemandedDomain('o', '$2::text')} limit 1`;

/**
 * Demands that an address stays in a domain of which an organization of the user demands single sign-on: with another
 * address, the password would open the organization (docs/decisions/0066).
 * @throws InputError
 */
export async function demandKeptDomain(db: QueryRunner, userId: string, email: string): Promise<void> {
  if ((await db.query({ text: LEFT, values: [userId, email] })).length === 0) return;
  throw invalidInput(
    ['input', 'email'],
    'an organization demands single sign-on of addresses in your domain: the new one must be in such a domain too',
  );
}
