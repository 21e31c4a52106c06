import cluster from 'node:cluster';
import { once } from 'node:events';
import type { DatabasePlace } from '../postgres/database.ts';
import { mergedMetrics } from './merged-metrics.ts';
import type { ToParent, ToWorker } from './worker-messages.ts';

/** Sent by a parent when a worker may close the socket. A signal, because they may be disconnected by then. */
export const RELEASED: NodeJS.Signals = 'SIGCONT';
/** A parent that is gone sends nothing. */
const RELEASE_MS = 2_000;

/** What a worker is told when it begins. */
export type Begin = Extract<ToWorker, { kind: 'begin' }>;

/** The other workers of a node, as one of them sees them. */
export interface Siblings {
  /** From 1. Whoever takes the place of one that died has its number. */
  readonly number: number;
  /** Of this start of the node. */
  readonly nodeId: string;
  /** How many there should be. */
  readonly of: number;
  /** How many are ready now. */
  readonly running: number;
  /** Says what the metrics of this worker are. */
  onCollect(read: () => Promise<string>): void;
  /** The metrics of all workers. */
  gather(): Promise<string>;
}

/** The parent of this process, if it is a worker. */
export class WorkerLink implements Siblings {
  readonly #begin: Begin;
  readonly #gathering = new Map<number, (texts: string[]) => void>();
  #running: number;
  #read: () => Promise<string> = () => Promise.resolve('');
  #asked = 0;
  #onStop: () => void = () => undefined;
  #isStopped = false;

  private constructor(begin: Begin) {
    this.#begin = begin;
    this.#running = begin.of;
  }

  /** Asks the parent what to do. `null` in a process that is no worker. */
  static async open(): Promise<WorkerLink | null> {
    if (!cluster.isWorker) return null;
    return new Promise((resolve) => {
      let link: WorkerLink | undefined;
      process.on('message', (message: ToWorker) => {
        if (message.kind === 'begin') {
          link = new WorkerLink(message);
          resolve(link);
        } else if (link) link.#take(message);
      });
      tell({ kind: 'hello' });
    });
  }

  get number(): number {
    return this.#begin.number;
  }

  get of(): number {
    return this.#begin.of;
  }

  get nodeId(): string {
    return this.#begin.nodeId;
  }

  get running(): number {
    return this.#running;
  }

  get database(): DatabasePlace {
    return this.#begin.database;
  }

  /** Calls it when the parent stops the node, at once if it has. */
  onStop(stop: () => void): void {
    this.#onStop = stop;
    if (this.#isStopped) stop();
  }

  ready(base: string): void {
    tell({ kind: 'ready', base });
  }

  /**
   * Resolves when this process may close the socket that it listens at. When the node stops, the parent closes it
   * first: a socket that only the parent holds would accept connections that nobody takes. The two are disconnected
   * then.
   */
  async released(): Promise<void> {
    if (!process.connected) return;
    cluster.worker!.exitedAfterDisconnect = true; // or the process would end with its connection to the parent
    const released = once(process, RELEASED, { signal: AbortSignal.timeout(RELEASE_MS) });
    tell({ kind: 'leaving' });
    await released.catch(() => undefined); // the time is over
    for (const done of this.#gathering.values()) done([await this.#read()]);
    this.#gathering.clear();
  }

  /** Why this worker could not start. */
  fault(sentence: string): void {
    tell({ kind: 'fault', sentence });
  }

  onCollect(read: () => Promise<string>): void {
    this.#read = read;
  }

  async gather(): Promise<string> {
    if (!process.connected) return mergedMetrics([await this.#read()]);
    const id = ++this.#asked;
    const texts = new Promise<string[]>((resolve) => this.#gathering.set(id, resolve));
    tell({ kind: 'gather', id });
    return mergedMetrics(await texts);
  }

  #take(message: Exclude<ToWorker, Begin>): void {
    if (message.kind === 'running') this.#running = message.running;
    else if (message.kind === 'collect') void this.#answer(message.id);
    else if (message.kind === 'collected') {
      this.#gathering.get(message.id)?.(message.texts);
      this.#gathering.delete(message.id);
    } else {
      this.#isStopped = true;
      this.#onStop();
    }
  }

  async #answer(id: number): Promise<void> {
    tell({ kind: 'metrics', id, text: await this.#read() });
  }
}

/** A parent that is gone hears nothing: this process is about to end with it. */
function tell(message: ToParent): void {
  if (process.connected) process.send!(message, undefined, {}, () => undefined);
}
