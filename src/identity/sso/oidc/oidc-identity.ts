import { boundedClaims, emailClaim, groupsOf, textClaim } from '../bounded-claims.ts';
import type { VerifiedIdentity } from '../verified-identity.ts';

type Claims = Readonly<Record<string, unknown>>;

/**
 * The identity in the claims of a verified ID token and of the user info endpoint; the token wins. An address counts as
 * verified only with the word of the same source.
 */
export function identityOf(
  idToken: Claims & { sub: string },
  userInfo: Claims,
  groupAttribute: string,
): VerifiedIdentity {
  const claims = { ...userInfo, ...idToken };
  const source = emailClaim(idToken.email) === null ? userInfo : idToken;
  const email = emailClaim(source.email);
  const username = textClaim(claims.preferred_username);
  const fullName = textClaim(claims.name);
  const avatarUrl = pictureOf(claims.picture);
  const locale = textClaim(claims.locale, 35);
  return {
    subject: idToken.sub,
    email,
    // some providers write the boolean as a text
    emailVerified: email !== null && (source.email_verified === true || source.email_verified === 'true'),
    ...(username === undefined ? {} : { username }),
    ...(fullName === undefined ? {} : { fullName }),
    ...(avatarUrl === undefined ? {} : { avatarUrl }),
    ...(locale === undefined ? {} : { locale }),
    groups: groupsOf(claims[groupAttribute]),
    claims: boundedClaims(claims),
  };
}

function pictureOf(value: unknown): string | undefined {
  const url = textClaim(value, 2_048);
  return url !== undefined && URL.canParse(url) && new URL(url).protocol === 'https:' ? url : undefined;
}
