import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, type JWK } from 'jose';
import { lockFolder } from '../platform/folder-lock.ts';
import { keyFile } from '../platform/keys/keys.ts';
import { replaceFile } from '../platform/whole-file.ts';

/** A private signing key as stored. */
interface StoredKey {
  jwk: JWK;
  /** When it was made; not known of keys that earlier versions made. */
  createdAt?: string;
  /** When a newer key replaced it. It still verifies until the tokens that it signed have expired. */
  retiredAt?: string;
}

interface LoadedKey {
  kid: string;
  privateKey: CryptoKey;
  publicKey: CryptoKey;
  publicJwk: JWK;
  createdAt: Date | null;
  retiredAt: Date | null;
}

/** What may be shown of a signing key. */
export interface SigningKeyFacts {
  /** Its `kid`, as in `/.well-known/jwks.json`. */
  id: string;
  /** `null` for keys that earlier versions made. */
  createdAt: Date | null;
  /** `null` for the key that signs. */
  retiredAt: Date | null;
}

/**
 * How long retired keys are kept; the next rotation removes older ones. `ACCESS_TOKEN_TTL_SECONDS` is at most a day.
 */
const FORGET_AFTER_MS = 25 * 3600 * 1000;
/** How soon a node that meets only known keys notices a rotation. */
const REFRESH_MS = 5_000;

/**
 * The keys that sign access tokens, in `KEYS_DIR/jwt.json` (mode 0600). The first one signs, all verify. Rotation adds
 * a new key in front. A running service notices it, and reads the file again when a token is signed by an unknown key:
 * nobody is logged out.
 */
export class SigningKeys {
  readonly #file: string;
  #keys: LoadedKey[] = [];
  #version = '';
  #lookedAt = 0;
  #loading: Promise<void> | null = null;

  private constructor(file: string) {
    this.#file = file;
  }

  /** Whether the folder has keys. */
  static exist(keysDir: string): boolean {
    return existsSync(path.join(keysDir, 'jwt.json'));
  }

