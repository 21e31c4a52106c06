import { isUnstorable } from '../../kernel/constraints.ts';
import { badRequest } from './scim-error.ts';
import { attributeKey, parseFilter, type ScimFilter } from './scim-filter.ts';

/** One operation of a PATCH. */
export interface PatchOperation {
  op: 'add' | 'replace' | 'remove';
  /** `null`: the value is an object with the attributes. */
  path: PatchPath | null;
  value: unknown;
}

/** What an operation names: `emails[type eq "work"].value`. */
export interface PatchPath {
  /** In lower case, with what is below it: `name.givenname`, `emails.value`. */
  attribute: string;
  /** Attributes in it begin with that of the path: `emails.type`. */
  filter: ScimFilter | null;
}

const MAX_OPERATIONS = 1_000;
const MAX_PATH = 2_000;
const NAME = /^[a-z][\w$-]*$/;
const ATTRIBUTE = /^[a-z][\w$-]*(?:\.[a-z$][\w$-]*)?$/;

/** An attribute of a schema that the service does not keep. */
export const OF_EXTENSION = 'urn:';

/** The operations of a PATCH, as directories write them: in any case. @throws ScimError */
export function readOperations(body: unknown): PatchOperation[] {
  const list = fieldsOf(body).get('operations');
  if (!Array.isArray(list) || list.length === 0)
    throw badRequest('invalidSyntax', "A PATCH has 'Operations', a list that is not empty.");
  if (list.length > MAX_OPERATIONS) throw badRequest('tooMany', `A PATCH has at most ${MAX_OPERATIONS} operations.`);
  return list.map(readOperation);
}

function readOperation(given: unknown): PatchOperation {
  const fields = fieldsOf(given);
  const op = String(fields.get('op')).toLowerCase();
  if (op !== 'add' && op !== 'replace' && op !== 'remove')
    throw badRequest('invalidSyntax', "An 'op' is add, replace or remove.");
  const path = fields.get('path');
  const value = fields.get('value');
  if (path === undefined || path === null || path === '') {
    if (op === 'remove') throw badRequest('invalidPath', 'What is removed is named by a path.');
    return { op, path: null, value };
  }
  if (typeof path !== 'string' || path.length > MAX_PATH) throw badRequest('invalidPath', 'A path is a short text.');
  return { op, path: readPath(path), value };
}

function readPath(text: string): PatchPath {
  const open = text.indexOf('[');
  const close = text.lastIndexOf(']');
  const head = attributeKey(open < 0 ? text : text.slice(0, open));
  if (head.startsWith('urn:')) return { attribute: OF_EXTENSION, filter: null };
  const tail = open < 0 ? '' : text.slice(close + 1).toLowerCase();
  const isWhole = open < 0 || (close > open && /^(?:\.[a-z$][\w$-]*)?$/.test(tail));
  if (!isWhole || !(open < 0 ? ATTRIBUTE : NAME).test(head))
    throw badRequest('invalidPath', 'The path cannot be read.');
  return {
    attribute: `${head}${tail}`,
    filter: open < 0 ? null : parseFilter(text.slice(open + 1, close), `${head}.`),
  };
}

/**
 * The fields of an object, by their names in lower case. @throws ScimError `invalidSyntax` for anything else
 */
export function fieldsOf(value: unknown): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest('invalidSyntax', 'It must be an object of JSON.');
  return new Map(Object.entries(value).map(([name, field]) => [attributeKey(name), field]));
}

/** The identifiers that a filter of members names: `value eq "…"`, joined by `or`. @throws ScimError `invalidFilter` */
export function namedMembers(filter: ScimFilter): string[] {
  if (filter.kind === 'or') return filter.parts.flatMap(namedMembers);
  if (filter.kind === 'compare' && filter.attribute === 'members.value' && filter.operator === 'eq') {
    const id = String(filter.value);
    if (isUnstorable(id)) throw badRequest('invalidFilter', 'A text has a character that cannot be stored.');
    return [id];
  }
  throw badRequest('invalidFilter', 'Members are named by value eq "…".');
}
