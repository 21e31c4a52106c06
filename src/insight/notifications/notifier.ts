import type { Notifying, Occasion } from '../../data/occasions.ts';
import { eventActor } from '../../data/outbox.ts';
import { membersWithoutFactor, organizationOfUser } from '../../identity/views.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { newId } from '../../kernel/ids.ts';
import { oneLine } from '../../kernel/wording.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { isActiveAccount, organizationAdministrators, workspaceAdministrators } from '../../tenancy/views.ts';
import { type Endings, endingsOf, reopening, replacedBy, resolution, restoredBy } from './endings.ts';
import { isMuted } from './mutes.ts';
import type { LinkedNotification, NotificationPages } from './notification.pages.ts';
import type {
  NotificationCategory,
  NotificationScope,
  NotificationSource,
  NotificationType,
  Priority,
} from './notification.words.ts';
import { RETENTION_DAYS } from './notification.words.ts';
import { type NotificationRule, type NotifiedOccasion, named, type Recipients, rules } from './rules.ts';
import { digestsDue, frequencyOf } from './schedules.ts';
import type { UnsubscribeLinks } from './unsubscribe-links.ts';

/** A notification before it is known who gets it: a row of {@link MAKE}. */
interface Draft {
  /** The identifiers of its notifications, without the last six digits. */
  stem: string;
  audience: Recipients;
  user_ids: readonly string[];
  /** Whoever caused it. */
  not_user: string | null;
  scope: NotificationScope;
  org_id: string | null;
  workspace_id: string | null;
  namespace_id: string | null;
  environment_id: string | null;
  app_id: string | null;
  release_id: string | null;
  named_user: string | null;
  type: NotificationType;
  priority: Priority;
  category: NotificationCategory;
  title: string;
  message: string;
  action_url: string | null;
  action_label: string | null;
  source_service: NotificationSource;
  source_event: string;
  metadata: Readonly<Record<string, unknown>>;
  expires_at: Date;
  is_mailed: boolean;
}

/** What a change makes and ends. */
interface MadeAndEnded {
  drafts: readonly Draft[] | null;
  endings: Endings | null;
  /** The workspaces that it restores. */
  restored: readonly string[];
  at: Date;
  caller: AnyCaller;
}

/** A notification that is mailed too. */
interface Mailed extends LinkedNotification {
  recipientId: string;
  category: string;
  email: string;
  username: string;
  title: string;
  message: string;
}

const NAME_LENGTH = 60;
const DIGITS = 6;

/** Puts the names into a text. */
const filled = (text: string, most: number): string =>
  `left(${Object.entries(named).reduce(
    (sql, [name, mark]) => `replace(${sql}, U&'\\${mark.charCodeAt(0).toString(16).padStart(4, '0')}', n.${name})`,
    text,
  )}, ${most})`;

// columns of a draft `d` and its recipient
const DRAFT = { user: 'u.id', category: 'd.category', orgId: 'd.org_id', workspaceId: 'd.workspace_id' };

const nameOf = (column: string): string => `coalesce(one_line(${column}, ${NAME_LENGTH}), '')`;

/**
 * Makes the notifications of all drafts of a change, each with its event, in one statement. `$1`: the drafts; `$2`: the
 * time in their identifiers; `$3` and `$4`: the actor and the trace of the events. A user who mutes the category, or
 * whose account is suspended or deleted, gets none; one who mutes it in the place by one channel gets the other. One
 * who wants a digest finds it there, and no mail of its own, unless it is muted in the lists that a digest is made of.
 * An event about an account itself is in the organization that its user works in: that of the newest session, else that
 * of the oldest membership.
 */
