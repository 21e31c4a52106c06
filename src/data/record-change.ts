import { type ChangeVerb, eventNames } from '../kernel/actions.ts';
import type { EventData } from '../kernel/event-details.ts';
import { type Place, placeOf } from '../kernel/place.ts';
import { type EventName, type EventType, memberWords, type ResourceWord } from '../kernel/resources.ts';
import { snakeCase } from '../kernel/snake-case.ts';
import type { Facts } from './occasions.ts';
import type { EventEntry } from './outbox.ts';
import type { Tx } from './tx.ts';

/** The part of a transaction that records what was done. */
type Recorder = Pick<Tx, 'audit' | 'emit'>;

/** Where a changed row belongs, including its namespace, environment and app if it has one. */
export interface ChangedRow extends Place {
  id: string;
  orgId: string;
  /** Absent or `null` if it belongs to the organization as a whole. */
  workspaceId?: string | null;
}

/** The verbs of a resource, which follow from its events in the table of resources. */
type VerbOf<Word extends ResourceWord> = {
  [Verb in ChangeVerb]: (typeof eventNames)[Verb] extends EventName<Word> ? Verb : never;
}[ChangeVerb];

/**
 * Records the change of a row: its activity record and the event `<kind>.created`, `<kind>.updated`, …. Which verbs a
 * kind has follows from its events in the table of resources.
 * @param facts what notifications say of it beyond its ids
 */
export function recordChange<Word extends ResourceWord>(
  tx: Recorder,
  verb: VerbOf<Word>,
  kind: Word,
  row: ChangedRow,
  metadata: Record<string, unknown> = {},
  facts?: Facts,
): void {
  const { id, orgId, workspaceId } = row;
  const place = { orgId, workspaceId, ...placeOf(row, kind) };
  tx.audit({ action: verb, resourceType: kind, resourceId: id, ...place, metadata });
  const data = detailsOf(verb, kind, metadata);
  tx.emit({ ...eventOf(`${kind}.${eventNames[verb]}` as EventType, kind, row), ...(data && { data }), facts });
}

/** What the event says of the change: the names of the given fields, as REST has them, and the role of a member. */
function detailsOf(verb: ChangeVerb, kind: ResourceWord, metadata: Record<string, unknown>) {
  if (memberWords.has(kind)) {
    const { role } = (metadata.after ?? metadata) as { role?: unknown };
    return verb !== 'delete' && typeof role === 'string' ? { role } : null;
  }
  const { fields } = metadata;
  return verb === 'update' && Array.isArray(fields) ? { fields: (fields as string[]).map(snakeCase) } : null;
}

/** Emits only the event of a change: as a part of a change that is recorded, or of one without a record. */
export function emitChange<Word extends ResourceWord, Name extends EventName<Word>>(
  tx: Pick<Recorder, 'emit'>,
  name: Name,
  kind: Word,
  row: ChangedRow,
  data?: EventData<`${Word}.${Name}` & EventType>,
  facts?: Facts,
): void {
  tx.emit({ ...eventOf(`${kind}.${name}` as EventType, kind, row), ...(data && { data }), facts });
}

function eventOf(type: EventType, kind: ResourceWord, row: ChangedRow): EventEntry {
  const { id, orgId, workspaceId } = row;
  return { type, orgId, workspaceId, ...placeOf(row, kind), resourceType: kind, resourceId: id };
}
