import type { Changes } from '../../data/changes.ts';
import { Notices } from '../../data/notices.ts';
import { emitChange } from '../../data/record-change.ts';
import { resourceOf } from './api-token.revocation.ts';

/** A token with a due notice, and its creator. */
interface DueToken {
  id: string;
  orgId: string;
  workspaceId: string | null;
  appId: string | null;
  tokenType: string;
  name: string;
  prefix: string;
  expiresAt: Date;
  days: 14 | 3 | 0;
  userId: string;
}

// The most urgent step that was reached and not yet announced. Tokens that expired more than a day ago get no notice.
const DUE = `select t.id, t.org_id as "orgId", t.workspace_id as "workspaceId", t.app_id as "appId",
    t.token_type as "tokenType", t.name, t.prefix, t.expires_at as "expiresAt", s.days,
    u.id as "userId"
  from api_tokens t join users u on u.id = t.created_by_user_id and u.is_active
  join organizations o on o.id = t.org_id and o.deleted_at is null
  cross join lateral (
    select min(step)::int as days from unnest(array[14, 3, 0]) step
    where t.expires_at <= now() + make_interval(days => step)
      and t.expires_at > t.issued_at + make_interval(days => step)) s
  where t.revoked_at is null and t.expires_at between now() - interval '1 day' and now() + interval '14 days'
    and s.days < coalesce(t.noticed_days, 15)
  order by t.id`;

/**
 * Announces expiring tokens (defaults §3): 14 and 3 days before the end, and at the end, while they can still be
 * refreshed. A token whose lifetime is not longer than a step skips that step. The step is stored together with the
 * event.
 */
export const apiTokenNotices = ({ changes }: { changes: Changes }) =>
  new Notices<DueToken>({
    changes,
    name: 'token_notices',
    everySeconds: 900,
    due: DUE,
    of: 't',
    async tell(tx, token) {
      const { id, name, prefix, days, expiresAt, userId } = token;
      tx.update('api_tokens', { id }, { noticedDays: days });
      const data = { days_left: days, expires_at: expiresAt.toISOString() };
      const facts = { userIds: [userId], name, of: prefix, daysLeft: days, expiresAt };
      emitChange(tx, 'expiring', resourceOf(token), token, data, facts);
    },
  });
