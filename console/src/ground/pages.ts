import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { type AnyVariables, type Client, type CombinedError, createRequest, useClient } from 'urql';
import { pipe, subscribe } from 'wonka';
import { type Text, textOf } from './answers';
import { isPassing } from './passing';

interface Connection<Row> {
  nodes: readonly Row[];
  pageInfo: { endCursor: string | null; hasNextPage: boolean };
}

interface Page<Row> {
  after: string | null;
  connection: Connection<Row> | null;
  /** Why its last answer did not come. */
  error?: CombinedError | undefined;
  end: () => void;
}

export interface Pages<Row> {
  rows: readonly Row[];
  error: CombinedError | undefined;
  isLoading: boolean;
  hasMore: boolean;
}

/**
 * The pages of a list, one query each, all of them alive: what changes in the cache changes the rows. A page begins
 * where the one before it ends, also after that has moved.
 *
 * Pages of rows that never change end when they have arrived: the cache reads each living page again whenever another
 * one brings an object that both name, and all records name the same few users.
 */
class Pager<Data, Row> {
  readonly #pages: Page<Row>[] = [];
  readonly #listeners = new Set<() => void>();
  #state: Pages<Row> = { rows: [], error: undefined, isLoading: true, hasMore: false };

  constructor(
    private readonly client: Client,
    private readonly document: Text<Data, AnyVariables>,
    private readonly variables: object,
    private readonly pick: (data: Data) => Connection<Row>,
    private readonly isFinal: boolean,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#pages.length === 0) this.#open(0, null);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      for (const page of this.#pages.splice(0)) page.end();
    };
  };

  readonly state = (): Pages<Row> => this.#state;

  readonly more = (): void => {
    const last = this.#pages.at(-1);
    if (last?.connection?.pageInfo.hasNextPage) this.#open(this.#pages.length, last.connection.pageInfo.endCursor);
  };

  /** Asks for all pages again, and shows what they had until the answers come. */
  readonly again = (): void => {
    for (const [at, { after }] of [...this.#pages].entries()) this.#open(at, after);
  };

  #open(at: number, after: string | null): void {
    this.#pages[at]?.end();
    const page: Page<Row> = { after, connection: this.#pages[at]?.connection ?? null, end: () => undefined };
    this.#pages[at] = page;
    const request = createRequest(textOf(this.document), { ...this.variables, after });
    const subscription = pipe(
      this.client.executeQuery(request, { requestPolicy: 'cache-and-network' }),
      subscribe(({ data, error, stale }) => {
        if (this.#pages[at] !== page) return;
        // not before the subscription is known, which an answer from the cache may precede
        if (this.isFinal && data && !(error && isPassing(error)) && !stale) queueMicrotask(() => page.end());
        if (data) page.connection = this.pick(data);
        if (data || error) {
          page.error = error;
          this.#changed();
        }
        this.#moveNext(at, page);
      }),
    );
    page.end = () => subscription.unsubscribe();
    this.#changed();
  }

  #moveNext(at: number, { connection }: Page<Row>): void {
    const next = this.#pages[at + 1];
    if (!next || !connection || next.after === connection.pageInfo.endCursor) return;
    if (connection.pageInfo.hasNextPage) {
      this.#open(at + 1, connection.pageInfo.endCursor);
      return;
    }
    for (const gone of this.#pages.splice(at + 1)) gone.end();
    this.#changed();
  }

  #changed(): void {
    const last = this.#pages.at(-1);
    const seen = new Set<unknown>();
    // a row that was added while pages were read may be on two of them
    const rows = this.#pages
      .flatMap(({ connection }) => connection?.nodes ?? [])
      .filter((row) => !seen.has(idOf(row)) && seen.add(idOf(row)));
    const error = this.#pages.find((page) => page.error)?.error;
    const hasMore = last?.connection?.pageInfo.hasNextPage ?? false;
    this.#state = { rows, error, isLoading: !error && !last?.connection, hasMore };
    for (const listener of this.#listeners) listener();
  }
}

const idOf = (row: unknown): unknown => (row as { id?: unknown }).id ?? row;

/**
 * @param all how many rows are read without being asked for: a table that compares needs all of them
 * @param turn another number reads the list again from its beginning
 * @param isFinal whether rows never change, such as records
 */
export function usePages<Data, Variables extends AnyVariables, Row>(
  document: Text<Data, Variables>,
  variables: Omit<Variables, 'after'>,
  pick: (data: Data) => Connection<Row>,
  { all = 0, turn = 0, isFinal = false }: { all?: number; turn?: number; isFinal?: boolean } = {},
): Pages<Row> & { more: () => void; again: () => void } {
  const client = useClient();
  const key = JSON.stringify(variables);
  // biome-ignore lint/correctness/useExhaustiveDependencies: variables are compared by their text; `pick` never changes
  const pager = useMemo(
    () => new Pager<Data, Row>(client, document as Text<Data, AnyVariables>, variables, pick, isFinal),
    [client, document, key, turn, isFinal],
  );
  const state = useSyncExternalStore(pager.subscribe, pager.state);
  const isWanted = state.hasMore && state.rows.length < all;
  useEffect(() => {
    if (isWanted && state.rows.length > 0) pager.more();
  }, [pager, isWanted, state.rows.length]);
  return { ...state, more: pager.more, again: pager.again };
}
