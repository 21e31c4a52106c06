import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config.ts';
import { newId } from '../../kernel/ids.ts';
import type { NamedKey } from '../../setting.ts';
import type { Database } from '../postgres/database.ts';
import { open, seal } from './aead.ts';
import { keyFile } from './keys.ts';

const FILE = /^root-([A-Za-z0-9_-]{1,64})\.key$/;
const KEY_TEXT = /^[A-Za-z0-9_-]{43}\n?$/;

/** The plaintext of a canary. Its context names the key that it was sealed with. */
const CANARY = Buffer.from('this root key is the right one');
const contextOf = (id: string) => `canary|${id}`;

const CANARIES = 'select id, canary from root_keys order by id';
const OPENING_LOCK = 7_206_002;

/** Runs a statement within the caller's transaction. */
type Ask = <R extends object>(text: string, values: unknown[]) => Promise<R[]>;

interface CanaryRow {
  id: string;
  canary: Uint8Array;
}

/** Creates a key file. @returns its id; ids rise, so the newest key wraps */
export function makeRootKeyFile(keysDir: string): string {
  const id = newId('root_key');
  keyFile(path.join(keysDir, `root-${id}.key`), () => `${randomBytes(32).toString('base64url')}\n`);
  return id;
}

/**
 * The keys that wrap the data keys of the vault: those of `ROOT_KEYS`, else the files `KEYS_DIR/root-<id>.key`. The
 * first of the list or the newest file wraps, all unwrap. Files that are added while the service runs are picked up.
 */
export class RootKeys {
  readonly #dir: string;
  readonly #given: readonly NamedKey[] | undefined;
  #keys: readonly NamedKey[] = [];
  readonly #right = new Map<string, Uint8Array>();
  #version = '';

  private constructor({ rootKeys, keysDir }: Pick<Config, 'rootKeys' | 'keysDir'>) {
    this.#dir = keysDir;
    this.#given = rootKeys;
    this.#refresh();
  }

  /** The keys without checks, to inspect a database whose keys may be missing. */
  static unchecked(config: Pick<Config, 'rootKeys' | 'keysDir'>): RootKeys {
    return new RootKeys(config);
  }

  /**
   * The keys, after each one that the database needs has opened its canary. A key is created if there is none and
   * nothing was ever wrapped. The wrapping key writes its canary at once: if nodes start at the same time with
   * different keys, the first one decides the key of the database, and the others do not start.
   * @throws Error naming every key that is missing or has changed
   */
  static async open(
    config: Pick<Config, 'rootKeys' | 'keysDir'>,
    database: Pick<Database, 'transaction'>,
  ): Promise<RootKeys> {
    const keys = new RootKeys(config);
    await database.transaction(async (transaction) => {
      const ask: Ask = async <R>(text: string, values: unknown[]) => {
        const [result] = await transaction.send([{ text, values }]);
        return result!.rows as R[];
      };
      // starts run one after another: each sees what the previous one has written, and a refused start is rolled back
      await ask('select pg_advisory_xact_lock($1)', [OPENING_LOCK]);
      const [fault] = keys.#faults(await ask<CanaryRow>(CANARIES, []), config);
      if (fault !== undefined) throw new Error(fault);
      if (keys.#keys.length === 0) {
        makeRootKeyFile(config.keysDir);
        keys.#refresh();
      }
      await keys.lock(ask);
      await transaction.commit([]);
    });
    return keys;
  }

  /**
   * Compares the keys with those that the database needs, and changes nothing.
   * @returns how many it needs, and a sentence for each way in which they are missing or wrong
   */
  static async compare(
    config: Pick<Config, 'rootKeys' | 'keysDir'>,
    pool: Database['pool'],
  ): Promise<{ needed: number; faults: string[] }> {
    const keys = new RootKeys(config);
    const { rows } = await pool.query<CanaryRow>(CANARIES);
    return { needed: rows.length, faults: keys.#faults(rows, config) };
  }

  /** A sentence for the keys that are missing, and one for those that are others. */
  #faults(rows: readonly CanaryRow[], config: Pick<Config, 'rootKeys' | 'keysDir'>): string[] {
    const missing = rows.filter(({ id }) => !this.find(id));
    const wrong = rows.filter((row) => {
      const key = this.find(row.id);
      return key !== null && !isRight(key, row);
    });
    return [
      ...(missing.length > 0 ? [missingSentence(missing, config)] : []),
      ...(wrong.length > 0 ? [wrongSentence(wrong, config)] : []),
    ];
  }

