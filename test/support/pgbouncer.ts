import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { bouncers, type PgBouncer } from '../../scripts/pgbouncer.mjs';
import { asServerUser, serverUser } from '../../src/platform/postgres/postgres-binaries.ts';
import { freePort } from './free-port.ts';
import { waitFor } from './wait.ts';

/** A PgBouncer in a process of its own. */
export interface RunningPgBouncer {
  /** The URL of a database of the server behind it. */
  urlOf(database: string): string;
  stop(): Promise<void>;
}

export interface PgBouncerOptions {
  /** The server behind it, on a Unix socket; any database. */
  serverUrl: string;
  /** Default: one that keeps prepared statements. */
  bouncer?: PgBouncer | undefined;
  /** Of `[pgbouncer]`, besides or in place of those of tests. */
  settings?: Record<string, string | number>;
  /** More of the line of `[databases]`. */
  overrides?: string;
}

/** Starts one in transaction mode. @throws Error where none is, with what fetches it */
export async function startPgBouncer({
  serverUrl,
  bouncer = bouncers().current,
  settings = {},
  overrides = '',
}: PgBouncerOptions): Promise<RunningPgBouncer> {
  if (!bouncer) throw new Error('No PgBouncer is here: run `node scripts/pgbouncer.mjs`.');
  const { host, port: serverPort, user } = new pg.Client({ connectionString: serverUrl });
  const port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), 'pgbouncer-'));
  chmodSync(folder, 0o755); // it reads them as the user of the server
  const users = path.join(folder, 'users.txt');
  writeFileSync(users, `"${user}" ""\n`);
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: 'transaction',
    max_client_conn: 1_000,
    default_pool_size: 20,
    server_login_retry: '0.2',
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const file = path.join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]\n* = host=${host} port=${serverPort} ${overrides}\n[pgbouncer]\n${lines.join('\n')}\n`,
  );
  const [program, ...args] = [...bouncer.command, file];
  // nobody else may enter the folder of the server's socket, and it refuses to run as root
  const command = asServerUser(serverUser(), [path.join(host, 'socket'), program!, file], program!, args);
  const child = spawn(command.file, command.args, { ...command.options, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(-4_000);
  });
  const ended = once(child, 'close');
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended:\n${output}`);
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });
  return {
    urlOf: (database) => `postgresql://${user}@127.0.0.1:${port}/${database}`,
    async stop() {
      child.kill('SIGQUIT'); // at once, whoever is connected
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
