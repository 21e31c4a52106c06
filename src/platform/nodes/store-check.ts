import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { every } from '../every.ts';
import type { Database } from '../postgres/database.ts';
import type { Storage } from '../storage/storage.ts';
import { readMarkers, withMarkers } from './service-markers.ts';

const CHECK_MS = 15_000;
/** How old an answer of `/readyz` may be, which strangers may ask often. */
const FRESH_MS = 1_000;
const ANSWER_MS = 1_500;

/** Whether a store has some of the files that the service keeps; `undefined` when it keeps none. */
export type HasFiles = (storage: Storage) => Promise<boolean | undefined>;

interface StoreCheckDeps {
  storage: Storage;
  database: Database;
  hasFiles: HasFiles;
  /** When the store or the database cannot be asked. */
  onFault: (error: unknown) => void;
  /** When the store is found to be another one, and when it no longer is. */
  onChange: (problem: string | null) => void;
}

const FOREIGN =
  'this node does not have the files of the service: set S3_BUCKET on all nodes, or give them one DATA_DIR/files ' +
  '(docs/operate/scale-out.md)';
const CLAIMED =
  'the store of files belongs to another service, or to an earlier database: set another S3_BUCKET or DATA_DIR, or ' +
  'take it with `npm run adopt -- files` (docs/operate/scale-out.md)';

/** What a store is to the service: its own, not its own, or that of somebody else while the service has none yet. */
type Standing = 'ours' | 'foreign' | 'claimed';
const PROBLEMS: Readonly<Record<Standing, string | null>> = { ours: null, foreign: FOREIGN, claimed: CLAIMED };

/**
 * Whether the store of this node is the one that all nodes have: it has the marker that the database names. A node with
 * another one, or whose store was emptied or is not mounted, does not touch files until it has the right one.
 */
export class StoreCheck {
  readonly #deps: StoreCheckDeps;
  #problem: string | null = null;
  #checkedAt = 0;
  /** The last look that somebody asked for: it may go on when it was answered without. */
  #asked: Promise<void> = Promise.resolve();

  constructor(deps: StoreCheckDeps) {
    this.#deps = deps;
  }

  /** What is wrong with the store; `null` when nothing is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The same after a look at the store, unless it was looked at a moment ago or does not answer. */
  async current(): Promise<string | null> {
    if (Date.now() - this.#checkedAt >= FRESH_MS) {
      this.#checkedAt = Date.now();
      this.#asked = this.check();
      await Promise.race([this.#asked, delay(ANSWER_MS, undefined, { ref: false })]);
    }
    return this.#problem;
  }

  /** Looks at the store now, and lets files be refused or not. */
  async check(): Promise<void> {
    const standing = await this.#standing();
    if (standing === undefined) return;
    const problem = PROBLEMS[standing];
    this.#deps.storage.isForeign = standing !== 'ours';
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#deps.onChange(problem);
  }

  /**
   * Looks again and again: a folder may be mounted late, or be lost.
   * @returns a function that ends it; resolves when no look is under way, which would ask a database that is closed
   */
  follow(): () => Promise<void> {
    const end = every(CHECK_MS, () => this.check(), this.#deps.onFault);
    return async () => void (await Promise.all([end(), this.#asked]));
  }

  /** `undefined` when it is not known: what cannot be reached says so by itself at each file. */
  async #standing(): Promise<Standing | undefined> {
    const { storage, database, hasFiles, onFault } = this.#deps;
    try {
      const isOurs = await isStoreOfService(storage, database);
      if (isOurs === undefined) return await adoptFirst(storage, database, hasFiles);
      return isOurs ? 'ours' : 'foreign';
    } catch (error) {
      onFault(error);
      return undefined;
    }
  }
}

/** Whether the store is the one of the service; `undefined` when the service has none yet. */
export async function isStoreOfService(storage: Storage, database: Database): Promise<boolean | undefined> {
  const [marker, markers] = await Promise.all([storage.marker(), readMarkers(database.pool)]);
  const ours = markers.get('files');
  return ours === undefined ? undefined : ours === marker;
}

/**
 * The first node decides, unless files were stored before there were markers, and not here, or a service without files
 * finds a store that has a marker: two services with one store would take each other's files for lost ones.
 */
async function adoptFirst(storage: Storage, database: Database, hasFiles: HasFiles): Promise<Standing> {
  const has = await hasFiles(storage);
  return withMarkers(database, async (markers, set) => {
    const ours = markers.get('files');
    const marker = await storage.marker();
    if (ours !== undefined) return ours === marker ? 'ours' : 'foreign';
    if (has === false) return 'foreign';
    if (has === undefined && marker !== null) return 'claimed';
    await set('files', marker ?? (await marked(storage)));
    return 'ours';
  });
}

/** Makes a store the one of the service, whatever it had before. Nodes with another one notice it. */
export const adoptStore = (storage: Storage, database: Database): Promise<void> =>
  withMarkers(database, async (_markers, set) => set('files', (await storage.marker()) ?? (await marked(storage))));

async function marked(storage: Storage): Promise<string> {
  const marker = randomUUID();
  await storage.mark(marker);
  return marker;
}
