import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** With no more processors than these, helper threads compete with the service itself and with its database. */
const FEW_PROCESSORS = 2;

/**
 * On a machine with few processors, collects the young generation without helper threads. Under load they wait for a
 * processor, and all requests wait for them: without them, the 99th percentile of small requests beside a traversal of
 * a hub is a seventh lower (`BENCH_ONLY=entities npm run bench`, two processors).
 */
export function tuneGarbageCollector(): void {
  if (availableParallelism() <= FEW_PROCESSORS) setFlagsFromString('--no-parallel-scavenge');
}

/**
 * Keeps the optimizing compiler off until the function that it returns is called. Most of what a start runs, it runs
 * once: optimizing that was a quarter of its processor time.
 */
export function withoutOptimizer(): () => void {
  setFlagsFromString('--no-opt');
  return () => setFlagsFromString('--opt');
}
