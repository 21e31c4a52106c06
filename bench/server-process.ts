import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TICKS_PER_SECOND = 100; // in /proc, on all current Linux systems

/** A server under load, in its own process. */
export class ServerProcess {
  readonly name: string;
  readonly url: string;
  /** Milliseconds from the start of the process until it can answer. */
  readonly startMs: number;
  readonly #child: ChildProcess;

  private constructor(name: string, url: string, startMs: number, child: ChildProcess) {
    this.name = name;
    this.url = url;
    this.startMs = startMs;
    this.#child = child;
  }

  /** Starts it and waits until it prints its address. */
  static async start(name: string, args: string[], env: Record<string, string>): Promise<ServerProcess> {
    const started = performance.now();
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = await new Promise<string>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
      createInterface({ input: child.stdout! }).on('line', (line) => {
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (found) resolve(found);
      });
    });
    return new ServerProcess(name, url, performance.now() - started, child);
  }

  /** Seconds of CPU used so far, user and system. */
  cpuSeconds(): number {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }

  /** Resident memory in MiB. */
  residentMiB(): number {
    const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'))?.[1];
    return Number(kib) / 1024;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }
}
