import { checkConstraints, isUnstorable } from '../../kernel/constraints.ts';
import { badRequest } from './scim-error.ts';
import type { ScimFilter } from './scim-filter.ts';
import { fieldsOf, OF_EXTENSION, type PatchOperation } from './scim-patch.ts';

/** What a directory says of somebody, as far as the service keeps it. */
export interface UserFields {
  userName: string;
  externalId: string | null;
  displayName: string | null;
  formattedName: string | null;
  givenName: string | null;
  familyName: string | null;
  email: string | null;
  active: boolean;
}

const MAX_TEXT = 255;
const MAX_NAME = 320;
const MAX_EMAILS = 50;

/** Attributes of a text, and the fields that they are. */
const texts: Readonly<Record<string, Exclude<keyof UserFields, 'active' | 'email' | 'userName'>>> = {
  externalid: 'externalId',
  displayname: 'displayName',
  'name.formatted': 'formattedName',
  'name.givenname': 'givenName',
  'name.familyname': 'familyName',
};

/** Nobody but the service sets these. In a whole resource they are left alone, as it was read with them. */
const READ_ONLY = new Set(['id', 'meta', 'schemas', 'groups']);

/** What RFC 7643 knows and the service does not keep: it is accepted and dropped. */
const DROPPED = new Set(
  (
    'nickname profileurl title usertype preferredlanguage locale timezone password phonenumbers ims photos addresses ' +
    'entitlements roles x509certificates name.middlename name.honorificprefix name.honorificsuffix'
  ).split(' '),
);

const mistake = (detail: string) => badRequest('invalidValue', detail);

/** The fields of a whole resource: what it does not name is empty. @param active of one that does not say */
export function wholeUser(body: unknown, active: boolean, id: string | null = null): UserFields {
  const fields: UserFields = { ...NOTHING, active };
  assignAll(fields, body, id);
  if (fields.userName === '') throw mistake("A user has a 'userName'.");
  return fields;
}

const NOTHING = {
  userName: '',
  externalId: null,
  displayName: null,
  formattedName: null,
  givenName: null,
  familyName: null,
  email: null,
};

/** Somebody's fields after the operations of a PATCH. */
export function patchedUser(before: UserFields, operations: readonly PatchOperation[], id: string): UserFields {
  const fields = { ...before };
  for (const operation of operations) apply(fields, operation, id);
  return fields;
}

function apply(fields: UserFields, { op, path, value }: PatchOperation, id: string): void {
  if (path === null) {
    assignAll(fields, value, id);
    return;
  }
  const { attribute, filter } = path;
  const top = attribute.split('.', 1)[0]!;
  if (READ_ONLY.has(top)) throw badRequest('mutability', `'${top}' cannot be changed.`);
  if (attribute === OF_EXTENSION || DROPPED.has(attribute) || DROPPED.has(top)) return;
  // `[type eq "home"]`: of the addresses the service keeps one, which is that of work
  if (filter !== null && (top !== 'emails' || !isOfWork(filter))) return;
  if (op === 'remove') clear(fields, attribute);
  else if (attribute === 'name') assignAll(fields, { name: value }, id);
  else assign(fields, attribute, value);
}

/** Assigns the attributes of an object. Directories also write `name.givenName` as one name. */
function assignAll(fields: UserFields, value: unknown, id: string | null): void {
  for (const [name, field] of fieldsOf(value)) {
    if (name === 'id' && id !== null && field !== id) throw badRequest('mutability', "'id' cannot be changed.");
    if (READ_ONLY.has(name) || name.startsWith('urn:')) continue;
    if (name === 'name' && field !== null)
      for (const [part, text] of fieldsOf(field)) assign(fields, `name.${part}`, text);
    else if (isKnown(name)) assign(fields, name, field);
  }
}

const isKnown = (name: string): boolean =>
  ['username', 'active', 'emails', 'name', 'emails.value'].includes(name) || Object.hasOwn(texts, name);

function assign(fields: UserFields, attribute: string, value: unknown): void {
  if (Object.hasOwn(texts, attribute)) fields[texts[attribute]!] = textOf(attribute, value);
  else if (attribute === 'username') fields.userName = textOf(attribute, value, MAX_NAME) ?? missing(attribute);
  else if (attribute === 'active') fields.active = flagOf(value);
  else if (attribute === 'emails') fields.email = addressOf(value);
  else if (attribute === 'emails.value') fields.email = address(value);
  else if (attribute === 'name') clear(fields, attribute);
  else if (!DROPPED.has(attribute) && !/^(?:emails|name)\./.test(attribute))
    throw badRequest('invalidPath', `A user has no '${attribute.slice(0, 80)}'.`);
}

function clear(fields: UserFields, attribute: string): void {
  if (attribute === 'username' || attribute === 'active') missing(attribute);
  if (Object.hasOwn(texts, attribute)) fields[texts[attribute]!] = null;
  else if (attribute === 'name') Object.assign(fields, { formattedName: null, givenName: null, familyName: null });
  else if (attribute.split('.', 1)[0] === 'emails') fields.email = null;
  else throw badRequest('invalidPath', `A user has no '${attribute.slice(0, 80)}'.`);
}

function missing(attribute: string): never {
  throw badRequest('mutability', `'${attribute}' is required.`);
}

/** A text, or `null` for none. */
export function textOf(attribute: string, value: unknown, most = MAX_TEXT): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string' || value.length > most || isUnstorable(value))
    throw mistake(`'${attribute}' is a text of at most ${most} characters.`);
  return value.trim() === '' ? null : value.trim();
}

/** Entra ID writes `"False"`. */
function flagOf(value: unknown): boolean {
  const known = typeof value === 'string' ? { true: true, false: false }[value.toLowerCase()] : value;
  if (typeof known !== 'boolean') throw mistake("'active' is true or false.");
  return known;
}

/** Of a list of addresses: the primary one, else that of work, else the first one. */
function addressOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_EMAILS) throw badRequest('tooMany', `A user has at most ${MAX_EMAILS} addresses.`);
  const emails = list.map((entry) => (typeof entry === 'string' ? new Map([['value', entry]]) : fieldsOf(entry)));
  const isPrimary = (email: Map<string, unknown>) => String(email.get('primary')).toLowerCase() === 'true';
  const isWork = (email: Map<string, unknown>) => String(email.get('type')).toLowerCase() === 'work';
  return address((emails.find(isPrimary) ?? emails.find(isWork) ?? emails[0])?.get('value'));
}

function address(value: unknown): string | null {
  const text = textOf('emails.value', value, MAX_NAME);
  if (text !== null && !isAddress(text)) throw mistake("'emails.value' is an e-mail address.");
  return text;
}

export const isAddress = (text: string): boolean =>
  checkConstraints(text, { format: 'email', maxLength: MAX_NAME }).length === 0;

/** Whether a filter of addresses is true of the one that is kept: `{type: "work", primary: true}`. */
function isOfWork(filter: ScimFilter): boolean {
  if (filter.kind === 'not') return !isOfWork(filter.part);
  if (filter.kind !== 'compare')
    return filter.kind === 'and' ? filter.parts.every(isOfWork) : filter.parts.some(isOfWork);
  const { attribute, value } = filter;
  const is = attribute === 'emails.type' ? 'work' : attribute === 'emails.primary' ? 'true' : null;
  // of an address that is not there yet, only its kind says what is meant
  if (is === null) return true;
  return (String(value).toLowerCase() === is) === (filter.operator !== 'ne');
}
