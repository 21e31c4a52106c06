import type { ServiceDeps } from '../../access/service-deps.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { InputError, valueIssue } from '../../kernel/errors.ts';
import { DIGEST_HOUR, type MailFrequency } from './notification.words.ts';
import { demandPlaces, type GivenPlace, type PreferencePlace, placeOf } from './places.ts';

/** How often mails of a category come, in a place or everywhere. */
export interface NotificationSchedule extends PreferencePlace {
  /** `null` for all categories. */
  category: string | null;
  frequency: MailFrequency;
}

/** The same as it is given. */
export interface GivenSchedule extends GivenPlace {
  category?: string | null;
  frequency: MailFrequency;
}

/** What is given of how often mails come. */
export interface GivenSchedules {
  schedules?: readonly GivenSchedule[] | null;
  digestHour?: number | null;
}

/** SQL: how often a user wants the mails of a category in a place. The narrowest place counts, then the category. */
export const frequencyOf = (of: Record<'user' | 'category' | 'orgId' | 'workspaceId', string>): string =>
  `coalesce((select s.frequency from notification_schedules s where s.user_id = ${of.user}
    and s.category in ('', ${of.category}) and s.place_id in ('', ${of.orgId}, ${of.workspaceId})
    order by s.workspace_id is not null desc, s.org_id is not null desc, s.category <> '' desc limit 1), 'immediate')`;

const dueAt = (frequency: string, since: string): string =>
  `next_digest('${frequency}', coalesce(u.timezone, 'UTC'), coalesce(p.digest_hour, ${DIGEST_HOUR}), ${since})`;

/**
 * SQL that says when the digests are due that new notifications wait for. A digest that is due already stays so. The
 * row is locked: a digest that is being made ends first, and this one is another.
 * @param rows a table of notifications with `recipient_id` and `digest`
 */
export const digestsDue = (rows: string, since: string): string =>
  `insert into notification_digests as g (user_id, hourly_at, daily_at)
    select u.id, case when c.hourly then ${dueAt('hourly', since)} end,
      case when c.daily then ${dueAt('daily', since)} end
    from (select recipient_id, bool_or(digest = 'hourly') as hourly, bool_or(digest = 'daily') as daily
      from ${rows} where digest is not null group by recipient_id) c
    join users u on u.id = c.recipient_id left join notification_preferences p on p.user_id = u.id order by u.id
    on conflict (user_id) do update set hourly_at = coalesce(g.hourly_at, excluded.hourly_at),
      daily_at = coalesce(g.daily_at, excluded.daily_at)`;

/** SQL: the schedules of a user as JSON, of everywhere first. */
export const schedulesOf = (userId: string): string =>
  `(select coalesce(json_agg(json_build_object('category', nullif(s.category, ''), 'frequency', s.frequency,
    'orgId', s.org_id, 'workspaceId', s.workspace_id) order by s.place_id, s.category), '[]')
    from notification_schedules s where s.user_id = ${userId})`;

/** Ends the digests of a user: what came with them is not mailed at once instead. */
export const endDigests = (userId: string): Statement =>
  statement`update notification_schedules set frequency = 'never'
    where user_id = ${userId} and frequency in ('hourly', 'daily')`;

/** How often mails come, by place and category, and when those of a day do. */
export class NotificationSchedules {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces the schedules of the caller. What waits for a digest still comes with it, at the new hour. What is not
   * given stays as it is.
   * @throws InputError for a place that the caller cannot open, and for two that say the same
   */
  async replace(caller: Caller, { schedules: given, digestHour }: GivenSchedules): Promise<void> {
    const { userId, orgId } = caller.principal;
    const schedules = given && checked(given);
    await this.#deps.changes.run(caller, async (tx) => {
      // one after the other, or the lists of two would become one
      await tx.lock('users', { id: userId }, 'no key update');
      if (schedules) {
        await demandPlaces(tx, userId, 'schedules', schedules);
        tx.remove('notification_schedules', { userId });
        await tx.query(insertion(userId, schedules));
      }
      if (typeof digestHour === 'number') {
        tx.write(statement`insert into notification_preferences (user_id, digest_hour) values (${userId}, ${digestHour})
          on conflict (user_id) do update set digest_hour = excluded.digest_hour, updated_at = now()`);
        tx.write(statement`update notification_digests g
          set daily_at = next_digest('daily', coalesce(u.timezone, 'UTC'), ${digestHour}::int, now())
          from users u where u.id = g.user_id and g.user_id = ${userId} and g.daily_at is not null`);
      }
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: null,
        orgId,
        metadata: {
          ...(schedules && { schedules: schedules.length }),
          ...(typeof digestHour === 'number' && { digest_hour: digestHour }),
        },
      });
    });
  }
}

function checked(given: readonly GivenSchedule[]): NotificationSchedule[] {
  const firsts = new Map<string, number>();
  return given.map(({ category = null, frequency, ...place }, at) => {
    const schedule = { category, frequency, ...placeOf(place, 'schedules', at) };
    const key = JSON.stringify([category, schedule.orgId, schedule.workspaceId]);
    const first = firsts.get(key);
    if (first !== undefined)
      throw new InputError([
        valueIssue(['input', 'schedules', at], `has the same category and place as schedules.${first}`),
      ]);
    firsts.set(key, at);
    return schedule;
  });
}

const insertion = (userId: string, schedules: readonly NotificationSchedule[]): Statement => ({
  text: `insert into notification_schedules (user_id, place_id, category, frequency, org_id, workspace_id)
    select $1, coalesce(g."workspaceId", g."orgId", ''), coalesce(g.category, ''), g.frequency, g."orgId",
      g."workspaceId"
    from jsonb_to_recordset($2::jsonb) g(category text, frequency text, "orgId" text, "workspaceId" text)`,
  values: [userId, JSON.stringify(schedules)],
});
