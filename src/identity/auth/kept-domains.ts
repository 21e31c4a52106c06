import { isInDemandedDomain } from '../../access/sso-demand.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { domainOfEmail } from '../identity-providers/domain-name.ts';

const DEMANDED = `select o.sso_required_domains as domains from organization_members m
  join organizations o on o.id = m.org_id and o.deleted_at is null
  where m.user_id = $1 and ${isInDemandedDomain('o', 'm.user_id')}`;

/**
 * Demands that an address stays in a domain of which an organization of the user demands single sign-on: with another
 * address, the password would open the organization (docs/decisions/0066).
 * @throws InputError
 */
export async function demandKeptDomain(db: QueryRunner, userId: string, email: string): Promise<void> {
  const demanded = await db.query<{ domains: string[] }>({ text: DEMANDED, values: [userId] });
  const domain = domainOfEmail(email);
  if (demanded.every(({ domains }) => domain !== null && domains.includes(domain))) return;
  throw invalidInput(
    ['input', 'email'],
    'an organization demands single sign-on of addresses in your domain: the new one must be in such a domain too',
  );
}
