import { isDeepStrictEqual } from 'node:util';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { StreamEvent } from '../../data/outbox.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { columnsOf, filtersOf, selectList } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type Notification, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import type { Place } from '../../kernel/place.ts';
import type { Principal } from '../../kernel/principal.ts';
import type { EventName } from '../../kernel/resources.ts';
import { StateStream } from '../../kernel/state-stream.ts';
import { restrictionsOf } from '../../kernel/token-grant.ts';
import { mutesOf, type NotificationMute } from './mutes.ts';
import {
  DIGEST_HOUR,
  mutableCategories,
  type NotificationCategory,
  type NotificationStatus,
} from './notification.words.ts';
import { type NotificationSchedule, schedulesOf } from './schedules.ts';

/** The filters of a list. Without a status: everything that is not archived. */
export interface NotificationListArgs extends PageArgs {
  status?: NotificationStatus | null;
  category?: string | null;
  isResolved?: boolean | null;
  /** Set for tokens. */
  orgId?: string | null;
  /** Organizations whose notifications are not shown. */
  shutOutOf?: readonly string[] | null;
}

/** How many unread notifications a caller has. */
export interface UnreadCounts {
  unreadCount: number;
  /** By category, without those that have none. */
  byCategory: Readonly<Record<string, number>>;
}

/** What happened to notifications of a caller, and how many are unread since. */
export interface NotificationChange extends UnreadCounts {
  /** `null` at the beginning. */
  event: StreamEvent | null;
}

/** Which categories a user does not want, of those that may be muted. */
export interface NotificationPreferences {
  mutedCategories: readonly string[];
  availableCategories: readonly string[];
  /** What the user does not want by place and channel. */
  mutes: readonly NotificationMute[];
  /** How often mails come, by place and category. */
  schedules: readonly NotificationSchedule[];
  /** When daily digests come: the hour in the time zone. */
  digestHour: number;
  timeZone: string;
}

const isAboutOne = ({ resourceType }: StreamEvent): boolean => resourceType === 'notification';

/** A change of the status, over the row `t` as it was before. */
interface Move {
  status: string;
  readAt: string;
}

// as the index `notifications_unread` has it
const UNREAD = `t.status = 'unread' and t.resolved_at is null`;
const ALWAYS = 't.expires_at > now()';
/** What is about an account itself is of no organization. */
const NOT_OF = 'coalesce(t.org_id <> all(?), true)';
const columns = columnsOf(Object.values(Prisma.NotificationScalarFieldEnum));
const SELECTED = selectList(columns);

// `unread -> read -> archived`, `unread -> archived`. What is archived may still be marked as read or unread.
const moves = {
  read: {
    status: `case t.status when 'unread' then 'read' else t.status end`,
    readAt: 'coalesce(t.read_at, clock_timestamp())',
  },
  unread: { status: `case t.status when 'read' then 'unread' else t.status end`, readAt: 'null' },
  archive: { status: `'archived'`, readAt: 't.read_at' },
  unarchive: {
    status: `case when t.status <> 'archived' then t.status when t.read_at is null then 'unread' else 'read' end`,
    readAt: 't.read_at',
  },
} as const satisfies Record<string, Move>;

