/** What is known of a run: when its runner said that stages are done. */
export interface KnownRun {
  status: 'running' | 'completed' | 'failed';
  startedAt: string;
  endedAt: string | null;
  updatedAt: string;
  stagesCompleted: number;
  totalStages: number;
  /** In any order. */
  reports: readonly { timestamp: string; stagesCompleted: number | null }[];
}

export interface StageTime {
  /** From 1. */
  position: number;
  status: 'done' | 'running' | 'failed' | 'waiting' | 'left out';
  /** In milliseconds since 1970; `null` if it has not begun. */
  from: number | null;
  /** `null` while it runs. */
  to: number | null;
  /** How many stages one report called done: their time is known of all of them together only. */
  together: number;
}

/**
 * When the stages of a run began and ended. A runner reports how many are done: a stage ends with the first report that
 * counts it, and the next one begins then. The clock of the runner, which says when the run began and ended, may differ
 * from that of the service; no stage ends before it began.
 */
export function stageTimes(run: KnownRun): StageTime[] {
  const [start, end] = [Date.parse(run.startedAt), run.endedAt === null ? null : Date.parse(run.endedAt)];
  const reports = run.reports
    .map(({ timestamp, stagesCompleted }) => ({ at: Date.parse(timestamp), done: stagesCompleted ?? 0 }))
    .sort((one, other) => one.at - other.at);
  const latest = end ?? Number.POSITIVE_INFINITY;
  const times: StageTime[] = [];
  let from = start;
  while (times.length < run.stagesCompleted) {
    const next = times.length + 1;
    const report = reports.find(({ done }) => done >= next);
    const isLast = run.status === 'completed' && (report?.done ?? run.totalStages) >= run.totalStages;
    const reported = report?.at ?? end ?? Date.parse(run.updatedAt);
    const to = Math.max(from, isLast && end !== null ? end : Math.min(reported, latest));
    const together = Math.min(report?.done ?? run.stagesCompleted, run.stagesCompleted) - times.length;
    for (let at = 0; at < together; at += 1) times.push({ position: next + at, status: 'done', from, to, together });
    from = to;
  }
  const statuses = { running: 'running', failed: 'failed', completed: 'left out' } as const;
  if (times.length < run.totalStages) {
    const hasBegun = run.status !== 'completed';
    const position = times.length + 1;
    const to = run.status === 'failed' ? Math.max(from, end ?? from) : null;
    times.push({ position, status: statuses[run.status], from: hasBegun ? from : null, to, together: 1 });
  }
  const rest = run.status === 'running' ? 'waiting' : 'left out';
  while (times.length < run.totalStages)
    times.push({ position: times.length + 1, status: rest, from: null, to: null, together: 1 });
  return times;
}
