import { isUnstorable } from '../../../kernel/constraints.ts';
import { boundedClaims, emailClaim, groupsOf, textClaim } from '../bounded-claims.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { VerifiedIdentity } from '../verified-identity.ts';
import { attribute, childrenOf, isElement, only, timestampOf, type XmlElement } from './xml-element.ts';

/** By how much the clock of an identity provider may be wrong. */
export const SKEW_MS = 300_000;

const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

const refuse = (reason: string): never => {
  throw new SsoRefusal(reason);
};

/** An assertion that is accepted. */
export interface AcceptedAssertion {
  identity: VerifiedIdentity;
  /** Accepted once per provider, until it has expired. */
  assertionId: string;
  expiresAt: Date;
}

/**
 * Checks what the library leaves open (SAML profiles, section 4.1.4.3), in the signed bytes only: who issued the
 * assertion, for whom and for which request, and until when.
 * @param document what the library read
 * @throws SsoRefusal
 */
export function acceptAssertion(
  document: unknown,
  expected: {
    issuer: string;
    acsUrl: string;
    audience: string;
    requestId: string | null;
    groupAttribute: string;
    now: number;
  },
): AcceptedAssertion {
  const assertion = isElement(document) && isElement(document.Assertion) ? document.Assertion : refuse('no assertion');
  const { now, requestId } = expected;
  const assertionId = attribute(assertion, 'ID') ?? '';
  if (
    attribute(assertion, 'Version') !== '2.0' ||
    assertionId === '' ||
    assertionId.length > 255 ||
    isUnstorable(assertionId)
  )
    refuse('the assertion has no usable id');
  if (only(assertion, 'Issuer')?._?.trim() !== expected.issuer)
    refuse('the assertion is from another identity provider');
  const subject = only(assertion, 'Subject');
  const expiresAt = confirmedUntil(childrenOf(subject, 'SubjectConfirmation'), expected);
  const conditions = only(assertion, 'Conditions');
  if (!conditions) refuse('the assertion has no conditions');
  checkTimes(conditions, now);
  const restrictions = childrenOf(conditions, 'AudienceRestriction');
  const isForUs = (restriction: XmlElement) =>
    childrenOf(restriction, 'Audience').some(({ _: audience }) => audience?.trim() === expected.audience);
  if (restrictions.length === 0 || !restrictions.every(isForUs)) refuse('the assertion is for another audience');
  const [statement] = childrenOf(assertion, 'AuthnStatement');
  if (!statement) refuse('the assertion has no AuthnStatement');
  const sessionEnd = attribute(statement, 'SessionNotOnOrAfter');
  if (sessionEnd !== undefined && timeOf(sessionEnd) + SKEW_MS <= now) refuse('the assertion has expired');
  if (requestId === null && expiresAt.getTime() - now > 3_600_000 + SKEW_MS)
    refuse('the assertion is valid for longer than an hour, although nobody asked for it');
  const identity = identityOf(assertion, subject, statement, expected.groupAttribute);
  return { identity, assertionId, expiresAt: new Date(expiresAt.getTime() + SKEW_MS) };
}

/** The end of the confirmation that is for this service and this request. */
function confirmedUntil(
  confirmations: readonly XmlElement[],
  { acsUrl, requestId, now }: { acsUrl: string; requestId: string | null; now: number },
): Date {
  let reason = 'the assertion has no valid subject confirmation';
  for (const confirmation of confirmations) {
    if (attribute(confirmation, 'Method') !== BEARER) continue;
    const data = only(confirmation, 'SubjectConfirmationData');
    const end = attribute(data, 'NotOnOrAfter');
    if (attribute(data, 'Recipient') !== acsUrl) reason = 'the assertion is for another recipient';
    else if ((attribute(data, 'InResponseTo') ?? null) !== requestId)
      reason = 'the assertion answers another request, or none';
    else if (end === undefined) reason = 'the assertion never expires';
    else {
      checkTimes(data, now);
      return new Date(timeOf(end));
    }
  }
  return refuse(reason);
}

function checkTimes(element: XmlElement | undefined, now: number): void {
  const from = attribute(element, 'NotBefore');
  const end = attribute(element, 'NotOnOrAfter');
  if (from !== undefined && timeOf(from) - SKEW_MS > now) refuse('the assertion is not valid yet');
  if (end !== undefined && timeOf(end) + SKEW_MS <= now) refuse('the assertion has expired');
}

function timeOf(text: string): number {
  return timestampOf(text) ?? refuse('the assertion has an invalid time');
}

const NAMES = {
  email: [
    'email',
    'mail',
    'emailAddress',
    'urn:oid:0.9.2342.19200300.100.1.3',
    'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  ],
  fullName: [
    'displayName',
    'name',
    'cn',
    'urn:oid:2.16.840.1.113730.3.1.241',
    'http://schemas.microsoft.com/identity/claims/displayname',
    'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
  ],
  username: ['username', 'uid', 'urn:oid:0.9.2342.19200300.100.1.1'],
  locale: ['locale', 'preferredLanguage', 'urn:oid:2.16.840.1.113730.3.1.39'],
} as const;

function identityOf(
  assertion: XmlElement,
  subject: XmlElement | undefined,
  statement: XmlElement | undefined,
  groupAttribute: string,
): VerifiedIdentity {
  const nameId = only(subject, 'NameID');
  const name = nameId?._?.trim() ?? '';
  const nameIdFormat = textClaim(attribute(nameId, 'Format'));
  if (name === '' || name.length > 255 || isUnstorable(name)) refuse('the assertion has no usable NameID');
  if (nameIdFormat === TRANSIENT) refuse('the assertion has a transient NameID, which differs at each sign-in');
  const values = attributesOf(assertion);
  const first = (names: readonly string[]) =>
    names.map((key) => values.get(key)?.find((value) => value.trim() !== '')).find((value) => value !== undefined);
  const username = textClaim(first(NAMES.username));
  const fullName = textClaim(first(NAMES.fullName));
  const locale = textClaim(first(NAMES.locale), 35);
  const sessionIndex = textClaim(attribute(statement, 'SessionIndex'));
  return {
    subject: name,
    email: emailClaim(first(NAMES.email)) ?? (nameIdFormat === EMAIL_FORMAT ? emailClaim(name) : null),
    // SAML has no word for it
    emailVerified: false,
    ...(username === undefined ? {} : { username }),
    ...(fullName === undefined ? {} : { fullName }),
    ...(locale === undefined ? {} : { locale }),
    groups: groupsOf(values.get(groupAttribute) ?? []),
    claims: boundedClaims({ name_id: name, name_id_format: nameIdFormat ?? null, ...Object.fromEntries(values) }),
    ...(sessionIndex === undefined ? {} : { sessionIndex }),
    ...(nameIdFormat === undefined ? {} : { nameIdFormat }),
  };
}

/** The values of each attribute, by its name and by its friendly name. */
function attributesOf(assertion: XmlElement): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const one of childrenOf(assertion, 'AttributeStatement').flatMap((from) => childrenOf(from, 'Attribute'))) {
    const texts = childrenOf(one, 'AttributeValue').flatMap(({ _: text }) => (text === undefined ? [] : [text]));
    for (const name of new Set([attribute(one, 'Name'), attribute(one, 'FriendlyName')]))
      if (name !== undefined && name !== '') values.set(name, [...(values.get(name) ?? []), ...texts]);
  }
  return values;
}
