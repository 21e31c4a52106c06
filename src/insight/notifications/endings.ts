import type { Occasion } from '../../data/occasions.ts';
import type { Statement } from '../../data/writes.ts';
import { isResourceWord, memberWords } from '../../kernel/resources.ts';
import { reaches } from '../../tenancy/views.ts';
import { type NotificationRule, rules } from './rules.ts';

/** What a change may have ended: notifications that name one of these. */
export interface Endings {
  /** Resources whose state has changed. */
  resources: Set<string>;
  /** Users who came to a place, left it or have another role in it. */
  members: Set<string>;
  /** The organizations where they did. */
  organizations: Set<string>;
  /** Places that are gone, by their column. */
  places: Partial<Record<PlaceColumn, Set<string>>>;
  /** The workspaces that the smaller ones of them were in. */
  workspaces: Set<string>;
  /** What a new notification says instead: its event, resource and place. */
  replaced: Set<string>;
}

/** The values of a change that its statements share: its time, the actor and the trace of its events. */
export interface ChangeValues {
  at: Date;
  /** The identifiers of the events, without the last six digits. */
  stem: string;
  actor: string;
  traceId: string | null;
}

type PlaceColumn = 'org_id' | 'workspace_id' | 'namespace_id' | 'environment_id' | 'app_id';

const placeColumns: Partial<Record<string, PlaceColumn>> = {
  'organization.deleted': 'org_id',
  'workspace.deleted': 'workspace_id',
  'namespace.deleted': 'namespace_id',
  'environment.deleted': 'environment_id',
  'app.deleted': 'app_id',
};

const conditions = [...rules].flatMap(([type, { holds }]) => (holds ? [[type, holds] as const] : []));

/** The resources whose state notifications tell of. */
const statefulWords: ReadonlySet<string> = new Set(
  conditions
    .map(([type]) => type.slice(0, type.indexOf('.')))
    .filter((word) => isResourceWord(word) && !memberWords.has(word)),
);

/** SQL: whether a notification `n` tells of the state of a resource, and not of what happened or of a membership. */
const IS_OF_STATE = `n.source_event in (${conditions
  .filter(([type]) => statefulWords.has(type.slice(0, type.indexOf('.'))))
  .map(([type]) => `'${type}'`)
  .join(', ')})`;

/**
 * Whether a notification `n` is still true: its recipient can open its place, or it says that they cannot; and what it
 * tells is so.
 */
const HOLDS = `case when n.source_event in ('organization_member.deleted', 'workspace_member.deleted') then true
    else ${reaches('n.org_id', 'n.workspace_id', 'n.recipient_id')} end
  and case n.source_event ${conditions.map(([type, holds]) => `when '${type}' then ${holds}`).join(' ')} else true end`;

// as the index `notifications_about` has it
const RESOURCE = `(n.metadata->>'resource_id')`;

const none = (): Endings => ({
  resources: new Set(),
  members: new Set(),
  organizations: new Set(),
  places: {},
  workspaces: new Set(),
  replaced: new Set(),
});

/** What the occasions of a change may have ended; `null` if they end nothing. */
export function endingsOf(occasions: readonly Occasion[]): Endings | null {
  let endings: Endings | null = null;
  // nobody was told of an organization before it was founded
  const isNew = (orgId: string | null) =>
    occasions.some(({ type, resourceId }) => type === 'organization.created' && resourceId === orgId);
  for (const { type, orgId, workspaceId, resourceType, resourceId, facts } of occasions) {
    const column = placeColumns[type];
    if (column) {
      endings ??= none();
      (endings.places[column] ??= new Set()).add(resourceId);
      if (workspaceId) endings.workspaces.add(workspaceId);
    } else if (memberWords.has(resourceType)) {
      if (orgId === null || isNew(orgId)) continue;
      endings ??= none();
      endings.members.add(resourceId);
      endings.organizations.add(orgId);
    } else if (statefulWords.has(resourceType) && !type.endsWith('.created'))
      (endings ??= none()).resources.add(facts?.replacedId ?? resourceId);
  }
  return endings;
}

/** A notification of a state takes the place of those before it, also for those who do not get it. */
export function replacedBy(rule: NotificationRule, occasion: Occasion, endings: Endings | null): Endings | null {
  if (!rule.holds) return endings;
  const { type, resourceId, orgId, workspaceId } = occasion;
  const all = endings ?? none();
  all.replaced.add(`${type} ${resourceId} ${workspaceId ?? orgId}`);
  return all;
}

/** The workspaces that a change restores. */
export const restoredBy = (occasions: readonly Occasion[]): readonly string[] =>
  occasions.filter(({ type }) => type === 'workspace.restored').map(({ resourceId }) => resourceId);

