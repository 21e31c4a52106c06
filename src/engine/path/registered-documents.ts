import { LRUCache } from 'lru-cache';
import type { Sql } from '../../data/sql.ts';
import { throwCallerError } from '../../platform/postgres/faults.ts';

/** Maximum size of the texts that this process keeps. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** The overhead of a text: its id, and the cache's entry. */
const ENTRY_BYTES = 600;

/** The ids that build tools write: hashes, names, numbers. */
const ID = /^[\x21-\x7e]{1,256}$/;

/** The documents of our own pages. */
const OF_PAGES: ReadonlyMap<string, string> = new Map([
  ['sign-in-page/notification', 'query ($id: ID!) { notification(id: $id) { title message resolvedAt } }'],
]);

const READ = 'select text from persisted_documents where id = $1';
/** All of them or, where an id stands for another text already, none. */
const REGISTER = `with given as (select id, text from unnest($1::text[], $2::text[]) g (id, text)),
    other as (select g.id from given g join persisted_documents p on p.id = g.id and p.text <> g.text),
    added as (insert into persisted_documents (id, text) select id, text from given where not exists (select from other)
      on conflict do nothing returning id)
  select id, false as "isNew" from other union all select id, true from added order by id`;

/** Whether an id can be registered. */
export const isDocumentId = (id: string): boolean => ID.test(id);

/**
 * The documents of front ends, which an operator registers at build time. All nodes read them from the database; an id
 * never stands for another text, so what was read once is kept.
 */
export class RegisteredDocuments {
  readonly #sql: Sql;
  readonly #kept = new LRUCache<string, string>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (text) => 2 * text.length + ENTRY_BYTES,
  });

  readonly #ofPages: ReadonlyMap<string, string>;

  /** @param ofPages documents of further pages of our own, by ids that never stand for another text */
  constructor(sql: Sql, ofPages: ReadonlyMap<string, string> = new Map()) {
    this.#sql = sql;
    this.#ofPages = ofPages;
  }

  /** The text of an id. @throws ApiError while the database is away */
  async textOf(id: string): Promise<string | undefined> {
    if (!isDocumentId(id)) return undefined;
    const kept = OF_PAGES.get(id) ?? this.#ofPages.get(id) ?? this.#kept.get(id);
    if (kept !== undefined) return kept;
    const [row] = await this.#sql.read<{ text: string }>(READ, [id]).catch(throwCallerError);
    if (row) this.#kept.set(id, row.text);
    return row?.text;
  }

  /** Registers texts by their ids. @returns the ids that are new, or those that stand for another text: then none is */
  async register(texts: ReadonlyMap<string, string>): Promise<{ added: string[]; taken: string[] }> {
    const rows = await this.#sql.changeInTurn<{ id: string; isNew: boolean }>('registered documents', REGISTER, [
      [...texts.keys()],
      [...texts.values()],
    ]);
    const idsOf = (isNew: boolean) => rows.filter((row) => row.isNew === isNew).map(({ id }) => id);
    return { added: idsOf(true), taken: idsOf(false) };
  }

  /** All of them, for an operator. */
  async all(): Promise<Map<string, string>> {
    const rows = await this.#sql.read<{ id: string; text: string }>(
      'select id, text from persisted_documents order by id',
      [],
    );
    return new Map(rows.map(({ id, text }) => [id, text]));
  }
}
