import type { Changes } from '../../data/changes.ts';
import { Notices } from '../../data/notices.ts';
import { statement } from '../../data/writes.ts';
import { isLiveOrganization } from '../../tenancy/views.ts';

interface Due {
  id: string;
  orgId: string;
  name: string;
  endsAt: Date;
  daysLeft: number;
}

/** Days before the end at which administrators are told (defaults §1). */
const STEPS = '30, 7, 1';

// A step counts if it was reached after the last notice: a certificate with less time is told of at once.
const STEP = `select min(step)::int as days from unnest(array[${STEPS}]) step,
  lateral (select p.certificate_ends_at - make_interval(days => step) as at) reached
  where reached.at <= now() and (p.certificate_noticed_at is null or p.certificate_noticed_at < reached.at)`;

const DUE = `select p.id, p.org_id as "orgId", p.name, p.certificate_ends_at as "endsAt", due.days as "daysLeft"
  from identity_providers p cross join lateral (${STEP}) due
  where p.is_active and p.certificate_ends_at between now() and now() + interval '30 days' and due.days is not null
    and ${isLiveOrganization('p.org_id')}
  order by p.id`;

/**
 * Tells the administrators of an organization 30, 7 and 1 days before the last certificate of a SAML provider ends:
 * nobody signs in with it from then on. Once for each step, by one of the nodes.
 */
export const identityProviderNotices = ({ changes }: { changes: Changes }) =>
  new Notices<Due>({
    changes,
    name: 'identity_provider_notices',
    everySeconds: 600,
    due: DUE,
    of: 'p',
    async tell(tx, { id, orgId, name, endsAt, daysLeft }) {
      // the clock that decides about the steps
      await tx.query(statement`update identity_providers set certificate_noticed_at = now() where id = ${id}`);
      tx.announce({
        type: 'identity_provider.certificate_ending',
        orgId,
        resourceType: 'identity_provider',
        resourceId: id,
        facts: { name, daysLeft, expiresAt: endsAt },
      });
    },
  });
