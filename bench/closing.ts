// Restarts a service while clients connect anew for each request, and counts lost connections: opened by the system,
// and never answered. BENCH_ROUNDS is the number of restarts, 12 by default. A quiet machine loses few: run something
// beside it that takes a processor.
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startService } from '../test/support/service.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 12);
const CLIENTS = 8;
const PAUSE_MS = 2;
const BEFORE_MS = 500;

type Outcome = 'answered' | 'refused' | 'lost';

/** A request over a connection of its own. */
function ask(port: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let isOpen = false;
    socket.once('connect', () => {
      isOpen = true;
      socket.write('GET /v1/auth/config HTTP/1.1\r\nhost: localhost\r\n\r\n');
    });
    socket.once('data', () => {
      socket.destroy();
      resolve('answered');
    });
    socket.once('end', () => resolve('lost'));
    socket.once('error', () => resolve(isOpen ? 'lost' : 'refused'));
  });
}

async function restart(dataDir: string, counts: Record<Outcome, number>): Promise<void> {
  const env = { DATA_DIR: dataDir, LOG_LEVEL: 'error', SHUTDOWN_DELAY_SECONDS: '1', RATE_LIMIT_RPS: '0' };
  const service = startService(env);
  const port = Number(new URL(await service.url()).port);
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      counts[await ask(port)]++;
      await delay(PAUSE_MS);
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  await delay(BEFORE_MS);
  service.child.kill('SIGTERM');
  await service.exited();
  isOver = true;
  await Promise.all(clients);
}

const dataDir = mkdtempSync(path.join(tmpdir(), 'closing-'));
const counts = { answered: 0, refused: 0, lost: 0 };
for (let round = 0; round < ROUNDS; round++) await restart(dataDir, counts);
rmSync(dataDir, { recursive: true, force: true });
console.log(`${ROUNDS} restarts: ${counts.answered} answered, ${counts.refused} refused, ${counts.lost} lost`);
