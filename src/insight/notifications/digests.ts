import type { ServiceDeps } from '../../access/service-deps.ts';
import { inBatches } from '../../data/batches.ts';
import type { Tx } from '../../data/tx.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { DIGEST_LINES, type DigestGroup } from '../../platform/mail/digest-mail.ts';
import { isActiveAccount } from '../../tenancy/views.ts';
import { isMuted } from './mutes.ts';
import type { LinkedNotification, NotificationPages } from './notification.pages.ts';
import { frequencyOf } from './schedules.ts';
import { DIGEST, type UnsubscribeLinks } from './unsubscribe-links.ts';

const NAME = 'notifications.digest';
/** Users whose digests one change makes. */
const BATCH = 100;
const DUE = 'least(d.hourly_at, d.daily_at) <= now()';

/** The digests of a user that are due. */
interface Due {
  userId: string;
  isHourly: boolean;
  isDaily: boolean;
}

/** A notification in a digest. */
interface Line extends LinkedNotification {
  recipientId: string;
  email: string;
  username: string;
  title: string;
  message: string;
  organization: string | null;
  workspace: string | null;
  /** How many the user has altogether. */
  total: number;
}

// those that another node makes, or that a change adds to, are not waited for
const CLAIM = `select d.user_id as "userId", coalesce(d.hourly_at <= now(), false) as "isHourly",
    coalesce(d.daily_at <= now(), false) as "isDaily"
  from notification_digests d where ${DUE} order by least(d.hourly_at, d.daily_at) limit ${BATCH}
  for no key update skip locked`;

// columns of a notification `t`
const WAITING = { user: 't.recipient_id', category: 't.category', orgId: 't.org_id', workspaceId: 't.workspace_id' };

/**
 * Takes what waits for the digests, which are locked: a statement of its own, so that it sees what was added until they
 * were. What was read or resolved meanwhile, or is not wanted any more, is left out. `$1` and `$2`: users, and their
 * frequencies.
 */
const TAKE = `with due as (select * from unnest($1::text[], $2::text[]) d(user_id, frequency)
  ), taken as (
    update notifications n set digest = null from due d where n.recipient_id = d.user_id and n.digest = d.frequency
    returning n.*
  ), made as (
    update notification_digests g set hourly_at = case when g.hourly_at > now() then g.hourly_at end,
      daily_at = case when g.daily_at > now() then g.daily_at end
    where g.user_id in (select user_id from due)
  ), told as (
    select t.*, u.email, u.username, row_number() over (partition by t.recipient_id order by t.id desc) as at,
      count(*) over (partition by t.recipient_id)::int as total
    from taken t join users u on u.id = t.recipient_id and ${isActiveAccount('u')}
    where t.status = 'unread' and t.resolved_at is null and t.expires_at > now()
      and not ${isMuted(WAITING, 'mail')} and ${frequencyOf(WAITING)} <> 'never'
      and not exists (select from notification_preferences p
        where p.user_id = t.recipient_id and t.category = any(p.muted_categories))
  )
  select t.id, t.recipient_id as "recipientId", t.email, t.username, t.title, t.message, t.org_id as "orgId",
    t.workspace_id as "workspaceId", t.environment_id as "environmentId", t.app_id as "appId", t.metadata,
    t.source_event as "sourceEvent", t.action_url as "actionUrl", t.total, o.name as organization, w.name as workspace
  from told t left join organizations o on o.id = t.org_id left join workspaces w on w.id = t.workspace_id
  where t.at <= ${DIGEST_LINES}
  order by t.recipient_id, o.name nulls first, t.org_id, w.name nulls first, t.workspace_id, t.id desc`;

/**
 * Mails digests: one mail to each user for whom notifications wait, when it is due. The claim, what it takes and the
 * promise of the mail are one change, so each notification is in one digest, whatever node ends when.
 */
export class NotificationDigests implements Owner {
  readonly tasks: readonly Task[];
  readonly #changes: ServiceDeps['changes'];
  readonly #mail: AccountMail;
  readonly #pages: NotificationPages;
  readonly #links: UnsubscribeLinks;

  constructor(
    { changes }: Pick<ServiceDeps, 'changes'>,
    others: { mail: AccountMail; pages: NotificationPages; unsubscribeLinks: UnsubscribeLinks },
  ) {
    this.#changes = changes;
    this.#mail = others.mail;
    this.#pages = others.pages;
    this.#links = others.unsubscribeLinks;
    const ifAny = `select 1 from notification_digests d where ${DUE}`;
    this.tasks = [scheduled(NAME, { everySeconds: 10, ifAny }, () => this.send())];
  }

  /** Makes all digests that are due. @returns the number of users whose digests were due */
  send(): Promise<number> {
    return inBatches(BATCH, () => this.#changes.run(systemCaller(NAME), (tx) => this.#sendSome(tx)));
  }

  async #sendSome(tx: Tx): Promise<number> {
    const due = await tx.query<Due>({ text: CLAIM, values: [] });
    if (due.length === 0) return 0;
    const pairs = due.flatMap(({ userId, isHourly, isDaily }) => [
      ...(isHourly ? [[userId, 'hourly'] as const] : []),
      ...(isDaily ? [[userId, 'daily'] as const] : []),
    ]);
    const values = [pairs.map(([userId]) => userId), pairs.map(([, frequency]) => frequency)];
    const byUser = new Map<string, Line[]>();
    for (const line of await tx.query<Line>({ text: TAKE, values })) {
      const own = byUser.get(line.recipientId);
      if (own) own.push(line);
      else byUser.set(line.recipientId, [line]);
    }
    for (const [userId, lines] of byUser) this.#mailTo(tx, userId, lines);
    return due.length;
  }

  #mailTo(tx: Tx, userId: string, lines: readonly Line[]): void {
    const { email, username, total } = lines[0]!;
    const groups = new Map<string, DigestGroup>();
    for (const line of lines) {
      const { organization, workspace, title, message } = line;
      const key = `${line.orgId} ${line.workspaceId}`;
      const group = groups.get(key) ?? { organization, workspace, items: [] };
      groups.set(key, group);
      group.items.push({ title, message, link: this.#pages.urlOf(line) });
    }
    const unsubscribe = this.#links.linkFor({ userId, orgId: null, category: DIGEST });
    this.#mail.digest(tx, { email, username }, { groups: [...groups.values()], total, unsubscribe });
  }
}
