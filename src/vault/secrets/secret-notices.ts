import type { Changes } from '../../data/changes.ts';
import { Notices } from '../../data/notices.ts';
import { emitChange } from '../../data/record-change.ts';
import { statement } from '../../data/writes.ts';
import { peopleInCharge } from '../../tenancy/organizations/people-in-charge.ts';
import { isLiveOrganization, isLiveWorkspace } from '../../tenancy/views.ts';

interface Due {
  id: string;
  orgId: string;
  workspaceId: string | null;
  namespaceId: string | null;
  environmentId: string | null;
  name: string;
  createdBy: string | null;
  expiresAt: Date | null;
  /** The expiry step that was reached: 14, 3 or 0 days; `null` if there is nothing new. */
  daysLeft: 14 | 3 | 0 | null;
  needsRotation: boolean;
}

const DUE_FOR_ROTATION = `s.status = 'active' and s.rotation_reminder_days is not null and s.rotation_noticed_at is null
  and coalesce(s.last_rotated_at, s.created_at) + s.rotation_reminder_days * interval '1 day' <= now()`;
// The bounds of the index `secrets_expiring`.
const MAY_EXPIRE = `s.status <> 'deleted' and s.expires_at <= now() + interval '14 days'
  and (s.expiry_noticed_at is null or s.expiry_noticed_at < s.expires_at)`;
// A step counts if it was reached after the last notice. A step from before the creation of the secret does not count.
const STEP = `select min(step)::int as days from unnest(array[14, 3, 0]) step,
  lateral (select s.expires_at - make_interval(days => step) as at) reached
  where ${MAY_EXPIRE} and reached.at <= now() and (step = 0 or reached.at > s.created_at)
    and (s.expiry_noticed_at is null or s.expiry_noticed_at < reached.at)`;

const DUE = `select s.id, s.org_id as "orgId", s.workspace_id as "workspaceId", s.namespace_id as "namespaceId",
    s.environment_id as "environmentId", s.name, s.created_by as "createdBy", s.expires_at as "expiresAt",
    due.days as "daysLeft", (${DUE_FOR_ROTATION}) is true as "needsRotation"
  from secrets s cross join lateral (${STEP}) due
  where ((${MAY_EXPIRE}) or (${DUE_FOR_ROTATION})) and (due.days is not null or (${DUE_FOR_ROTATION}))
    and ${isLiveOrganization('s.org_id')}
    and (s.workspace_id is null or ${isLiveWorkspace('s.workspace_id')})
  order by s.id`;

/**
 * Announces secrets that expire (14 and 3 days before, and at the end) and secrets that should be rotated. Each notice
 * is sent once, to the creator or else to the owners. An expiry is also an event, `secret.expiring` with `days_left`; a
 * due rotation is not (defaults §10).
 */
export const secretNotices = ({ changes }: { changes: Changes }) =>
  new Notices<Due>({
    changes,
    name: 'secret_notices',
    everySeconds: 60,
    due: DUE,
    of: 's',
    async tell(tx, secret) {
      const { id, name, daysLeft, expiresAt, needsRotation } = secret;
      const isExpiring = daysLeft !== null;
      // Uses the same clock that decides about the steps.
      await tx.query(statement`update secrets set
        expiry_noticed_at = case when ${isExpiring} then now() else expiry_noticed_at end,
        rotation_noticed_at = case when ${needsRotation} then now() else rotation_noticed_at end where id = ${id}`);
      const facts = { userIds: await peopleInCharge(tx, secret, 'secret:read'), name };
      if (isExpiring)
        emitChange(
          tx,
          'expiring',
          'secret',
          secret,
          { days_left: daysLeft, expires_at: expiresAt!.toISOString() },
          { ...facts, daysLeft, expiresAt },
        );
      if (needsRotation)
        tx.announce({ ...secret, type: 'secret.rotation_due', resourceType: 'secret', resourceId: id, facts });
    },
  });
