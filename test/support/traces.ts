import type pg from 'pg';
import { expect } from 'vitest';

type Row = Record<string, unknown>;

/** The rows of every table, by what names a version of a row: it is read once. */
export interface Snapshot {
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, Row>>;
  /** Rows of older transactions are in it. */
  readonly until: string;
}

/** Rows that came, and rows that went; one that was changed did both. */
export type Changed = Record<string, { gone: Row[]; written: Row[] }>;

/**
 * Columns that tell nothing of what was done: where a row stands in the outbox, how long it took, when a session was
 * last used, and what webhooks come to by themselves.
 */
const unspoken: Record<string, readonly string[]> = {
  events: ['seq', 'xid'],
  activity: ['duration_ms', 'xid'],
  sessions: ['last_used_at'],
  webhooks: ['position_xid', 'position_seq', 'begun_snapshot', 'begun_xid', 'failing_since'],
  webhook_deliveries: ['status', 'tries', 'attempts', 'due_at', 'finished_at', 'place'],
  audit_streams: [
    'position_xid',
    'position_id',
    'position_at',
    'begun_snapshot',
    'begun_xid',
    'last_sequence',
    'gone_before',
    'failing_since',
  ],
  audit_stream_deliveries: ['status', 'tries', 'attempts', 'due_at', 'finished_at', 'place'],
};

/** Counters are spread over slots at random. */
const summed: Record<string, string> = {
  execution_sums: `select org_id, scope_id, span, start, sum(n) as n, sum(success) as success, sum(failed) as failed,
    sum(tokens) as tokens from execution_sums group by 1, 2, 3, 4`,
  place_counts: 'select org_id, place_id, counter, sum(n) as n from place_counts group by 1, 2, 3',
  resource_counts: 'select org_id, resource, sum(n) as n from resource_counts group by 1, 2',
};

const rowsOf = (table: string): string =>
  summed[table]
    ? `select to_jsonb(t)::text as key, to_jsonb(t) as row from (${summed[table]}) t`
    : `select tableoid || ' ' || ctid || ' ' || xmin as key,
         case when xmin::text::int8 >= $1 then to_jsonb(t) end as row
       from ${table} t`;