  /** Opens the keys of the folder. Creates the first key on the first start. */
  static async open(keysDir: string): Promise<SigningKeys> {
    const keys = new SigningKeys(path.join(keysDir, 'jwt.json'));
    if (!existsSync(keys.#file)) {
      const first = JSON.stringify([await newKey()]);
      keyFile(keys.#file, () => first);
    }
    await keys.#load();
    return keys;
  }

  /**
   * Adds a new key in front and removes keys that no live token needs.
   * @returns its id
   * @throws FolderInUseError while another process rotates
   */
  static async rotate(keysDir: string, now = new Date()): Promise<string> {
    await SigningKeys.open(keysDir);
    const file = path.join(keysDir, 'jwt.json');
    const lock = await lockFolder(`${file}.lock`);
    try {
      const kept = read(file)
        .map((key) => ({ ...key, retiredAt: key.retiredAt ?? now.toISOString() }))
        .filter((key) => now.getTime() - Date.parse(key.retiredAt) < FORGET_AFTER_MS);
      const fresh = await newKey(now);
      replaceFile(file, JSON.stringify([fresh, ...kept]));
      return String(fresh.jwk.kid);
    } finally {
      lock.release();
    }
  }

  /** The current signing key. */
  async current(): Promise<{ kid: string; privateKey: CryptoKey }> {
    await this.#refresh(REFRESH_MS);
    return this.#keys[0]!;
  }

  /** What tells these keys from others, of the current one first. They are public keys: it reveals nothing. */
  fingerprints(): string[] {
    return this.#keys.map(({ publicJwk: { kid, x } }) => createHash('sha256').update(`${kid} ${x}`).digest('hex'));
  }

  /** The same after a look at the file. */
  async freshFingerprints(): Promise<string[]> {
    await this.#refresh(0);
    return this.fingerprints();
  }

  /** The public key with this id; `null` when there is none. At once, unless the file has to be looked at. */
  verifying(kid: string): CryptoKey | null | Promise<CryptoKey | null> {
    const isFresh = !this.#loading && Date.now() - this.#lookedAt < REFRESH_MS;
    return (isFresh ? this.#publicKey(kid) : null) ?? this.#verifyingAnew(kid);
  }

  async #verifyingAnew(kid: string): Promise<CryptoKey | null> {
    await this.#refresh(REFRESH_MS);
    const known = this.#publicKey(kid);
    if (known) return known;
    // perhaps another node rotated a moment ago; a made-up id costs only a look at the date of the file
    await this.#refresh(0);
    return this.#publicKey(kid);
  }

  #publicKey(kid: string): CryptoKey | null {
    return this.#keys.find((key) => key.kid === kid)?.publicKey ?? null;
  }

  /** The content of `/.well-known/jwks.json`. */
  async jwks(): Promise<JSONWebKeySet> {
    await this.#refresh(REFRESH_MS);
    return { keys: this.#keys.map((key) => key.publicJwk) };
  }

  /** Which keys verify, the one that signs first. Nothing secret. */
  async list(): Promise<SigningKeyFacts[]> {
    await this.#refresh(REFRESH_MS);
    return this.#keys.map(({ kid, createdAt, retiredAt }) => ({ id: kid, createdAt, retiredAt }));
  }

  async #refresh(olderThanMs: number): Promise<void> {
    if (!this.#loading) {
      const now = Date.now();
      if (now - this.#lookedAt < olderThanMs) return;
      this.#lookedAt = now;
      if (versionOf(this.#file) === this.#version) return;
      this.#loading = this.#load().finally(() => {
        this.#loading = null;
      });
    }
    // callers that arrive while the new keys are read wait for them: their token may be signed by one of them
    await this.#loading;
  }

  async #load(): Promise<void> {
    const version = versionOf(this.#file);
    const stored = read(this.#file);
    try {
      this.#keys = await Promise.all(stored.map(loadKey));
    } catch {
      throw unusable(this.#file, 'it has an entry that is not an Ed25519 key with an id');
    }
    this.#version = version;
  }
}

/** Changes whenever the file is replaced. */
function versionOf(file: string): string {
  const { ino, mtimeMs, size } = statSync(file);
  return `${ino} ${mtimeMs} ${size}`;
}

function read(file: string): StoredKey[] {
  const keys = parse(file);
  const isList = Array.isArray(keys) && keys.every((key) => typeof key?.jwk?.kid === 'string');
  if (!isList || keys.length === 0) throw unusable(file, 'it is not a list of keys');
  return keys;
}

function parse(file: string): StoredKey[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as StoredKey[];
  } catch (error) {
    if (error instanceof SyntaxError) throw unusable(file, 'it is not JSON and may be truncated');
    throw error;
  }
}

/** Reveals nothing of the content of the file: the parser's own message quotes it, and it is secret. */
const unusable = (file: string, why: string) =>
  new Error(
    `The signing keys in '${file}' cannot be used: ${why}. Restore the file from a backup, or remove it. ` +
      'The service then creates new keys, and all users have to sign in again.',
  );

async function newKey(now = new Date()): Promise<StoredKey> {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'EdDSA', use: 'sig' };
  return { jwk, createdAt: now.toISOString() };
}

const timeOf = (text: string | undefined): Date | null =>
  text === undefined || Number.isNaN(Date.parse(text)) ? null : new Date(text);

async function loadKey({ jwk, createdAt, retiredAt }: StoredKey): Promise<LoadedKey> {
  const { d: _private, ...publicJwk } = jwk;
  const [privateKey, publicKey] = await Promise.all([importJWK(jwk, 'EdDSA'), importJWK(publicJwk, 'EdDSA')]);
  if (privateKey instanceof Uint8Array || publicKey instanceof Uint8Array || !jwk.kid)
    throw new Error('A signing key is not an Ed25519 key with an id.');
  return {
    kid: jwk.kid,
    privateKey,
    publicKey,
    publicJwk,
    createdAt: timeOf(createdAt),
    retiredAt: timeOf(retiredAt),
  };
}
