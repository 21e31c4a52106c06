import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { projectRoot } from '../../src/paths.ts';
import { asServerUser, serverUser } from '../../src/platform/postgres/postgres-binaries.ts';
import { freePort } from './free-port.ts';
import { waitUntil } from './wait.ts';

const PROGRAMS = { patroni: '/usr/bin/patroni', etcd: '/usr/bin/etcd', haproxy: '/usr/sbin/haproxy' };
const DEBIAN = '/usr/lib/postgresql';

/** The newest PostgreSQL of the system that has what Patroni calls. */
function serverPrograms(): string | undefined {
  if (!existsSync(DEBIAN)) return undefined;
  return readdirSync(DEBIAN)
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => path.join(DEBIAN, version, 'bin'))
    .find((folder) => ['postgres', 'pg_basebackup', 'pg_rewind'].every((name) => existsSync(path.join(folder, name))));
}

/** Packages of Debian that this machine lacks for it. */
export function missingForPatroni(): string[] {
  return [
    ...(existsSync(PROGRAMS.patroni) ? [] : ['patroni']),
    ...(existsSync(PROGRAMS.etcd) ? [] : ['etcd-server']),
    ...(existsSync(PROGRAMS.haproxy) ? [] : ['haproxy']),
    ...(serverPrograms() ? [] : ['postgresql']),
  ];
}

/** As Patroni tells of a server. */
interface Member {
  name: string;
  role: string;
  state: string;
}

interface Node {
  name: string;
  dir: string;
  port: number;
  apiPort: number;
  file: string;
  process: ChildProcess | null;
}

/** Two PostgreSQL servers that Patroni keeps with etcd, and HAProxy as it is shipped, which leads to the primary. */
export class PatroniCluster {
  /** Leads to the primary. */
  readonly url: string;
  readonly #base: string;
  readonly #nodes: readonly Node[];
  readonly #helpers: readonly ChildProcess[];

  private constructor(url: string, base: string, nodes: readonly Node[], helpers: readonly ChildProcess[]) {
    this.url = url;
    this.#base = base;
    this.#nodes = nodes;
    this.#helpers = helpers;
  }

