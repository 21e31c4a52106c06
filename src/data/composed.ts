import { lruOf } from '../kernel/lru.ts';
import type { Query } from '../platform/postgres/transaction.ts';
import type { Sql } from './sql.ts';
import type { Write } from './writes.ts';

/** Writes composed into one statement. */
export interface Composed {
  query: Query;
  /** Whether one of them requires a row. */
  wants: boolean;
  /** Passes on the rows that it wrote. @throws the error of a write that found no row */
  accept(values: readonly unknown[]): void;
}

/** Texts by the shape of the writes. Callers choose which columns an update sets, so there may be many. */
const texts = lruOf<string>(2_000);

/**
 * One statement that runs each part once, or none if a row is missing that one of them requires. All parts see the rows
 * as they were before. Locked rows come first; at most one of the writes may require a row, and at most one returns its
 * row.
 */
export function compose(sql: Sql, writes: readonly Write[]): Composed {
  const ordered = [...writes].sort((a, b) => rankOf(a) - rankOf(b));
  const shape = ordered.map((write) => `${write.shape}${write.orElse ? '!' : ''}`).join('\n');
  let text = texts.get(shape);
  if (text === undefined) {
    text = textOf(ordered);
    texts.set(shape, text);
  }
  const asked = ordered.filter(isAsked);
  return {
    query: sql.queryOf(
      text,
      ordered.flatMap(({ values }) => values),
      'array',
    ),
    wants: ordered.some(({ orElse }) => orElse),
    accept: (values) => {
      for (const [index, { orElse }] of asked.entries()) if (orElse && values[index] !== true) throw orElse();
      for (const [index, { settle }] of asked.entries())
        if (values[index] === true) settle?.(values.slice(asked.length));
    },
  };
}

/** Whether the result tells if it found a row. */
const isAsked = ({ orElse, settle }: Write): boolean => orElse !== undefined || settle !== undefined;

const rankOf = ({ does, orElse }: Write): number => (does === 'lock' ? 0 : orElse ? 1 : 2);

function textOf(writes: readonly Write[]): string {
  const parts: string[] = [];
  const wanted: string[] = [];
  const shown: string[] = [];
  let returned: string | null = null;
  let next = 1;
  for (const [index, write] of writes.entries()) {
    const name = `p${index}`;
    const when = write.does === 'lock' || wanted.length === 0 ? null : wanted.join(' and ');
    parts.push(`${name} as (${write.text(next, when)})`);
    next += write.values.length;
    const isFound = `exists (select from ${name})`;
    if (write.orElse) wanted.push(isFound);
    if (isAsked(write)) shown.push(isFound);
    if (write.settle) returned = name;
  }
  const row = returned ? `, ${returned}.* from (select) one left join ${returned} on true` : '';
  return `with ${parts.join(', ')} select ${shown.join(', ')}${row}`;
}
