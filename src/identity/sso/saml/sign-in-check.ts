import { SsoRefusal } from '../sso-refusal.ts';
import { type AcceptedAssertion, acceptAssertion } from './assertion.ts';
import { decrypted } from './decryption.ts';
import { checkForm } from './message-form.ts';
import { checkDecrypted, checkResponse, checkSignatures } from './message-rules.ts';
import { decoded } from './message-text.ts';
import { type OutlineElement, outlineOf } from './outline.ts';
import { type ServiceAddresses, samlLibrary } from './saml-library.ts';
import type { SamlProvider } from './saml-provider.ts';

/** A response, and what it has to be. */
export interface SignInResponse {
  provider: SamlProvider;
  /** Base64, as it was posted. */
  message: string;
  /** The request that it must answer; `null` for a response that nobody asked for. */
  requestId: string | null;
  addresses: ServiceAddresses;
  /** Of the service (PEM). */
  privateKey: string;
  now: number;
}

/** Verifies a response to a sign-in. @throws SsoRefusal for everything that is not as it must be */
export async function checkSignIn(response: SignInResponse): Promise<AcceptedAssertion> {
  const { provider, message, requestId, addresses, privateKey, now } = response;
  const { acsUrl, entityId: audience } = addresses;
  const { entityId: issuer, groupAttribute } = provider;
  const xml = decoded(message);
  const { isSigned, isEncrypted } = checkResponse(outlineOf(xml), { acsUrl, requestId, issuer });
  await checkForm(xml);
  if (isEncrypted) {
    const assertion = await decrypted(xml, 'assertion', privateKey);
    checkDecrypted(outlineOf(assertion));
    await checkForm(assertion);
  }
  const saml = samlLibrary(provider, { addresses, requestId, now, privateKey, isResponseSigned: isSigned });
  const SAMLResponse = Buffer.from(xml).toString('base64');
  const { profile } = await saml.validatePostResponseAsync({ SAMLResponse }).catch((error: unknown) => {
    throw refusalOf(error);
  });
  return acceptAssertion(profile?.getAssertion?.(), { issuer, acsUrl, audience, requestId, groupAttribute, now });
}

/**
 * The provider that an unsolicited response is meant to come through, by its audience: nothing of it is proven yet.
 * @param prefix what the names of the service towards its providers begin with
 * @returns `null` if the response names none
 * @throws SsoRefusal for a message that cannot be read
 */
export async function recipientOf({
  message,
  prefix,
  privateKey,
}: {
  message: string;
  prefix: string;
  privateKey: string;
}): Promise<string | null> {
  const xml = decoded(message);
  const elements = outlineOf(xml);
  if (elements.some(({ name }) => name === 'EncryptedAssertion')) {
    checkSignatures(elements, ['Response', 'Assertion']);
    await checkForm(xml);
    return audienceIn(outlineOf(await decrypted(xml, 'assertion', privateKey)), prefix);
  }
  return audienceIn(elements, prefix);
}

function audienceIn(elements: readonly OutlineElement[], prefix: string): string | null {
  const audience = elements.find(({ name, text }) => name === 'Audience' && text.startsWith(prefix));
  return audience?.text.slice(prefix.length) ?? null;
}

/** The errors of the library may quote the message, so only their kind is kept. */
function refusalOf(error: unknown): SsoRefusal {
  if (error instanceof SsoRefusal) return error;
  const text = error instanceof Error ? error.message : '';
  return new SsoRefusal(
    REASONS.find(([pattern]) => pattern.test(text))?.[1] ?? 'the message is not a valid SAML response',
  );
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/signature|signed|digest|transforms/i, 'the signature is not from the identity provider'],
  [/InResponseTo/, 'the assertion answers another request, or none'],
  [/confirmation|expired|not yet valid/i, 'the assertion has expired, or is not valid yet'],
  [/audience/i, 'the assertion is for another audience'],
];
