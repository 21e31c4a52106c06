// Runs in a thread of the process that reads files, whose own thread is busy while it reads. Ends that process when it
// takes more memory or time than it may, or when the service that it reads for is gone.
import { workerData } from 'node:worker_threads';
import { cpuMicros, type Guarded, TIMEOUT_SIGNAL } from './extraction-messages.ts';

const LOOK_MS = 20;

const { parent, most } = workerData as Guarded;
setInterval(() => {
  if (process.memoryUsage.rss() > most[0]! || process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  if (cpuMicros() > most[1]!) process.kill(process.pid, TIMEOUT_SIGNAL);
}, LOOK_MS);
