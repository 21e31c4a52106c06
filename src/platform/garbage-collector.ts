import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** With no more processors than these, the others have work of their own: the database, other requests' connections. */
const FEW_PROCESSORS = 2;

/**
 * Lets the young generation be collected by the thread that needs it alone, on a machine with few processors. Threads
 * that help would make it faster if they ran; under load they wait for a processor, and all requests wait for them.
 * Beside a traversal of a hub, the 99th percentile of small requests is a seventh lower
 * (`BENCH_ONLY=entities npm run bench`, two processors).
 */
export function tuneGarbageCollector(): void {
  if (availableParallelism() <= FEW_PROCESSORS) setFlagsFromString('--no-parallel-scavenge');
}