/** Reads every table of a database, whichever there are: what is not in an earlier snapshot, if one is given. */
export async function snapshotOf(pool: pg.Pool, before?: Snapshot): Promise<Snapshot> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       -- what is summed later, and what nodes say of themselves
       and c.relname not in ('_prisma_migrations', 'activity_sums', 'activity_divided', 'activity_fold',
         'activity_latencies', 'activity_uses', 'storage_samples', 'nodes') order by 1`,
  );
  const parts = tables.map(
    ({ name }) =>
      `select '${name}' as name, pg_snapshot_xmin(pg_current_snapshot())::text as until,
         coalesce((select json_object_agg(key, row) from (${rowsOf(name)}) r), '{}') as rows`,
  );
  const { rows: read } = await pool.query<{ name: string; until: string; rows: Record<string, Row | null> }>({
    name: 'snapshot', // to plan it takes longer than to run it
    text: parts.join(' union all '),
    values: [before?.until ?? 0],
  });
  const known = (name: string, key: string): Row => {
    const row = before?.tables.get(name)?.get(key);
    if (!row) throw new Error(`A row of ${name} is older than the snapshot that it is not in.`);
    return row;
  };
  const spoken = (name: string, row: Row): Row =>
    Object.fromEntries(Object.entries(row).filter(([key]) => !unspoken[name]?.includes(key)));
  return {
    tables: new Map(
      read.map(({ name, rows }) => [
        name,
        new Map(Object.entries(rows).map(([key, row]) => [key, row ? spoken(name, row) : known(name, key)])),
      ]),
    ),
    until: read[0]!.until,
  };
}

/** What changed from one snapshot to the next. */
export function changesBetween(before: Snapshot, after: Snapshot): Changed {
  const changed: Changed = {};
  for (const [name, is] of after.tables) {
    const was = before.tables.get(name) ?? new Map<string, Row>();
    const only = (some: ReadonlyMap<string, Row>, without: ReadonlyMap<string, Row>) =>
      [...some].filter(([key]) => !without.has(key)).map(([, row]) => JSON.stringify(row));
    const [left, came] = [only(was, is), only(is, was)];
    // a row that was written as it was has not changed
    const gone = left.filter((row) => !came.includes(row)).map((row) => JSON.parse(row) as Row);
    const written = came.filter((row) => !left.includes(row)).map((row) => JSON.parse(row) as Row);
    if (gone.length > 0 || written.length > 0) changed[name] = { gone, written };
  }
  return changed;
}

const ID = /\b([a-z]+)_([0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26})\b/g;
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g;
/** Secrets, by their form. They come first: one that is random may begin as an identifier does. */
const SECRETS: readonly [RegExp, string][] = [
  [/\b(pat|app|rft)_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}\b/g, '$1 <token>'],
  [/\b(?:aps|scim)_[\w-]{43}(?![\w-])/g, '<secret>'],
  [/\bwhsec_[A-Za-z0-9+/]{43}=/g, 'whsec <secret>'],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<access token>'],
];
/** What else is random by its nature, by its form: only its length and kind can be compared. */
const RANDOM: readonly [RegExp, string][] = [
  [/"(latency_ms|latencyMs)":\d+/g, '"$1":"<ms>"'],
  [/"(pat|app|rft)_[0-9A-Za-z]{8}"/g, '"$1 <prefix>"'],
  [/"scim_[\w-]{5}"/g, '"scim <prefix>"'],
  [/\$argon2[^"]*/g, '<password hash>'],
  [/"[0-9a-f]{64}"/g, '"<hash>"'],
  [/"_[0-9a-f]{40}"/g, '"<request of SAML>"'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>'],
  [/(?<![\w-])[\w-]{43}(?![\w-])/g, '<secret>'],
  [/(?<![\w-])[\w-]{90,}(?![\w-])/g, '<sealed>'],
  [/\b(?:[0-9a-z]{4}-){3}[0-9a-z]{4}\b/g, '<recovery code>'],
  [/\b[A-Z2-7]{32}\b/g, '<secret of one-time codes>'],
];

const replaced = (text: string, forms: readonly [RegExp, string][]): string =>
  forms.reduce((plain, [form, label]) => plain.replaceAll(form, label), text);

/** The identifiers in a text, in lower case: names of buckets are made from them. */
const idsIn = (text: string): string[] => [...text.matchAll(ID)].map(([id]) => id.toLowerCase());

/**
 * Texts of one database in a form that can be compared with another's: times by the minutes from now, identifiers that
 * are not among the `known` by their kind and the order in which they were made, random things by their form.
 */
export function comparable<T>(value: T, known: ReadonlySet<string>, now: number): T {
  const text = replaced(JSON.stringify(value), SECRETS);
  const made = [...new Set(idsIn(text))].filter((id) => !known.has(id)).sort();
  const kindOf = (id: string) => id.slice(0, id.indexOf('_'));
  const labels = new Map(
    made.map((id) => [id, `${kindOf(id)}#${made.filter((m) => kindOf(m) === kindOf(id)).indexOf(id)}`]),
  );
  const plain = text
    .replaceAll(ID, (id) => labels.get(id.toLowerCase()) ?? id)
    .replaceAll(/\\\\x([0-9a-f]*)/g, (_, hex: string) => `<${hex.length / 2} bytes>`)
    .replaceAll(TIME, (time) => `<${Math.round((Date.parse(time) - now) / 60_000)} min>`);
  return JSON.parse(replaced(plain, RANDOM)) as T;
}

const MINUTES = /<(-?\d+) min>/g;
/** How many minutes may lie between two moments that are the same for a test: its second half may run later. */
const SAME_MOMENT = 3;

/**
 * Expects of two comparable lists that they hold the same, in whatever order. Times are the same when few minutes lie
 * between them.
 */
export function expectAlike(actual: readonly unknown[], wanted: readonly unknown[], what: string): void {
  const untimed = (text: string) => text.replaceAll(MINUTES, '<time>');
  const texts = (list: readonly unknown[]) =>
    list
      .map((one) => JSON.stringify(one))
      .map((text) => ({ text, plain: untimed(text) }))
      .sort((a, b) => (a.plain < b.plain ? -1 : a.plain > b.plain ? 1 : a.text < b.text ? -1 : 1));
  const [ours, theirs] = [texts(actual), texts(wanted)];
  expect(
    ours.map(({ plain }) => plain),
    what,
  ).toEqual(theirs.map(({ plain }) => plain));
  const minutes = (list: typeof ours) =>
    list.flatMap(({ text }) => [...text.matchAll(MINUTES)].map(([, count]) => Number(count)));
  const counts = minutes(theirs);
  for (const [at, count] of minutes(ours).entries()) {
    const isNear = Math.abs(count - counts[at]!) <= SAME_MOMENT;
    expect(isNear, `${what}: a time is ${count} minutes away, and ${counts[at]} in the other`).toBe(true);
  }
}

/** Every identifier that a snapshot holds. */
export const idsOfSnapshot = (snapshot: Snapshot): Set<string> =>
  new Set([...snapshot.tables.values()].flatMap((rows) => idsIn(JSON.stringify([...rows.values()]))));
