import { isUnstorable } from '../../../kernel/constraints.ts';
import { textClaim } from '../bounded-claims.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { SKEW_MS } from './assertion.ts';
import { checkSignatures } from './message-rules.ts';
import type { OutlineElement } from './outline.ts';
import { attribute, childrenOf, isElement, only, timestampOf, type XmlElement } from './xml-element.ts';

/** A sign-out that the identity provider asks for, or the end of one that the service has asked for. */
export type LogoutMessage = {
  /** Accepted once per provider, until it is too old anyway. */
  id: string;
  expiresAt: Date;
} & (
  | {
      kind: 'request';
      /** What the provider knows the user by. */
      subject: string;
      /** The sessions at the provider that end; none: all of the user. */
      sessionIndexes: string[];
    }
  | { kind: 'response'; inResponseTo: string; isSuccess: boolean }
);

const ROOTS = { SAMLRequest: 'LogoutRequest', SAMLResponse: 'LogoutResponse' } as const;
const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';
const MAX_ID = 200;
const MAX_SESSIONS = 100;

const refuse = (reason: string): never => {
  throw new SsoRefusal(reason);
};

/** The rules for the form of a message, before any library builds a document of it. @throws SsoRefusal */
export function checkLogoutForm(elements: readonly OutlineElement[], name: keyof typeof ROOTS): void {
  const root = ROOTS[name];
  const named = elements.filter((element) => Object.values<string>(ROOTS).includes(element.name));
  if (elements[0]?.name !== root || named.length !== 1) refuse('the message is not a logout message');
  checkSignatures(elements, [root]);
}

/** The rules for the name of a user that was encrypted. @throws SsoRefusal */
export function checkName(elements: readonly OutlineElement[]): void {
  if (elements[0]?.name !== 'NameID' || elements.length !== 1) refuse('the encrypted part is not exactly one NameID');
}

/**
 * The rules for a message of a sign-out (SAML profiles, section 4.4), in bytes whose signature was verified.
 * @param document what the library read
 * @throws SsoRefusal
 */
export function acceptLogout(
  document: unknown,
  name: keyof typeof ROOTS,
  expected: {
    issuer: string;
    destination: string;
    now: number;
    /** The decrypted name of the user as the library read it; `null` for a message that hides none. */
    hidden: unknown;
  },
): LogoutMessage {
  const found = isElement(document) ? document[ROOTS[name]] : undefined;
  const root = isElement(found) ? found : refuse('the message is not a logout message');
  const { now } = expected;
  const id = attribute(root, 'ID') ?? '';
  if (attribute(root, 'Version') !== '2.0' || id === '' || id.length > MAX_ID || isUnstorable(id))
    refuse('the message has no usable id');
  if (only(root, 'Issuer')?._?.trim() !== expected.issuer) refuse('the message is from another identity provider');
  if (attribute(root, 'Destination') !== expected.destination) refuse('the message is meant for another address');
  const issuedAt = timeOf(root, 'IssueInstant') ?? refuse('the message does not say when it was issued');
  if (Math.abs(now - issuedAt) > SKEW_MS) refuse('the message was issued too long ago, or in the future');
  const end = timeOf(root, 'NotOnOrAfter');
  if (end !== null && end + SKEW_MS <= now) refuse('the message has expired');
  const common = { id, expiresAt: new Date(issuedAt + 2 * SKEW_MS) };
  return name === 'SAMLRequest'
    ? { ...common, kind: 'request', ...subjectOf(root, expected.hidden) }
    : { ...common, kind: 'response', ...resultOf(root) };
}

function subjectOf(request: XmlElement, hidden: unknown): { subject: string; sessionIndexes: string[] } {
  const shown = childrenOf(request, 'NameID');
  const names = isElement(hidden) && isElement(hidden.NameID) ? [...shown, hidden.NameID] : shown;
  if (names.length > 1) refuse('the message has several NameIDs');
  const subject = names[0]?._?.trim() ?? '';
  if (subject === '' || subject.length > 255 || isUnstorable(subject)) refuse('the message has no usable NameID');
  const indexes = childrenOf(request, 'SessionIndex');
  if (indexes.length > MAX_SESSIONS) refuse('the message names too many sessions');
  // one that no session can have must not become none, which means all
  return { subject, sessionIndexes: indexes.map(({ _: text }) => textClaim(text) ?? '') };
}

function resultOf(response: XmlElement): { inResponseTo: string; isSuccess: boolean } {
  const status = only(only(response, 'Status'), 'StatusCode');
  if (!status) refuse('the message has no status');
  const inResponseTo = attribute(response, 'InResponseTo') ?? '';
  return { inResponseTo, isSuccess: attribute(status, 'Value') === SUCCESS };
}

function timeOf(element: XmlElement, name: string): number | null {
  const text = attribute(element, name);
  return text === undefined ? null : (timestampOf(text) ?? refuse('the message has an invalid time'));
}