const MAKE = `with drafts as (
    select * from jsonb_to_recordset($1::jsonb) d(stem text, audience text, user_ids text[], not_user text, scope text,
      org_id text, workspace_id text, namespace_id text, environment_id text, app_id text, release_id text,
      named_user text, type text, priority text, category text, title text, message text, action_url text,
      action_label text, source_service text, source_event text, metadata jsonb, expires_at timestamptz,
      is_mailed boolean)
  ), recipients as (
    select d.stem, r.user_id from drafts d cross join lateral (
      select unnest(d.user_ids) as user_id
      union select a.user_id from (${workspaceAdministrators('d.org_id', 'd.workspace_id')}) a
        where d.audience = 'workspace administrators'
      union select a.user_id from (${organizationAdministrators('d.org_id')}) a
        where d.audience in ('workspace administrators', 'organization administrators')
      union select a.user_id from (${membersWithoutFactor('d.org_id')}) a
        where d.audience = 'members without a factor'
    ) r
  ), chosen as materialized (
    select d.stem || lpad(row_number() over (partition by d.stem order by u.id)::text, ${DIGITS}, '0') as id,
      u.id as recipient_id, u.email, u.username, d.*, ${filled('d.title', 200)} as full_title,
      ${filled('d.message', 2_000)} as full_message, m.is_shown,
      d.is_mailed and m.is_by_mail and (f.frequency = 'immediate' or f.frequency <> 'never' and not m.is_shown)
        as is_sent,
      case when m.is_shown and m.is_by_mail and d.category <> 'security' and f.frequency in ('hourly', 'daily')
        then f.frequency end as digest
    from drafts d join recipients r using (stem)
    join users u on u.id = r.user_id and ${isActiveAccount('u')}
    cross join lateral (select
      ${nameOf('(select o.name from organizations o where o.id = d.org_id)')} as organization,
      ${nameOf('(select w.name from workspaces w where w.id = d.workspace_id)')} as workspace,
      ${nameOf('(select a.name from apps a where a.id = d.app_id)')} as app,
      ${nameOf('(select e.name from environments e where e.id = d.environment_id)')} as environment,
      ${nameOf('(select l.version from releases l where l.id = d.release_id)')} as release,
      ${nameOf('(select p.username from users p where p.id = d.named_user)')} as user) n
    cross join lateral (select not ${isMuted(DRAFT, 'in_app')} as is_shown,
      not ${isMuted(DRAFT, 'mail')} as is_by_mail) m
    cross join lateral (select ${frequencyOf(DRAFT)} as frequency) f
    where r.user_id is distinct from d.not_user and (d.category = 'security' or not exists (
      select from notification_preferences p where p.user_id = u.id and d.category = any(p.muted_categories)))
  ), made as (
    insert into notifications (id, recipient_id, scope, org_id, workspace_id, namespace_id, environment_id, app_id,
      type, priority, category, title, message, action_url, action_label, source_service, source_event, metadata,
      created_at, expires_at, digest)
    select id, recipient_id, scope, org_id, workspace_id, namespace_id, environment_id, app_id, type, priority,
      category, full_title, full_message, action_url, action_label, source_service, source_event, metadata,
      $2::timestamptz, expires_at, digest
    from chosen where is_shown
  ), collected as (${digestsDue('chosen', '$2::timestamptz')}
  ), announced as (
    insert into events (id, org_id, workspace_id, namespace_id, environment_id, app_id, recipient_id, type, actor,
      resource_type, resource_id, data, trace_id)
    select 'evt' || substr(c.id, 4), o.org_id, c.workspace_id, c.namespace_id, c.environment_id, c.app_id,
      c.recipient_id, 'notification.created', $3::jsonb, 'notification', c.id,
      jsonb_build_object('category', c.category, 'type', c.type, 'priority', c.priority), $4
    from chosen c cross join lateral (select coalesce(c.org_id, ${organizationOfUser('c.recipient_id')}) as org_id) o
    where c.is_shown and o.org_id is not null order by c.id
  )
  select email, username, full_title as title, full_message as message, case when is_shown then id end as id,
    org_id as "orgId", workspace_id as "workspaceId", environment_id as "environmentId", app_id as "appId", metadata,
    source_event as "sourceEvent", action_url as "actionUrl", recipient_id as "recipientId", category
  from chosen where is_sent order by id`;

/** Makes notifications of what happens, by the table of rules. */
export class Notifier {
  readonly #mail: AccountMail;
  readonly #pages: NotificationPages;
  readonly #unsubscribing: UnsubscribeLinks;

  constructor(mail: AccountMail, pages: NotificationPages, unsubscribing: UnsubscribeLinks) {
    this.#mail = mail;
    this.#pages = pages;
    this.#unsubscribing = unsubscribing;
  }

