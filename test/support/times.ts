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

let used = process.cpuUsage();

/** Milliseconds since the last call; `processor` is what this process used of it, its threads included. */
export function timesSpent(): Record<TimeKind | 'processor', number> {
  const { user, system } = process.cpuUsage(used);
  used = process.cpuUsage();
  const times = { ...spent, processor: (user + system) / 1_000 };
  Object.assign(spent, { database: 0, app: 0 });
  return times;
}
