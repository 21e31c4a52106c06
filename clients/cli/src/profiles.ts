import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { GrantTokens, SessionTokens } from 'platform-management-client';
import { Keyring, KeyringError } from './keyring.ts';

/** How somebody is signed in: one of them. */
export interface SignIn {
  /** An API token or an app token. */
  token?: string;
  /** The session of a user. */
  session?: SessionTokens & { expires_at: number };
  /** What a user granted to an application. */
  grant?: GrantTokens & { expires_at: number; client_id: string };
}

/** A service, and where somebody works there. */
export interface Profile extends SignIn {
  url: string;
  /** Whether the keyring has the sign-in; `false` if it is to stay in the file. */
  keyring?: boolean;
  org?: string | undefined;
  workspace?: string | undefined;
  namespace?: string | undefined;
}

interface Stored {
  current: string;
  profiles: Record<string, Profile>;
}

const EMPTY: Stored = { current: 'default', profiles: {} };

/** Where a sign-in was put; `reason` says why it is not in the keyring. */
export interface Kept {
  kept: 'keyring' | 'file';
  reason?: string;
}

const signInOf = ({ token, session, grant }: SignIn): SignIn => ({
  ...(token && { token }),
  ...(session && { session }),
  ...(grant && { grant }),
});

/** What an entry of the keyring holds. @throws KeyringError, whose message shows nothing of it: it holds tokens */
function entryIn(text: string): Profile {
  try {
    const entry: unknown = JSON.parse(text);
    if (typeof entry === 'object' && entry !== null) return entry as Profile;
  } catch {
    // the message of the parser shows the beginning of the text
  }
  throw new KeyringError('The entry in the keyring is damaged. Sign in again: platform login');
}

const withoutSignIn = ({ token: _token, session: _session, grant: _grant, ...place }: Profile): Profile => place;

/** The profiles: in a file that only its owner may read, with the sign-ins in the keyring where there is one. */
export class Profiles {
  readonly file: string;
  readonly #keyring: Keyring;
  readonly #usesKeyring: boolean;

  constructor(env: NodeJS.ProcessEnv) {
    const home = env.XDG_CONFIG_HOME || path.join(env.HOME || env.USERPROFILE || homedir(), '.config');
    this.file = path.join(home, 'platform', 'profiles.json');
    this.#keyring = new Keyring(env);
    this.#usesKeyring = !env.PLATFORM_NO_KEYRING;
  }

  /** The name of the profile that commands use by default. */
  get current(): string {
    return this.#read().current;
  }

  /** A profile as the file has it. */
  get(name: string): Profile | undefined {
    return this.#read().profiles[name];
  }

  /** How somebody is signed in at a profile, wherever that is kept. @throws KeyringError */
  signIn(name: string): SignIn {
    const profile = this.get(name);
    if (!profile?.keyring) return profile ? signInOf(profile) : {};
    const text = this.#readKeyring(name);
    if (text === null) return {};
    const entry = entryIn(text);
    // tokens never go to another service, whatever the file says now
    return entry.url === profile.url ? signInOf(entry) : {};
  }

  /** Stores a profile and makes it the current one. */
  set(name: string, profile: Profile, wantsKeyring: boolean): Kept {
    const wasInKeyring = this.get(name)?.keyring ?? false;
    const { kept, next } = this.#placed(name, profile, wantsKeyring && this.#usesKeyring);
    this.#write({ current: name, profiles: { ...this.#read().profiles, [name]: next } });
    if (wasInKeyring && !next.keyring) this.#keyring.remove(this.#entryOf(name));
    return kept;
  }

  /** Forgets a profile. @throws KeyringError if the keyring still has its sign-in */
  forget(name: string): void {
    const stored = this.#read();
    const { [name]: before, ...profiles } = stored.profiles;
    this.#write({ current: Object.keys(profiles)[0] ?? EMPTY.current, profiles });
    if (before?.keyring) this.#keyring.remove(this.#entryOf(name));
  }

  /** Changes where somebody works, and not which profile is current. */
  update(name: string, place: Pick<Profile, 'org' | 'workspace' | 'namespace'>): void {
    const before = this.get(name);
    if (before) this.#replace(name, { ...before, ...place });
  }

  /** Keeps new tokens where the old ones were. Those are worth nothing any more: a keyring that fails loses none. */
  renew(name: string, signIn: SignIn): Kept | null {
    const before = this.get(name);
    if (!before) return null;
    const { kept, next } = this.#placed(name, { ...withoutSignIn(before), ...signIn }, before.keyring ?? false);
    this.#replace(name, next);
    return kept;
  }

  /** Moves a sign-in that an older version put into the file, once. @returns whether it is in the keyring now */
  move(name: string): boolean {
    const before = this.get(name);
    if (!before || before.keyring !== undefined || !this.#usesKeyring) return false;
    const { next } = this.#placed(name, before, true);
    this.#replace(name, next);
    return next.keyring ?? false;
  }

  /** Puts a sign-in into the keyring, if that is wanted and works. @returns what the file gets */
  #placed(name: string, profile: Profile, inKeyring: boolean): { kept: Kept; next: Profile } {
    const here: Profile = { ...profile, keyring: false };
    if (!inKeyring) return { kept: { kept: 'file' }, next: here };
    try {
      const entry = JSON.stringify({ url: profile.url, ...signInOf(profile) });
      this.#keyring.set(this.#entryOf(name), `platform: profile ${name} at ${profile.url}`, entry);
      return { kept: { kept: 'keyring' }, next: { ...withoutSignIn(profile), keyring: true } };
    } catch (error) {
      if (!(error instanceof KeyringError)) throw error;
      return { kept: { kept: 'file', reason: error.message }, next: here };
    }
  }

  #readKeyring(name: string): string | null {
    try {
      return this.#keyring.get(this.#entryOf(name));
    } catch (error) {
      if (!(error instanceof KeyringError)) throw error;
      const remedy = 'Unlock it, or sign in again: platform login';
      throw new KeyringError(`The keyring with the sign-in cannot be read: ${error.message}. ${remedy}`);
    }
  }

  /** Several files of profiles have entries of their own. */
  #entryOf(name: string): string {
    return createHash('sha256').update(`${this.file}\0${name}`).digest('hex').slice(0, 32);
  }

  #replace(name: string, profile: Profile): void {
    const stored = this.#read();
    this.#write({ ...stored, profiles: { ...stored.profiles, [name]: profile } });
  }

  #read(): Stored {
    let text: string;
    try {
      text = readFileSync(this.file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return EMPTY;
      throw error;
    }
    try {
      return JSON.parse(text) as Stored;
    } catch {
      // the message of the parser shows a piece of the file, and it holds tokens
      throw new Error(`${this.file} is not valid JSON. Mend it, or remove it and sign in again.`);
    }
  }

  // renamed when it is whole: another command may read it at the same time
  #write(stored: Stored): void {
    mkdirSync(path.dirname(this.file), { recursive: true, mode: 0o700 });
    const next = `${this.file}.${process.pid}`;
    writeFileSync(next, `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600 });
    renameSync(next, this.file);
  }
}
