import type { Tx } from '../data/changes.ts';
import { statement } from '../data/writes.ts';
import { domainOfEmail } from './domain-name.ts';

/**
 * Ends the links of an account to providers whose organization never proved that the domain of its address is theirs.
 * Anybody can claim a domain and vouch for its addresses: whoever proves such an address first, as the one who gets its
 * mail, must not share the account with them. A proven domain, or an administrator, links again.
 */
export function removeUnprovenLinks(tx: Tx, { id, email }: { id: string; email: string }): void {
  tx.write(statement`delete from identity_links l where l.user_id = ${id} and not exists (
    select 1 from identity_provider_domains d
    where d.identity_provider_id = l.identity_provider_id and d.domain = ${domainOfEmail(email)}
      and d.state = 'proven')`);
}
