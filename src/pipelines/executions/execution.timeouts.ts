import type { ServiceDeps } from '../../access/service-deps.ts';
import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import type { Execution } from '../../generated/prisma/client.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { recordReport, storable } from './execution.changes.ts';
import { progressOf, timedOut } from './execution.progress.ts';

const NAME = 'executions.time_out';
const BATCH = 100;

/** Runs of which nothing was heard for some hours. */
const silent = (hours: number) => `status = 'running' and reported_at < now() - interval '${hours} hours'`;

/** The tasks that close runs whose runner reports nothing any more: none for 0 hours. */
export const timeoutTasks = (deps: Pick<ServiceDeps, 'sql' | 'changes'>, hours: number): Task[] =>
  hours === 0
    ? []
    : [
        scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from executions where ${silent(hours)}` }, ({ signal }) =>
          closeSilent(deps, hours, signal),
        ),
      ];

/** Each in a transaction of its own, with its event and its record. */
const closeSilent = ({ sql, changes }: Pick<ServiceDeps, 'sql' | 'changes'>, hours: number, signal: AbortSignal) =>
  inBatches(BATCH, async () => {
    const text = `select id, reported_at as "reportedAt" from executions where ${silent(hours)}
      order by reported_at limit ${BATCH}`;
    const found = await sql.read<Silent>(text, []);
    for (const run of found) {
      if (signal.aborted) return 0;
      await close(changes, run, hours);
    }
    return found.length;
  });

type Silent = Pick<Execution, 'id' | 'reportedAt'>;

const close = (changes: Changes, { id, reportedAt }: Silent, hours: number): Promise<void> =>
  changes.run(systemCaller(NAME), async (tx) => {
    const known = await tx.lock('executions', { id }, 'no key update');
    // it may have been reported meanwhile
    if (known?.status !== 'running' || known.reportedAt > reportedAt) return;
    const before = progressOf(known);
    const after = timedOut(before, hours, new Date());
    recordReport(tx, known, before, after);
    tx.update('executions', { id }, storable(after));
  });
