import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const TICKS_PER_SECOND = 100; // in /proc, on all current Linux systems
/** Memory that changes by less than this from one collection to the next is what a process holds. */
const HELD_MIB = 0.3;
const COLLECTIONS = 20;

/** Arguments of Node for servers of which {@link ServerProcess.heldMiB} is asked. */
export const COLLECTING = ['--expose-gc', '--import', './bench/servers/collect.mjs'];

function cpuSecondsOf(pid: number | string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** A server under load, in its own process. */
export class ServerProcess {
  readonly name: string;
  readonly url: string;
  /** Milliseconds from the start of the process until it can answer. */
  readonly startMs: number;
  readonly #child: ChildProcess;
  readonly #lines: Interface;

  private constructor(name: string, url: string, startMs: number, child: ChildProcess, lines: Interface) {
    this.name = name;
    this.url = url;
    this.startMs = startMs;
    this.#child = child;
    this.#lines = lines;
  }

  /** Starts it and waits until it prints its address. */
  static async start(name: string, args: string[], env: Record<string, string>): Promise<ServerProcess> {
    const started = performance.now();
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout! });
    const url = await new Promise<string>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
      lines.on('line', (line) => {
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (found) resolve(found);
      });
    });
    return new ServerProcess(name, url, performance.now() - started, child, lines);
  }

  /** Seconds of CPU used so far, user and system. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#child.pid!);
  }

  /** The same with the processes that it started. */
  cpuSecondsOfAll(): number {
    const { pid } = this.#child;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return children.filter(Boolean).reduce((sum, child) => sum + cpuSecondsOf(child), this.cpuSeconds());
  }

  /** Resident memory in MiB. */
  residentMiB(): number {
    return this.#kibOf('VmRSS') / 1024;
  }

  #kibOf(name: string): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]);
  }

  /**
   * What the process itself keeps in memory, in MiB: without garbage, and without the pages of files, which come and go
   * with what else the machine does. Needs {@link COLLECTING}.
   */
  async heldMiB(): Promise<number> {
    let held = Number.POSITIVE_INFINITY;
    for (let collection = 0; collection < COLLECTIONS; collection++) {
      const collected = new Promise<void>((resolve) => {
        const listen = (line: string) => {
          if (line !== 'collected') return;
          this.#lines.off('line', listen);
          resolve();
        };
        this.#lines.on('line', listen);
      });
      this.#child.kill('SIGUSR2');
      await collected;
      await delay(500); // pages are returned in the background
      const now = (this.#kibOf('RssAnon') + this.#kibOf('VmSwap')) / 1024;
      if (Math.abs(held - now) < HELD_MIB) return now;
      held = now;
    }
    return held;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }
}