  /** Makes those of a change, in its transaction, with one statement for all of them. `null` if there are none. */
  readonly notify = (tx: Notifying, caller: AnyCaller, occasions: readonly Occasion[]): Promise<void> | null => {
    let drafts: Draft[] | null = null;
    let endings = endingsOf(occasions);
    const at = new Date();
    for (const occasion of occasions) {
      const rule = rules.get(occasion.type);
      if (!rule) continue;
      const notified: NotifiedOccasion = {
        ...occasion,
        facts: occasion.facts ?? {},
        by: nameOfActor(caller, occasion),
      };
      if (rule.when?.(notified) === false) continue;
      const draft = draftOf(rule, notified, caller, at);
      if (!concernsOthers(draft)) continue;
      (drafts ??= []).push(draft);
      endings = replacedBy(rule, notified, endings);
    }
    const restored = restoredBy(occasions);
    if (!drafts && !endings && restored.length === 0) return null;
    return this.#write(tx, { drafts, endings, restored, at, caller });
  };

  /** What ended first: what is new may say the same of a later moment. */
  async #write(tx: Notifying, { drafts, endings, restored, at, caller }: MadeAndEnded): Promise<void> {
    const shownActor = JSON.stringify(eventActor(caller));
    const { traceId } = caller.request;
    const own = () => ({ at, stem: newId('event').slice(0, -DIGITS), actor: shownActor, traceId });
    if (endings) await tx.query(resolution(endings, own()));
    if (restored.length > 0) await tx.query(reopening(restored, own()));
    if (!drafts) return;
    const values = [JSON.stringify(drafts), at, shownActor, traceId];
    for (const mailed of await tx.query<Mailed>({ text: MAKE, values }))
      this.#mail.notification(tx, mailed, {
        subject: mailed.title,
        sentence: mailed.message,
        link: this.#pages.urlOf(mailed),
        unsubscribe: this.#unsubscribing.linkFor({ ...mailed, userId: mailed.recipientId }),
      });
  }
}

/** Whether somebody else than the actor may get it: registering, for one, notifies nobody. */
const concernsOthers = ({ audience, user_ids, not_user }: Draft): boolean =>
  audience.endsWith('administrators') ||
  audience === 'members without a factor' ||
  user_ids.some((id) => id !== not_user);

const whoActs = ({ principal, signedInAs }: AnyCaller) => principal ?? signedInAs;
function nameOfActor(caller: AnyCaller, { facts }: Occasion): string {
  if (caller.scimTokenId !== undefined) return 'The directory of the organization';
  return facts?.provider === undefined
    ? (whoActs(caller)?.username ?? 'The service')
    : `The identity provider '${oneLine(facts.provider)}'`;
}

/** The users that a draft names; administrators are found by the statement. */
const usersOf = ({ to }: NotificationRule, { resourceId, facts }: NotifiedOccasion): readonly string[] => {
  if (to === 'subject') return facts.userIds ?? [resourceId];
  return to === 'listed' ? (facts.userIds ?? []) : [];
};

function draftOf(rule: NotificationRule, notified: NotifiedOccasion, caller: AnyCaller, at: Date): Draft {
  const { type, orgId, workspaceId, resourceType, resourceId, data, facts } = notified;
  const [kind, priority] = typeof rule.tone === 'function' ? rule.tone(notified) : rule.tone;
  const [url, label] = rule.link?.(notified) ?? [null, null];
  const retained = at.getTime() + RETENTION_DAYS * 86_400_000;
  const until = rule.until?.(notified)?.getTime() ?? retained;
  return {
    stem: newId('notification').slice(0, -DIGITS),
    audience: rule.to,
    user_ids: usersOf(rule, notified),
    not_user: rule.isOwnToo || facts.provider !== undefined ? null : (whoActs(caller)?.userId ?? null),
    scope: workspaceId ? 'workspace' : orgId ? 'organization' : 'user',
    org_id: orgId,
    workspace_id: workspaceId ?? null,
    namespace_id: notified.namespaceId ?? null,
    environment_id: notified.environmentId ?? null,
    app_id: notified.appId ?? null,
    release_id: typeof data?.release_id === 'string' ? data.release_id : null,
    named_user: facts.namedUserId ?? null,
    type: kind,
    priority,
    category: rule.category,
    title: rule.title(notified),
    message: rule.message(notified),
    action_url: url,
    action_label: label,
    source_service: rule.source,
    source_event: type,
    metadata: { resource_type: resourceType, resource_id: resourceId, ...data, ...rule.metadata?.(notified) },
    expires_at: new Date(Math.min(until, retained)),
    is_mailed: rule.isMailed ?? false,
  };
}