/** What users were told. Everybody sees only their own; a token those of its owner in its organization. */
export class NotificationService {
  readonly retention = [
    'delete from notifications where expires_at <= now()',
    `delete from notifications n using users u where u.id = n.recipient_id and u.purged_at > now() - interval '1 day'`,
  ];
  readonly reads: Reads<Notification, object, NotificationListArgs>;
  readonly #deps: ServiceDeps;
  /** The counts of a user after an event: read once for all streams of this process. */
  readonly #counts = new WeakMap<StreamEvent, Promise<UnreadCounts>>();

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      kind: 'notification',
      from: 'notifications',
      columns,
      below: [],
      mine: 't.recipient_id between $me and $me',
      index: { lead: 't.recipient_id' },
      always: [ALWAYS],
      filters: ({ status, category, isResolved, orgId, shutOutOf }) => ({
        't.status = ?': status,
        't.status <> ?': status ? null : 'archived',
        't.category = ?': category,
        '(t.resolved_at is not null) = ?': isResolved ?? (status === 'archived' ? null : false),
        't.org_id = ?': orgId,
        [NOT_OF]: shutOutOf,
      }),
    });
  }

  /** The caller's notifications, newest first. */
  async list(context: CallerContext, own: Checked<object>, args: NotificationListArgs): Promise<Page<Notification>> {
    const { principal } = context.caller;
    return this.reads.list(context, own, {
      ...args,
      orgId: principal.token?.orgId,
      shutOutOf: unseenBy(principal),
    });
  }

  /** One of the caller's own; `null` if there is none with this id. */
  async find({ principal }: Caller, id: string): Promise<Notification | null> {
    const { where, values } = shownTo(principal);
    const [row] = await this.#deps.sql.read<Notification>(
      `select ${SELECTED} from notifications t where ${where} and t.id = $${values.length + 1}`,
      [...values, id],
    );
    return row ?? null;
  }

  /** One of the caller's own. @throws RESOURCE_NOT_FOUND */
  async get(caller: Caller, id: string): Promise<Notification> {
    const found = await this.find(caller, id);
    if (!found) throw notFound('notification', id);
    return found;
  }

  /** How many unread notifications the caller has: as many as the list of the unread ones. */
  async unread({ principal }: Caller, db: QueryRunner = this.#deps.sql): Promise<UnreadCounts> {
    const { where, values } = shownTo(principal);
    const rows = await db.query<{ category: string; n: number }>({
      text: `select t.category, count(*)::int as n from notifications t where ${where} and ${UNREAD}
        group by t.category order by t.category`,
      values,
    });
    return {
      unreadCount: rows.reduce((sum, { n }) => sum + n, 0),
      byCategory: Object.fromEntries(rows.map(({ category, n }) => [category, n])),
    };
  }

  /** The same, now and whenever it has changed. A stream until the caller's own events end, or it is closed. */
  followUnread(caller: Caller, own: AsyncIterableIterator<StreamEvent>): StateStream<StreamEvent, UnreadCounts> {
    return new StateStream(own, isAboutOne, (event) => this.#unreadAfter(caller, event), isDeepStrictEqual);
  }

  /** Each change of the caller's notifications, with how many are unread after it; first of all, only how many. */
  followChanges(caller: Caller, own: AsyncIterableIterator<StreamEvent>): StateStream<StreamEvent, NotificationChange> {
    return new StateStream(own, isAboutOne, async (event) => ({
      ...(await this.#unreadAfter(caller, event)),
      event,
    }));
  }

  #unreadAfter(caller: Caller, event: StreamEvent | null): Promise<UnreadCounts> {
    if (!event || caller.principal.token) return this.unread(caller);
    const known = this.#counts.get(event) ?? this.unread(caller);
    this.#counts.set(event, known);
    return known;
  }

  /** Marks one as read. An archived one stays archived. @throws RESOURCE_NOT_FOUND */
  async read(caller: Caller, id: string): Promise<Notification> {
    return this.#move(caller, id, moves.read);
  }

  /** Marks one as unread. An archived one stays archived. @throws RESOURCE_NOT_FOUND */
  async markUnread(caller: Caller, id: string): Promise<Notification> {
    return this.#move(caller, id, moves.unread);
  }

  /** Archives one. Repeating it changes nothing. @throws RESOURCE_NOT_FOUND */
  async archive(caller: Caller, id: string): Promise<Notification> {
    return this.#move(caller, id, moves.archive);
  }

  /** Takes one out of the archive: to be read, or unread if it was archived unread. @throws RESOURCE_NOT_FOUND */
  async unarchive(caller: Caller, id: string): Promise<Notification> {
    return this.#move(caller, id, moves.unarchive);
  }

  /** Marks all unread ones as read. @returns how many there were */
  async readAll(caller: Caller): Promise<number> {
    const { where, values } = shownTo(caller.principal);
    return this.#deps.changes.run(caller, async (tx) => {
      const unread = { text: `${where} and ${UNREAD}`, values };
      await tx.lockUnread('notifications', unread, 'no key update');
      const places = await tx.query<EventPlace & { newestId: string; count: number }>({
        text: `with done as (
            update notifications t set status = 'read', read_at = clock_timestamp() where ${unread.text} returning t.*
          )
          select max(t.id) as "newestId", count(*)::int as count, t.org_id as "orgId",
            t.workspace_id as "workspaceId", t.namespace_id as "namespaceId", t.environment_id as "environmentId",
            t.app_id as "appId"
          from done t group by 3, 4, 5, 6, 7 order by 1`,
        values,
      });
      const count = places.reduce((sum, place) => sum + place.count, 0);
      // one for each place: there may be thousands of notifications
      for (const place of places)
        emitTo(tx, caller, 'read', { ...place, id: place.newestId }, { status: 'read', count: place.count });
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: null,
        orgId: caller.principal.orgId,
        metadata: { status: 'read', count },
      });
      return count;
    });
  }

  /** What the caller has muted. */
  async preferences({ principal }: Caller): Promise<NotificationPreferences> {
    const [row] = await this.#deps.sql.read<Omit<NotificationPreferences, 'availableCategories'>>(
      `select coalesce(p.muted_categories, '{}') as "mutedCategories", ${mutesOf('u.id')} as mutes,
        ${schedulesOf('u.id')} as schedules, coalesce(p.digest_hour, ${DIGEST_HOUR}) as "digestHour",
        coalesce(u.timezone, 'UTC') as "timeZone"
      from users u left join notification_preferences p on p.user_id = u.id where u.id = $1`,
      [principal.userId],
    );
    if (!row) throw new Error('the account of the caller is gone');
    return { ...row, availableCategories: mutableCategories };
  }

  /** Mutes exactly these categories: of them, nothing new is told. What was told stays, and stays counted. */
  async mute(caller: Caller, categories: readonly NotificationCategory[]): Promise<NotificationPreferences> {
    const { userId, orgId } = caller.principal;
    const muted = mutableCategories.filter((category) => categories.includes(category));
    await this.#deps.changes.run(caller, async (tx) => {
      tx.write(statement`insert into notification_preferences (user_id, muted_categories) values (${userId}, ${muted})
        on conflict (user_id) do update set muted_categories = excluded.muted_categories, updated_at = now()`);
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: null,
        orgId,
        metadata: { muted_categories: muted },
      });
    });
    return this.preferences(caller);
  }

  async #move(caller: Caller, id: string, { status, readAt }: Move): Promise<Notification> {
    const { where, values } = shownTo(caller.principal);
    return this.#deps.changes.run(caller, async (tx) => {
      const own = { text: `${where} and t.id = $${values.length + 1}`, values: [...values, id] };
      const [before] = await tx.lockAll('notifications', own, 'no key update');
      if (!before) throw notFound('notification', id);
      const [row] = await tx.query<Notification>({
        text: `update notifications t set status = ${status}, read_at = ${readAt} where t.id = $1
          returning ${SELECTED}`,
        values: [id],
      });
      if (!row) throw notFound('notification', id);
      const isChanged = row.status !== before.status || row.readAt?.getTime() !== before.readAt?.getTime();
      if (isChanged) emitTo(tx, caller, row.status === 'read' ? 'read' : 'updated', row, { status: row.status });
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: id,
        ...placeIn(row, caller),
        metadata: { status: row.status },
      });
      return row;
    });
  }
}

