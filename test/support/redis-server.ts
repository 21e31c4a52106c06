import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { waitUntil } from './wait.ts';

const BINARY = [process.env.REDIS_SERVER, '/usr/bin/redis-server', '/usr/bin/valkey-server'].find(
  (file) => file !== undefined && existsSync(file),
);

/** A Redis of its own on the loopback interface, with a password. */
export interface RedisServer {
  /** For `REDIS_URL`. */
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** Asks it beside the service. */
  readonly client: Redis;
  /** It does not answer any more, and its connections stay. */
  freeze(): void;
  thaw(): void;
  /** As a crash does. What it held is lost. */
  kill(): Promise<void>;
  /** On the same port, unless it runs. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** @throws Error where none is installed: `.ci/run` installs it */
export async function startRedis(more: readonly string[] = []): Promise<RedisServer> {
  const binary = BINARY;
  if (!binary) throw new Error('Install redis-server, or name it in REDIS_SERVER.');
  const port = await freePort();
  const password = 'a:password@of/redis';
  const listening = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const url = `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`;
  const client = new Redis({ host: '127.0.0.1', port, password, lazyConnect: true, retryStrategy: () => 50 });
  client.on('error', () => undefined); // it is killed on purpose
  const run = () => spawn(binary, [...listening, '--requirepass', password, ...more], { stdio: 'ignore' });
  let server: ReturnType<typeof run> | null = null;
  const start = async (): Promise<void> => {
    server ??= run();
    if (client.status === 'wait') client.connect().catch(() => undefined); // it tries again until the server listens
    await waitUntil(async () => (await client.ping().catch(() => null)) === 'PONG');
  };
  const kill = async (): Promise<void> => {
    if (!server) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
    server = null;
  };
  await start();
  return {
    url,
    port,
    password,
    client,
    start,
    kill,
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
    async stop() {
      client.disconnect();
      await kill();
    },
  };
}
