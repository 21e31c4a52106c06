import type { LinkKeys } from './link-keys.ts';

/** What a link allows: the download of one version of an artifact, in the name of who asked for the link. */
export interface DownloadClaims {
  artifactId: string;
  version: number;
  orgId: string;
  /** Who asked for the link. */
  userId: string;
  /** The token with which the user asked; `null` for a user who has signed in. */
  tokenId: string | null;
  /** Seconds since 1970. */
  expires: number;
}

const PATH = '/files/artifacts';
const DISPOSITION = 'attachment';
const NAMES = ['version', 'org', 'by', 'via', 'expires', 'disposition', 'key', 'signature'] as const;

/** Makes and reads the links of downloads. A link is its own permission, so every part of it is signed. */
export class DownloadLinks {
  /** For the router. */
  static readonly route = `${PATH}/:artifactId`;
  readonly #keys: LinkKeys;
  readonly #publicUrl: () => string;

  /** @param publicUrl the address at which clients reach the service */
  constructor(deps: { keys: LinkKeys; publicUrl: () => string }) {
    this.#keys = deps.keys;
    this.#publicUrl = deps.publicUrl;
  }

  /** An absolute address. */
  of(claims: DownloadClaims): string {
    const { artifactId, version, orgId, userId, tokenId, expires } = claims;
    const { keyId, signature } = this.#keys.sign(textOf(claims, DISPOSITION));
    const query = new URLSearchParams({
      version: String(version),
      org: orgId,
      by: userId,
      via: tokenId ?? '',
      expires: String(expires),
      disposition: DISPOSITION,
      key: keyId,
      signature,
    });
    return `${this.#publicUrl()}${PATH}/${encodeURIComponent(artifactId)}?${query.toString()}`;
  }

  /**
   * What a link allows; `null` if it is altered, incomplete or expired, or has anything twice or beyond its own.
   * @param now milliseconds since 1970
   */
  read(artifactId: string, query: Readonly<Record<string, unknown>>, now = Date.now()): DownloadClaims | null {
    const given = Object.entries(query);
    if (given.length !== NAMES.length || !given.every(([name, value]) => isName(name) && typeof value === 'string'))
      return null;
    const text = query as Readonly<Record<(typeof NAMES)[number], string>>;
    const claims: DownloadClaims = {
      artifactId,
      version: Number(text.version),
      orgId: text.org,
      userId: text.by,
      tokenId: text.via === '' ? null : text.via,
      expires: Number(text.expires),
    };
    // other spellings of a number would be other links
    if (String(claims.version) !== text.version || String(claims.expires) !== text.expires) return null;
    if (!this.#keys.verify(text.key, textOf(claims, text.disposition), text.signature)) return null;
    return now < claims.expires * 1_000 ? claims : null;
  }
}

const isName = (name: string): boolean => (NAMES as readonly string[]).includes(name);

/** JSON keeps the parts apart. A link for reading is none for anything else. */
const textOf = (claims: DownloadClaims, disposition: string): string => {
  const { artifactId, version, orgId, userId, tokenId, expires } = claims;
  return JSON.stringify(['GET', artifactId, version, orgId, userId, tokenId, expires, disposition]);
};
