import { createHash } from 'node:crypto';
import os from 'node:os';

/** How long `sampleMs()` takes on a server of 2025 that does nothing else. */
const REFERENCE_MS = 25;
const MOST = 10;

/** How many processes run test files at once. With two, two processors were idle for a sixth of a run. */
export const WORKERS = 3;

/** Time of a known amount of work: a busy machine takes longer, and so does a slow one. */
function sampleMs(): number {
  const block = Buffer.alloc(1024 * 1024, 'work');
  const begun = process.hrtime.bigint();
  for (let i = 0; i < 32; i++) createHash('sha256').update(block).digest();
  return Number(process.hrtime.bigint() - begun) / 1e6;
}

let measured: number | undefined;

/**
 * How many times slower this machine is now than one that has nothing else to do: 1 to 10. Time limits of tests are
 * multiplied by it. It is measured once, by the first process that asks; the processes that this one starts for tests
 * are told by `TEST_SLOWNESS`.
 */
export function slowness(): number {
  measured ??= Number(process.env.TEST_SLOWNESS) || measure();
  return measured;
}

/**
 * {@link slowness}, or more where the machine has become busier since: what waits for a condition asks when its time
 * would be over.
 */
export const slownessNow = (): number => Math.max(slowness(), Math.min(MOST, queued()));

// the work shows a slow or throttled processor, the queue of processes what the work was too short to meet
const measure = (): number => Math.min(MOST, Math.max(1, sampleMs() / REFERENCE_MS, queued()));

/** How many processes there are for each processor. */
const queued = (): number => os.loadavg()[0]! / os.availableParallelism();

/** How long a browser or a shell may take for one step. */
export const PATIENCE_MS = Math.ceil(120_000 * slowness());
