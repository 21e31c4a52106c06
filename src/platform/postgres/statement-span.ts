import type pg from 'pg';
import { lruOf } from '../../kernel/lru.ts';
import { activeSpan, type SpanAttributes, spanned } from '../../kernel/spans.ts';

/** What a statement is known by. */
interface AskedStatement {
  name?: string | undefined;
  text?: string | undefined;
}

/** The text says what was asked: its values are parameters. */
const LONGEST_TEXT = 2_000;

const summaries = lruOf<string>(2_000);

const WRITES = /\b(?<!for |do )(insert into|update|delete from)\s+(?:only\s+)?"?(?:public"?\."?)?([a-z_][\w.]*)/gi;
const READS = /\bfrom\s+"?(?:public"?\."?)?([a-z_][\w.]*)/i;
const COMMAND = /^\s*(\w{1,20})/;
const MAX_SUMMARY = 120;

/** `update secrets, insert into activity`, or `select apps`: what a statement does, in few words. */
export function summaryOf(text: string): string {
  const known = summaries.get(text);
  if (known !== undefined) return known;
  const writes = [...text.matchAll(WRITES)].map(([, verb, table]) => `${verb?.toLowerCase()} ${table}`);
  const read = READS.exec(text)?.[1];
  const command = COMMAND.exec(text)?.[1]?.toLowerCase() ?? 'statement';
  const plain = command === 'with' || command === 'select' ? `select${read ? ` ${read}` : ''}` : command;
  const summary = writes.length > 0 ? [...new Set(writes)].join(', ').slice(0, MAX_SUMMARY) : plain;
  summaries.set(text, summary);
  return summary;
}

/** Runs a statement as a part of what is recorded, if something is. The time for a free connection is in it. */
export function asSpan<T>(asked: AskedStatement | string, run: () => Promise<T>): Promise<T> {
  const parent = activeSpan();
  if (!parent) return run();
  const { name, text = '' } = typeof asked === 'string' ? { text: asked } : asked;
  const summary = summaryOf(text);
  const attributes: SpanAttributes = {
    'db.system.name': 'postgresql',
    'db.query.summary': summary,
    'db.query.text': text.slice(0, LONGEST_TEXT),
    ...(name === undefined ? {} : { 'platform.statement': name }),
  };
  return spanned(parent.child(summary, { kind: 'client', attributes }), run);
}

type PoolQuery = (this: void, ...given: unknown[]) => unknown;

/** Makes each statement that the pool runs by itself a part of what is recorded: also those of Prisma Client. */
export function recordStatements(pool: pg.Pool): void {
  const query = pool.query.bind(pool) as PoolQuery;
  const recording: PoolQuery = (...given) =>
    typeof given.at(-1) === 'function'
      ? query(...given)
      : asSpan(given[0] as AskedStatement, () => query(...given) as Promise<unknown>);
  Object.defineProperty(pool, 'query', { configurable: true, writable: true, value: recording });
}
