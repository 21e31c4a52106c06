import { badRequest } from './scim-error.ts';
import { textOf } from './scim-fields.ts';
import type { ScimFilter } from './scim-filter.ts';
import { fieldsOf, namedMembers, OF_EXTENSION, type PatchOperation } from './scim-patch.ts';

/** A group after a request, and what the request does with its members. */
export interface GroupChange {
  displayName: string;
  externalId: string | null;
  /** Whether those who are not added go. */
  isWhole: boolean;
  added: Set<string>;
  removed: Set<string>;
}

/** The names of members in one request. */
const MAX_VALUES = 1_000;
const MAX_ID = 128;
const READ_ONLY = new Set(['id', 'meta', 'schemas']);

/** A whole resource. @param id of the group that it replaces */
export function wholeGroup(body: unknown, id: string | null = null): GroupChange {
  const change = {
    displayName: '',
    externalId: null,
    isWhole: true,
    added: new Set<string>(),
    removed: new Set<string>(),
  };
  assignAll(change, 'replace', body, id);
  if (change.displayName === '') throw badRequest('invalidValue', "A group has a 'displayName'.");
  return change;
}

/** A group after the operations of a PATCH. */
export function patchedGroup(
  { displayName, externalId }: Pick<GroupChange, 'displayName' | 'externalId'>,
  operations: readonly PatchOperation[],
  id: string,
): GroupChange {
  const change = { displayName, externalId, isWhole: false, added: new Set<string>(), removed: new Set<string>() };
  for (const operation of operations) apply(change, operation, id);
  return change;
}

function apply(change: GroupChange, { op, path, value }: PatchOperation, id: string): void {
  if (path === null) {
    assignAll(change, op, value, id);
    return;
  }
  const { attribute, filter } = path;
  if (READ_ONLY.has(attribute)) throw badRequest('mutability', `'${attribute}' cannot be changed.`);
  if (op === 'remove' && attribute === 'displayname') throw badRequest('mutability', "'displayName' is required.");
  if (attribute === 'members') moveAt(change, op, filter, value);
  else if (attribute !== OF_EXTENSION) assign(change, attribute, op === 'remove' ? null : value);
}

/** Entra ID removes by a list of values, others by a filter, and all by neither. */
function moveAt(change: GroupChange, op: PatchOperation['op'], filter: ScimFilter | null, value: unknown): void {
  if (filter !== null && op !== 'remove') throw badRequest('mutability', 'A member is added or removed, not changed.');
  if (filter !== null) move(change, 'remove', namedMembers(filter));
  else if (value === undefined && op === 'remove') move(change, 'replace', []);
  else move(change, op, membersOf(value));
}

function assignAll(change: GroupChange, op: PatchOperation['op'], value: unknown, id: string | null): void {
  for (const [name, field] of fieldsOf(value)) {
    // Okta sends the identifier along
    if (name === 'id' && id !== null && field !== id) throw badRequest('mutability', "'id' cannot be changed.");
    if (name === 'members') move(change, op, field === null ? [] : membersOf(field));
    else if (name === 'displayname' || name === 'externalid') assign(change, name, field);
  }
}

function assign(change: GroupChange, attribute: string, value: unknown): void {
  if (attribute === 'externalid') change.externalId = textOf('externalId', value);
  else if (attribute === 'displayname') {
    const displayName = textOf('displayName', value);
    if (displayName === null) throw badRequest('invalidValue', "A group has a 'displayName'.");
    change.displayName = displayName;
  } else throw badRequest('invalidPath', `A group has no '${attribute.slice(0, 80)}'.`);
}

function move(change: GroupChange, op: PatchOperation['op'], ids: readonly string[]): void {
  if (op === 'replace') {
    change.isWhole = true;
    change.added.clear();
    change.removed.clear();
  }
  for (const id of ids) {
    change[op === 'remove' ? 'added' : 'removed'].delete(id);
    change[op === 'remove' ? 'removed' : 'added'].add(id);
  }
  if (change.added.size + change.removed.size > MAX_VALUES)
    throw badRequest('tooMany', `A request names at most ${MAX_VALUES} members.`);
}

function membersOf(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_VALUES) throw badRequest('tooMany', `A request names at most ${MAX_VALUES} members.`);
  return list.map((member) => {
    const id = typeof member === 'string' ? member : fieldsOf(member).get('value');
    const text = textOf('members.value', id, MAX_ID);
    if (text === null) throw badRequest('invalidValue', "A member has a 'value', the identifier of a user.");
    return text;
  });
}
