// Asks authenticators for passkeys, in the JSON form that the service speaks.

/** @param {string} text */
const bytesOf = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));

/** @param {ArrayBuffer | null | undefined} bytes */
function textOf(bytes) {
  if (!bytes) return null;
  const text = [...new Uint8Array(bytes)].map((byte) => String.fromCharCode(byte)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @typedef {{ id: string, type: 'public-key', transports?: AuthenticatorTransport[] }} Listed */
/**
 * @typedef {{ challenge: string, rpId?: string, timeout?: number, userVerification?: UserVerificationRequirement,
 *   allowCredentials?: Listed[] }} RequestOptions
 */
/**
 * @typedef {Omit<PublicKeyCredentialCreationOptions, 'challenge' | 'user' | 'excludeCredentials'> & {
 *   challenge: string, user: { id: string, name: string, displayName: string }, excludeCredentials?: Listed[] }}
 *   CreationOptions
 */

/** Whether this browser knows passkeys. */
export const knowsPasskeys = 'PublicKeyCredential' in window;

/** @param {Listed[]} [listed] @returns {PublicKeyCredentialDescriptor[]} */
const descriptors = (listed = []) => listed.map((one) => ({ ...one, id: bytesOf(one.id) }));

/** @param {unknown} error @returns {never} */
function explain(error) {
  const isRefused = error instanceof DOMException && error.name === 'NotAllowedError';
  const isKnown = error instanceof DOMException && error.name === 'InvalidStateError';
  if (isKnown) throw new Error('This device has a passkey of your account already.');
  throw isRefused ? new Error('No passkey was used.') : error;
}

/**
 * @param {PublicKeyCredential | null} credential
 * @param {Record<string, unknown>} response
 */
function asJson(credential, response) {
  if (!credential) throw new Error('No passkey was used.');
  const { id, type } = credential;
  return { id, rawId: id, type, clientExtensionResults: credential.getClientExtensionResults(), response };
}

/** Has a passkey answer. @param {RequestOptions} options @returns {Promise<object>} */
export async function usePasskey({ challenge, allowCredentials, ...options }) {
  const publicKey = { ...options, challenge: bytesOf(challenge), allowCredentials: descriptors(allowCredentials) };
  const found = await navigator.credentials.get({ publicKey }).catch(explain);
  const credential = /** @type {PublicKeyCredential | null} */ (found);
  const response = /** @type {AuthenticatorAssertionResponse | undefined} */ (credential?.response);
  const userHandle = textOf(response?.userHandle);
  return asJson(credential, {
    clientDataJSON: textOf(response?.clientDataJSON),
    authenticatorData: textOf(response?.authenticatorData),
    signature: textOf(response?.signature),
    ...(userHandle === null ? {} : { userHandle }),
  });
}

/** Makes a passkey. @param {CreationOptions} options @returns {Promise<object>} */
export async function makePasskey({ challenge, user, excludeCredentials, ...options }) {
  const publicKey = {
    ...options,
    challenge: bytesOf(challenge),
    user: { ...user, id: bytesOf(user.id) },
    excludeCredentials: descriptors(excludeCredentials),
  };
  const made = await navigator.credentials.create({ publicKey }).catch(explain);
  const credential = /** @type {PublicKeyCredential | null} */ (made);
  const response = /** @type {AuthenticatorAttestationResponse | undefined} */ (credential?.response);
  return asJson(credential, {
    clientDataJSON: textOf(response?.clientDataJSON),
    attestationObject: textOf(response?.attestationObject),
    transports: response?.getTransports?.() ?? [],
  });
}
