import type { ServiceDeps } from '../../access/service-deps.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { NotificationChannel } from './notification.words.ts';
import { demandPlaces, type GivenPlace, type PreferencePlace, placeOf } from './places.ts';

/** What a user does not want: a category, in a place or everywhere, by a channel. */
export interface NotificationMute extends PreferencePlace {
  category: string;
  channel: NotificationChannel;
}

/** The same as it is given. */
export interface GivenMute extends GivenPlace {
  category: string;
  channel: NotificationChannel;
}

/** SQL: whether a user does not want a category by a channel, in an organization or a workspace of it. */
export const isMuted = (
  of: Record<'user' | 'category' | 'orgId' | 'workspaceId', string>,
  channel: NotificationChannel,
) =>
  `exists (select from notification_mutes m where m.user_id = ${of.user} and m.category = ${of.category}
    and m.channel = '${channel}' and m.place_id in ('', ${of.orgId}, ${of.workspaceId}))`;

/** SQL: the mutes of a user as JSON, of everywhere first. */
export const mutesOf = (userId: string): string =>
  `(select coalesce(json_agg(json_build_object('category', m.category, 'channel', m.channel, 'orgId', m.org_id,
    'workspaceId', m.workspace_id) order by m.place_id, m.category, m.channel), '[]') from notification_mutes m
    where m.user_id = ${userId})`;

/** Adds a mute, if it is not there. */
export const addMute = (userId: string, { category, channel, orgId, workspaceId }: NotificationMute): Statement =>
  statement`insert into notification_mutes (user_id, place_id, category, channel, org_id, workspace_id)
    values (${userId}, ${workspaceId ?? orgId ?? ''}, ${category}, ${channel}, ${orgId}, ${workspaceId})
    on conflict do nothing`;

/** What users do not want by place and channel, beside the categories that they mute everywhere. */
export class NotificationMutes {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces the mutes of the caller. What was told stays.
   * @throws InputError for a place that the caller cannot open
   */
  async replace(caller: Caller, given: readonly GivenMute[]): Promise<void> {
    const { userId, orgId } = caller.principal;
    const mutes = distinct(given);
    await this.#deps.changes.run(caller, async (tx) => {
      // one after the other, or the lists of two would become one
      await tx.lock('users', { id: userId }, 'no key update');
      await demandPlaces(tx, userId, 'mutes', mutes);
      tx.remove('notification_mutes', { userId });
      await tx.query(insertion(userId, mutes));
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: null,
        orgId,
        metadata: { mutes: mutes.length },
      });
    });
  }
}

function distinct(given: readonly GivenMute[]): NotificationMute[] {
  const mutes = given.map(({ category, channel, ...place }, at) => ({
    category,
    channel,
    ...placeOf(place, 'mutes', at),
  }));
  return [...new Map(mutes.map((mute) => [JSON.stringify(mute), mute])).values()];
}

const insertion = (userId: string, mutes: readonly NotificationMute[]): Statement => ({
  text: `insert into notification_mutes (user_id, place_id, category, channel, org_id, workspace_id)
    select $1, coalesce(g."workspaceId", g."orgId", ''), g.category, g.channel, g."orgId", g."workspaceId"
    from jsonb_to_recordset($2::jsonb) g(category text, channel text, "orgId" text, "workspaceId" text)`,
  values: [userId, JSON.stringify(mutes)],
});
