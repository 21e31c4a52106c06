import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { GrantTokens, SessionTokens } from 'platform-management-client';

/** How somebody is signed in at a service, and where they work. */
export interface Profile {
  url: string;
  /** An API token or an app token. */
  token?: string;
  /** The session of a user. */
  session?: SessionTokens & { expires_at: number };
  /** What a user granted to an application. */
  grant?: GrantTokens & { expires_at: number; client_id: string };
  org?: string | undefined;
  workspace?: string | undefined;
  namespace?: string | undefined;
}

interface Stored {
  current: string;
  profiles: Record<string, Profile>;
}

const EMPTY: Stored = { current: 'default', profiles: {} };

/** The file with the profiles, which only its owner may read: it holds tokens. */
export class Profiles {
  readonly file: string;

  constructor(env: NodeJS.ProcessEnv) {
    const home = env.XDG_CONFIG_HOME || path.join(env.HOME || env.USERPROFILE || homedir(), '.config');
    this.file = path.join(home, 'platform', 'profiles.json');
  }

  /** The name of the profile that commands use by default. */
  get current(): string {
    return this.#read().current;
  }

  get(name: string): Profile | undefined {
    return this.#read().profiles[name];
  }

  /** Stores a profile and makes it the current one; `null` forgets it. */
  set(name: string, profile: Profile | null): void {
    const stored = this.#read();
    const { [name]: _before, ...others } = stored.profiles;
    const profiles = profile ? { ...others, [name]: profile } : others;
    const current = profile ? name : (Object.keys(others)[0] ?? EMPTY.current);
    this.#write({ current, profiles });
  }

  /** Changes a stored profile, and not which one is current. */
  update(name: string, change: Partial<Profile>): void {
    const stored = this.#read();
    const before = stored.profiles[name];
    if (before) this.#write({ ...stored, profiles: { ...stored.profiles, [name]: { ...before, ...change } } });
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
