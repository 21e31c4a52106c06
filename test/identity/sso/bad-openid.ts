import { createPublicKey } from 'node:crypto';
import { base64url, SignJWT, UnsecuredJWT } from 'jose';
import { type Misconduct, newKey, type OpenIdServer } from './openid-server.ts';

type BadAnswer = [name: string, misconduct: Misconduct, reason: RegExp];

/**
 * What a provider may do wrong in a sign-in, each with the reason in the log.
 * @param server whose keys are misused
 */
export async function badOpenIdAnswers(server: () => OpenIdServer): Promise<BadAnswer[]> {
  const stranger = await newKey('first');
  const inFuture = () => Math.floor(Date.now() / 1_000) + 3_600;
  const withoutSignature = (claims: Record<string, unknown>) => new UnsecuredJWT(claims).encode();
  const signedByPublicKey = (claims: Record<string, unknown>) => {
    const pem = createPublicKey({ key: server().keys[0]!.publicJwk as never, format: 'jwk' });
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'first' })
      .sign(Buffer.from(pem.export({ type: 'spki', format: 'pem' })));
  };
  const changed = (_claims: unknown, signed: string): string => {
    const [head, body, signature] = signed.split('.') as [string, string, string];
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
    return [head, base64url.encode(JSON.stringify({ ...claims, sub: 'somebody-else' })), signature].join('.');
  };

  const withCritical = (claims: Record<string, unknown>) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: 'first', crit: ['x'], x: 1 })
      .sign(server().keys[0]!.privateKey, { crit: { x: true } });

  return [
    ['wrong issuer', { claims: { iss: 'https://evil.test' } }, /from another issuer/],
    ['no issuer', { claims: { iss: undefined } }, /from another issuer/],
    ['wrong nonce', { claims: { nonce: 'another' } }, /another nonce/],
    ['no nonce', { claims: { nonce: undefined } }, /another nonce/],
    ['other audience', { claims: { aud: 'another-client' } }, /for another audience/],
    ['no audience', { claims: { aud: undefined } }, /for another audience/],
    ['several audiences without azp', { claims: { aud: ['the-client', 'x'] } }, /another client/],
    ['azp of another client', { claims: { azp: 'x' } }, /another client/],
    ['expired', { claims: { exp: Math.floor(Date.now() / 1_000) - 120 } }, /expired/],
    ['no expiry', { claims: { exp: undefined } }, /expired/],
    ['not valid yet', { claims: { nbf: inFuture() } }, /not valid yet/],
    ['issued in the future', { claims: { iat: inFuture() } }, /issued in the future/],
    ['no time of issue', { claims: { iat: undefined } }, /when it was issued/],
    ['no subject', { claims: { sub: undefined } }, /no usable subject/],
    ['a number as subject', { claims: { sub: 7 } }, /no usable subject/],
    ['an empty subject', { claims: { sub: '' }, userInfo: { body: { sub: '' } } }, /no usable subject/],
    ['a subject that is too long', { claims: { sub: 'x'.repeat(256) } }, /no usable subject/],
    ['wrong at_hash', { claims: { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' } }, /another access token/],
    ['no signature', { idToken: withoutSignature }, /algorithm/],
    ['HS256 with the public key', { idToken: signedByPublicKey }, /algorithm/],
    ['changed after signing', { idToken: changed }, /signature .* is wrong/],
    ['signature left out', { idToken: (_claims, signed) => signed.replace(/\.[^.]*$/, '.') }, /signature|not a signed/],
    ["somebody else's key under the same id", { key: stranger }, /signature .* is wrong/],
    ['an unknown key', { key: { ...stranger, kid: 'unknown' } }, /does not publish/],
    ['algorithm that the provider does not list', { key: await newKey('first', 'RS512') }, /algorithm/],
    ['unknown critical header', { idToken: withCritical }, /not a signed JWT/],
    ['an ID token that is none', { idToken: () => 'nonsense' }, /not a signed JWT/],
    ['an encrypted ID token', { idToken: () => 'a.b.c.d.e' }, /not a signed JWT/],
    ['no ID token', { idToken: () => undefined }, /no ID token/],
    ['no access token', { answer: { access_token: undefined } }, /token endpoint is not valid/],
    ['a code that is not accepted', { back: { code: 'made-up' } }, /does not accept the code/],
    ['tokens refused', { refusal: { status: 401, body: { error: 'invalid_client' } } }, /refused the request/],
    ['an answer that is no JSON object', { refusal: { status: 200, body: ['x'] } }, /token endpoint is not valid/],
    ['a server error', { refusal: { status: 500, body: 'oh' } }, /token endpoint is not valid/],
    ['wrong iss parameter', { back: { iss: 'https://evil.test' } }, /another issuer/],
    ['another state', { back: { state: 'another' } }, /another state/],
    ['user info of another subject', { userInfo: { body: { sub: 'somebody-else' } } }, /another subject/],
    ['user info without subject', { userInfo: { body: { email: 'x@y.test' } } }, /another subject/],
    ['user info refused', { userInfo: { status: 403, body: {} } }, /user info endpoint is not valid/],
  ];
}