/**
 * Takes back what the deletion of workspaces has resolved, as far as it is true again and no newer one says the same,
 * with an event for each recipient, place and status. What tells of a state is new again: it is unread, also if it was
 * read before. What happened, and who is a member, is as it was left.
 */
export const reopening = (workspaceIds: readonly string[], own: Omit<ChangeValues, 'at'>): Statement => ({
  text: REOPEN,
  values: [workspaceIds, own.stem, own.actor, own.traceId],
});

const REOPEN = `with again as materialized (
    select n.id from notifications n
    where n.workspace_id = any($1::text[]) and n.resolved_with = n.workspace_id and n.expires_at > now() and ${HOLDS}
      and not exists (select from notifications o where o.recipient_id = n.recipient_id and o.id > n.id
        and o.workspace_id = n.workspace_id and o.source_event = n.source_event and o.resolved_at is null
        and o.metadata->>'resource_id' = ${RESOURCE})
    order by n.id for no key update
  ), reopened as (
    update notifications n set resolved_at = null, resolved_with = null,
      status = case when n.status = 'read' and ${IS_OF_STATE} then 'unread' else n.status end,
      read_at = case when n.status = 'read' and ${IS_OF_STATE} then null else n.read_at end
    from again a where n.id = a.id
    returning n.id, n.recipient_id, n.org_id, n.workspace_id, n.namespace_id, n.environment_id, n.app_id, n.status
  )
  insert into events (id, org_id, workspace_id, namespace_id, environment_id, app_id, recipient_id, type, actor,
    resource_type, resource_id, data, trace_id)
  select $2 || lpad(row_number() over (order by max(r.id))::text, 6, '0'), r.org_id, r.workspace_id, r.namespace_id,
    r.environment_id, r.app_id, r.recipient_id, 'notification.updated', $3::jsonb, 'notification', max(r.id),
    jsonb_build_object('status', r.status, 'count', count(*)), $4
  from reopened r
  group by r.org_id, r.workspace_id, r.namespace_id, r.environment_id, r.app_id, r.recipient_id, r.status
  order by max(r.id)`;

/**
 * Resolves the notifications that are not true any more, with an event for each recipient and place. Whatever tells of
 * the security of an account is left: it happened, and nobody may take the warning away by ending what it warns of.
 */
export function resolution(endings: Endings, own: ChangeValues): Statement {
  const values: unknown[] = [own.at, own.stem, own.actor, own.traceId];
  const listed = (some: ReadonlySet<string>) => `any($${values.push([...some])}::text[])`;
  const parts: string[] = [];
  const { resources, members, organizations, places, workspaces, replaced } = endings;
  if (resources.size > 0) parts.push(`${RESOURCE} = ${listed(resources)} and not (${HOLDS})`);
  if (members.size > 0)
    parts.push(`n.recipient_id = ${listed(members)} and n.org_id = ${listed(organizations)} and not (${HOLDS})`);
  for (const [column, ids] of Object.entries(places)) {
    // only organizations and workspaces have an index
    const within = column === 'org_id' ? '' : `n.workspace_id = ${listed(workspaces)} and `;
    parts.push(`${within}n.${column} = ${listed(ids)}`);
  }
  if (replaced.size > 0) {
    const known = listed(new Set([...replaced].map((one) => one.split(' ')[1]!)));
    parts.push(`${RESOURCE} = ${known}
      and concat_ws(' ', n.source_event, ${RESOURCE}, coalesce(n.workspace_id, n.org_id)) = ${listed(replaced)}`);
  }
  const gone = places.workspace_id;
  const deleted = gone ? `case when n.workspace_id = ${listed(gone)} then n.workspace_id end` : 'null';
  const where = parts.map((part) => `(${part})`).join(' or ');
  return { text: RESOLVE.replace('$parts', () => where).replace('$deleted', () => deleted), values };
}

const RESOLVE = `with ended as materialized (
    select n.id from notifications n
    where n.resolved_at is null and n.category <> 'security' and n.expires_at > now() and ($parts)
    order by n.id for no key update
  ), resolved as (
    update notifications n set resolved_at = $1, resolved_with = $deleted from ended e where n.id = e.id
    returning n.id, n.recipient_id, n.org_id, n.workspace_id, n.namespace_id, n.environment_id, n.app_id
  )
  insert into events (id, org_id, workspace_id, namespace_id, environment_id, app_id, recipient_id, type, actor,
    resource_type, resource_id, data, trace_id)
  select $2 || lpad(row_number() over (order by max(r.id))::text, 6, '0'), r.org_id, r.workspace_id, r.namespace_id,
    r.environment_id, r.app_id, r.recipient_id, 'notification.resolved', $3::jsonb, 'notification', max(r.id),
    jsonb_build_object('count', count(*)), $4
  from resolved r group by r.org_id, r.workspace_id, r.namespace_id, r.environment_id, r.app_id, r.recipient_id
  order by max(r.id)`;
