/** What a test file spends its time on, beside loading modules and its tests. */
export type TimeKind = 'database' | 'app';

const spent: Record<TimeKind, number> = { database: 0, app: 0 };
const all = () => spent.database + spent.app;

/** Counts the time of work; of work within work, that of the inner kind is not counted twice. */
export async function timed<T>(kind: TimeKind, work: () => Promise<T>): Promise<T> {
  const [begin, known] = [performance.now(), all()];
  try {
    return await work();
  } finally {
    spent[kind] += Math.max(0, performance.now() - begin - (all() - known));
  }
}

/** Milliseconds since the last call. */
export function timesSpent(): Record<TimeKind, number> {
  const times = { ...spent };
  Object.assign(spent, { database: 0, app: 0 });
  return times;
}