  static async start(): Promise<PatroniCluster> {
    const base = mkdtempSync(path.join(tmpdir(), 'patroni-'));
    const user = serverUser();
    if (user) chownSync(base, user.uid, user.gid);
    const etcdPort = await freePort();
    const etcd = startEtcd(path.join(base, 'etcd'), etcdPort, await freePort());
    await waitUntil(async () => (await fetch(`http://127.0.0.1:${etcdPort}/health`)).ok);
    const nodes: Node[] = [];
    for (const name of ['node1', 'node2']) {
      const node = { name, dir: path.join(base, name), port: await freePort(), apiPort: await freePort() };
      const file = path.join(base, `${name}.json`); // JSON is YAML
      writeFileSync(file, JSON.stringify(settingsOf(node, base, etcdPort)));
      nodes.push({ ...node, file, process: null });
    }
    const port = await freePort();
    const haproxy = startHaproxy(path.join(base, 'haproxy.cfg'), port, nodes);
    const cluster = new PatroniCluster(`postgres://postgres@127.0.0.1:${port}/postgres`, base, nodes, [etcd, haproxy]);
    try {
      for (const node of nodes) cluster.#run(node);
      await cluster.hasStandby('sync_standby');
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Waits until there is a primary, and a server that follows it in this role. @returns the name of the primary */
  async hasStandby(role: 'sync_standby' | 'replica'): Promise<string> {
    return waitUntil(
      async () => {
        const members = await this.#members();
        const follows = (member: Member) => member.role === role && ['running', 'streaming'].includes(member.state);
        return members.some(follows) && members.find((member) => member.role === 'leader')?.name;
      },
      { withinMs: 120_000, what: `a primary and a ${role}` },
    );
  }

  /** Waits until another server leads. */
  async hasLeaderOtherThan(name: string): Promise<void> {
    await waitUntil(
      async () => {
        const leader = (await this.#members()).find((member) => member.role === 'leader');
        return leader !== undefined && leader.state === 'running' && leader.name !== name;
      },
      { withinMs: 120_000, what: `a primary other than ${name}` },
    );
  }

  /** As `patronictl switchover` does. */
  async switchOver(from: string): Promise<void> {
    const to = this.#nodes.find(({ name }) => name !== from)!.name;
    await this.#ask('POST', '/switchover', { leader: from, candidate: to });
  }

  /** As `patronictl edit-config` does. */
  async configure(settings: object): Promise<void> {
    await this.#ask('PATCH', '/config', settings);
  }

  /** As a machine that loses its power does. */
  async kill(name: string): Promise<void> {
    const node = this.#nodes.find((one) => one.name === name)!;
    const child = node.process!;
    const ended = once(child, 'close');
    child.kill('SIGKILL');
    for (const pid of serverPids(node)) killIfRunning(pid, 'SIGKILL');
    await ended;
    node.process = null;
  }

  restart(name: string): void {
    this.#run(this.#nodes.find((one) => one.name === name)!);
  }

  /** From now on the primary sends nothing to who follows it. */
  async stopSending(name: string): Promise<void> {
    const { port } = this.#nodes.find((one) => one.name === name)!;
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
    await client.connect();
    try {
      const { rows } = await client.query<{ pid: number }>('select pid from pg_stat_replication');
      for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
    } finally {
      await client.end();
    }
  }

  async stop(): Promise<void> {
    for (const node of this.#nodes) if (node.process) await this.kill(node.name);
    for (const child of this.#helpers) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#base, { recursive: true, force: true });
  }

  #run(node: Node): void {
    const command = asServerUser(serverUser(), [node.file], PROGRAMS.patroni, [node.file]);
    node.process = spawn(command.file, command.args, { ...command.options, stdio: 'ignore' });
  }

  async #members(): Promise<Member[]> {
    return ((await this.#ask('GET', '/cluster')) as { members: Member[] }).members;
  }

  async #ask(method: string, at: string, body?: object): Promise<unknown> {
    const { apiPort } = this.#nodes.find((node) => node.process !== null)!;
    const init = { method, ...(body ? { body: JSON.stringify(body) } : {}), signal: AbortSignal.timeout(60_000) };
    const answer = await fetch(`http://127.0.0.1:${apiPort}${at}`, init);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Patroni answers ${answer.status} to ${method} ${at}: ${text}`);
    return text.startsWith('{') ? JSON.parse(text) : text;
  }
}

function startEtcd(dir: string, port: number, peerPort: number): ChildProcess {
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const args = ['--name', 'one', '--data-dir', dir, '--listen-client-urls', client, '--advertise-client-urls', client];
  args.push('--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `one=${peer}`);
  return spawn(PROGRAMS.etcd, args, { env: { PATH: process.env.PATH }, stdio: 'ignore' });
}

function startHaproxy(file: string, port: number, nodes: readonly Node[]): ChildProcess {
  const shipped = readFileSync(path.join(projectRoot, 'deploy', 'proxy', 'haproxy.cfg'), 'utf8');
  const servers = nodes.map((node) => `\tserver ${node.name} 127.0.0.1:${node.port} check port ${node.apiPort}\n`);
  const text = shipped
    .replace('bind 127.0.0.1:5000', `bind 127.0.0.1:${port}`)
    .replace(/(?:\tserver .*\n)+/, servers.join(''));
  writeFileSync(file, text);
  return spawn(PROGRAMS.haproxy, ['-db', '-f', file], { stdio: 'ignore' });
}

function settingsOf(node: Omit<Node, 'file' | 'process'>, base: string, etcdPort: number): object {
  const api = `127.0.0.1:${node.apiPort}`;
  const server = `127.0.0.1:${node.port}`;
  return {
    scope: 'platform',
    name: node.name,
    log: { level: 'INFO', dir: logFolder(node.dir) },
    restapi: { listen: api, connect_address: api },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ttl: 6,
        loop_wait: 1,
        retry_timeout: 2,
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 100, wal_log_hints: 'on', fsync: 'off' } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }],
    },
    postgresql: {
      listen: server,
      connect_address: server,
      data_dir: node.dir,
      bin_dir: serverPrograms(),
      pgpass: path.join(base, `${node.name}.pgpass`),
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      parameters: { unix_socket_directories: '' },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    },
  };
}

function logFolder(dir: string): string {
  const folder = `${dir}-log`;
  mkdirSync(folder);
  const user = serverUser();
  if (user) chownSync(folder, user.uid, user.gid);
  return folder;
}

/** The server and all of its processes. */
function serverPids({ dir }: Node): number[] {
  const file = path.join(dir, 'postmaster.pid');
  if (!existsSync(file)) return [];
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
  const children = path.join('/proc', String(pid), 'task', String(pid), 'children');
  if (!existsSync(children)) return [];
  return [pid, ...readFileSync(children, 'utf8').trim().split(' ').filter(Boolean).map(Number)];
}

function killIfRunning(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
