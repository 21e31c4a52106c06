import { createHash } from 'node:crypto';
import { newId } from '../kernel/ids.ts';
import type { ActivityRow } from './activity-columns.ts';
import type { Sql } from './sql.ts';

/** The failed sign-ins of an organization since its window was opened. */
interface Window {
  records: number;
  /** The accounts that have a record of their own. */
  seen: Set<unknown>;
  /** Attempts without a record of their own, and whose accounts they were aimed at. */
  more: number;
  others: Set<unknown>;
  /** The last one that has no record of its own. */
  last: ActivityRow | null;
  timer: NodeJS.Timeout;
}

const WINDOW_MS = 60_000;
/** Records of a minute, an organization and a node. */
const OF_ORGANIZATION = 60;
/** The same with the first one of each account: nobody hides an attempt behind many at other accounts. */
const WITH_FIRST_ONES = 120;
/** Of what belongs to no organization: it is in no list. */
const OF_NOBODY = 300;
const MOST_ACCOUNTS = 1_000;
/** Strangers choose the trace of their requests: as long as those of all usual clients, and no text. */
const MAX_TRACE = 64;

/**
 * The organizations that may know of failed sign-ins to an account: those that made it, and those that its user is a
 * member of and has been in. Who was only added to one, perhaps by a stranger, is not watched by it.
 */
const KNOWING = `select u.id as "accountId", w.org_id as "orgId" from unnest($1::text[]) u(id)
  cross join lateral (select m.org_id from organization_members m
    join organizations o on o.id = m.org_id and o.deleted_at is null join users a on a.id = m.user_id
    where m.user_id = u.id and (a.home_org_id = m.org_id or m.used_at is not null)
    order by m.id limit 50) w`;

/** A sign-in that failed, of nobody known: whatever it is, a stranger has caused it. */
const isOfStranger = (row: ActivityRow): boolean =>
  row.action === 'login' && row.success === false && row.principal_type === 'anonymous';

/**
 * Which records there are of sign-ins that failed: one in each organization that may know of it, and no more in a
 * minute than people can read. What is beyond that is counted, and told in one record (docs/decisions/0085).
 */
export class FailedSignIns {
  readonly #sql: Pick<Sql, 'read'>;
  readonly #add: (row: ActivityRow) => void;
  readonly #windows = new Map<string, Window>();
  /** What was counted before, but could not be written yet. */
  readonly #counted = new WeakSet<ActivityRow>();

  /** @param add takes the record of those that are only counted */
  constructor(sql: Pick<Sql, 'read'>, add: (row: ActivityRow) => void) {
    this.#sql = sql;
    this.#add = add;
  }

  /** @returns the records to write. @throws the errors of the database; then nothing is counted */
  async within(batch: readonly ActivityRow[]): Promise<ActivityRow[]> {
    const isNew = (row: ActivityRow) => isOfStranger(row) && !this.#counted.has(row);
    if (!batch.some(isNew)) return [...batch];
    const knowing = await this.#knowing(batch.filter((row) => isNew(row) && row.org_id === null));
    return batch.flatMap((row) => {
      if (!isNew(row)) return row;
      return recordsOf(row, knowing.get(row.user_id) ?? []).filter((record) => this.#isWithin(record));
    });
  }

  /** Tells what is only counted so far. */
  flush(): void {
    for (const orgId of this.#windows.keys()) this.#close(orgId);
  }

  async #knowing(rows: readonly ActivityRow[]): Promise<Map<unknown, string[]>> {
    const knowing = new Map<unknown, string[]>();
    const accounts = [...new Set(rows.flatMap(({ user_id: id }) => (typeof id === 'string' ? id : [])))];
    if (accounts.length === 0) return knowing;
    for (const { accountId, orgId } of await this.#sql.read<{ accountId: string; orgId: string }>(KNOWING, [accounts]))
      knowing.set(accountId, [...(knowing.get(accountId) ?? []), orgId]);
    return knowing;
  }

  #isWithin(row: ActivityRow): boolean {
    this.#counted.add(row);
    const window = this.#windowOf(typeof row.org_id === 'string' ? row.org_id : '');
    const isFirst = row.user_id !== null && !window.seen.has(row.user_id);
    const most = row.org_id === null ? OF_NOBODY : OF_ORGANIZATION;
    if (window.records < most || (isFirst && window.records < Math.max(most, WITH_FIRST_ONES))) {
      window.records += 1;
      window.seen.add(row.user_id);
      return true;
    }
    window.more += attemptsOf(row);
    if (row.user_id !== null && window.others.size < MOST_ACCOUNTS) window.others.add(row.user_id);
    window.last = row;
    return false;
  }

  #windowOf(orgId: string): Window {
    const open = this.#windows.get(orgId);
    if (open) return open;
    const timer = setTimeout(() => this.#close(orgId), WINDOW_MS).unref();
    const window = { records: 0, seen: new Set(), more: 0, others: new Set(), last: null, timer };
    this.#windows.set(orgId, window);
    return window;
  }

  #close(orgId: string): void {
    const { timer, last, more, others } = this.#windows.get(orgId)!;
    clearTimeout(timer);
    this.#windows.delete(orgId);
    if (!last) return;
    const metadata = { reason: 'too_many', attempts: more, accounts: others.size };
    const row: ActivityRow = {
      ...last,
      id: newId('activity'),
      timestamp: new Date(),
      user_id: null,
      resource_id: null,
      metadata: JSON.stringify(metadata),
    };
    this.#counted.add(row);
    this.#add(row);
  }
}

/** The record of each organization. The same identifiers each time: a repeated insert adds none. */
function recordsOf(row: ActivityRow, orgIds: readonly string[]): ActivityRow[] {
  const cut = { ...row, trace_id: String(row.trace_id).slice(0, MAX_TRACE) };
  if (orgIds.length === 0) return [cut];
  const id = String(row.id);
  return orgIds.map((orgId) => {
    const hash = createHash('md5').update(`${id}${orgId}`).digest('hex').slice(0, 16).toUpperCase();
    return { ...cut, id: `${id.slice(0, -16)}${hash}`, org_id: orgId };
  });
}

/** One record stands for many attempts at an account that is locked. */
function attemptsOf({ metadata }: ActivityRow): number {
  const { attempts } = JSON.parse(String(metadata)) as { attempts?: unknown };
  return typeof attempts === 'number' ? attempts : 1;
}