  /** The key that wraps. */
  get newest(): NamedKey {
    this.#refresh();
    const [newest] = this.#keys;
    if (!newest) throw new Error(`The root keys in ${this.#dir} are missing.`);
    return newest;
  }

  /** The key with this id; `null` when there is none. */
  find(id: string): NamedKey | null {
    const known = () => this.#keys.find((key) => key.id === id) ?? null;
    const found = known();
    if (found) return found;
    this.#refresh(); // its file may have been added a moment ago
    return known();
  }

  /**
   * The key that wraps, with its canary locked in the database until the transaction ends.
   * @param ask runs a statement within that transaction
   * @throws Error when another node has another key of this id
   */
  async lock(ask: Ask, key = this.newest): Promise<NamedKey> {
    for (;;) {
      const [row] = await ask<CanaryRow>('select id, canary from root_keys where id = $1 for key share', [key.id]);
      if (!row) {
        const canary = seal(key.key, CANARY, contextOf(key.id));
        await ask('insert into root_keys (id, canary) values ($1, $2) on conflict do nothing', [key.id, canary]);
      } else if (isRight(key, row)) {
        this.#right.set(key.id, row.canary);
        return key;
      } else throw new Error(`The root key '${key.id}' of this node differs from the root key of other nodes.`);
    }
  }

  /**
   * The canary that proved a key to be correct. While it is still in the database, the key need not be checked again.
   */
  canaryOf({ id }: NamedKey): Uint8Array | null {
    return this.#right.get(id) ?? null;
  }

  /** The canary of a key is no longer in the database, so the key is checked again. */
  forget({ id }: NamedKey): void {
    this.#right.delete(id);
  }

  #refresh(): void {
    if (this.#given) {
      this.#keys = this.#given;
      return;
    }
    if (!existsSync(this.#dir)) return;
    const version = String(statSync(this.#dir, { bigint: true }).mtimeNs);
    if (version === this.#version) return;
    this.#keys = readFiles(this.#dir);
    this.#version = version;
  }
}

function readFiles(dir: string): NamedKey[] {
  const ids = readdirSync(dir).flatMap((name) => FILE.exec(name)?.[1] ?? []);
  return ids
    .sort()
    .reverse()
    .map((id) => {
      const file = path.join(dir, `root-${id}.key`);
      const text = readFileSync(file, 'utf8');
      if (!KEY_TEXT.test(text))
        throw new Error(`The file ${file} has no root key. A root key is 32 bytes as base64url.`);
      return { id, key: Buffer.from(text.trim(), 'base64url') };
    });
}

function isRight({ key }: NamedKey, { id, canary }: CanaryRow): boolean {
  try {
    return open(key, canary, contextOf(id)).equals(CANARY);
  } catch {
    return false; // this is the answer: it was sealed with another key
  }
}

const named = (rows: readonly CanaryRow[]) =>
  `root key${rows.length > 1 ? 's' : ''} ${rows.map(({ id }) => `'${id}'`).join(', ')}`;

function missingSentence(
  rows: readonly CanaryRow[],
  { rootKeys, keysDir }: Pick<Config, 'rootKeys' | 'keysDir'>,
): string {
  const where = rootKeys ? 'Add them to ROOT_KEYS.' : `Put the files root-<id>.key back into ${keysDir}.`;
  return `Secrets of this database are encrypted with the ${named(rows)}, which this service does not have. ${where}`;
}

function wrongSentence(
  rows: readonly CanaryRow[],
  { rootKeys, keysDir }: Pick<Config, 'rootKeys' | 'keysDir'>,
): string {
  const source = rootKeys ? 'ROOT_KEYS' : keysDir;
  return (
    `The ${named(rows)} of ${source} cannot decrypt the data that this database has encrypted under this id: ` +
    'it is a different key.'
  );
}