/** Where a notification is. */
interface EventPlace extends Place {
  orgId: string | null;
  workspaceId: string | null;
}

/** What is about an account itself shows where its user works. */
const placeIn = ({ orgId, workspaceId, namespaceId, environmentId, appId }: EventPlace, { principal }: Caller) => ({
  orgId: orgId ?? principal.orgId,
  workspaceId,
  namespaceId,
  environmentId,
  appId,
});

function emitTo(
  tx: Pick<Tx, 'emit'>,
  caller: Caller,
  name: EventName<'notification'>,
  row: EventPlace & { id: string },
  data: Record<string, unknown>,
): void {
  const { orgId, ...place } = placeIn(row, caller);
  if (orgId === null) return;
  const { userId: recipientId } = caller.principal;
  const type = `notification.${name}` as const;
  tx.emit({ ...place, type, orgId, recipientId, resourceType: 'notification', resourceId: row.id, data });
}

/** Organizations that demand single sign-on and did not get it: what they tell is not for this session. */
const unseenBy = (principal: Principal): readonly string[] | null =>
  principal.token === null && principal.shutOutOf?.length ? principal.shutOutOf : null;

/** The condition on notifications that a caller sees, with its values: what {@link NotificationService.reads} lists. */
function shownTo(principal: Principal): { where: string; values: unknown[] } {
  const { userId, token } = principal;
  const { orgId, workspaceId, namespaceId, environmentId, appId } = restrictionsOf(token);
  const filters = filtersOf({
    [NOT_OF]: unseenBy(principal),
    't.org_id = any(?)': orgId,
    'coalesce(t.workspace_id = any(?), true)': workspaceId,
    'coalesce(t.namespace_id = any(?), true)': namespaceId,
    'coalesce(t.environment_id = any(?), true)': environmentId,
    'coalesce(t.app_id = any(?), true)': appId,
  });
  const conditions = filters.map(({ where }, at) => where.replace('?', `$${at + 2}`));
  return {
    where: ['t.recipient_id = $1', ALWAYS, ...conditions].join(' and '),
    values: [userId, ...filters.map(({ value }) => value)],
  };
}
