import type { Sql } from '../../data/sql.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';

/** Counting stops here: whether a key still seals much, little or nothing is what one wants to know. */
const MAX_COUNTED = 10_000;
const MAX_KEYS = 100;

const counted = (table: string) =>
  `(select count(*) from (select 1 from ${table} r where r.root_key_id = k.id limit ${MAX_COUNTED}) c)`;
// each count walks the index of the table by its root key
const USES = `select k.id, k.created_at as "createdAt",
    least(${counted('secrets')} + ${counted('credentials')} + ${counted('user_credentials')}, ${MAX_COUNTED})::int
      as "sealedCount"
  from root_keys k order by k.id desc limit ${MAX_KEYS}`;

interface UsedKey {
  id: string;
  /** When the database first needed it. */
  createdAt: Date;
  /** Secrets and credentials whose data keys it wraps, 10,000 at most. */
  sealedCount: number;
}

/** A root key that the database needs. Nothing secret. */
export interface RootKeyUse extends UsedKey {
  /** Whether this node wraps with it. */
  isCurrent: boolean;
  /** Whether this node has it. */
  isPresent: boolean;
}

/** Which root keys the database needs, and how much each one seals. */
export class RootKeyUses {
  readonly #sql: Sql;
  readonly #rootKeys: RootKeys;

  constructor({ sql, rootKeys }: { sql: Sql; rootKeys: RootKeys }) {
    this.#sql = sql;
    this.#rootKeys = rootKeys;
  }

  /** The newest 100, newest first. */
  async list(): Promise<RootKeyUse[]> {
    const rows = await this.#sql.read<UsedKey>(USES, []);
    const current = this.#rootKeys.newest.id;
    return rows.map((row) => ({
      ...row,
      isCurrent: row.id === current,
      isPresent: this.#rootKeys.find(row.id) !== null,
    }));
  }
}
