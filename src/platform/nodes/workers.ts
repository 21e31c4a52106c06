import cluster, { type Worker } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../logger.ts';
import type { DatabasePlace } from '../postgres/database.ts';
import { RELEASED } from './worker-link.ts';
import type { ToParent, ToWorker } from './worker-messages.ts';

/** Whoever was ready for so long had no part in why it died before. */
const STEADY_MS = 60_000;
const LONGEST_PAUSE_MS = 30_000;
/** So often in a row may a worker die while no other one runs. */
const MOST_DEATHS = 5;
const METRICS_MS = 2_000;

interface WorkersDeps {
  count: number;
  database: DatabasePlace;
  /** What each worker runs. */
  program: { file: string; execArgv: string[]; args: string[] };
  logger: Logger;
  /** None is left, and new ones die as well. */
  onGone: (reason: string) => void;
}

/** The place of a worker: one after another has it. */
interface WorkerSlot {
  number: number;
  worker: Worker | null;
  isReady: boolean;
  readyAt: number;
  /** In a row. */
  deaths: number;
  isLeaving: boolean;
}

/** The metrics that a worker has asked for. */
interface Gathering {
  missing: Set<Worker>;
  texts: string[];
  done: () => void;
}

/**
 * The processes of a node, which listen on one port. The kernel gives each connection to one that is free, so none is
 * lost with a worker but those that it had. A worker that dies is replaced.
 */
export class WorkerProcesses {
  readonly #deps: WorkersDeps;
  readonly #nodeId = randomUUID();
  readonly #places: WorkerSlot[];
  readonly #gatherings = new Map<number, Gathering>();
  #gathered = 0;
  #deaths = 0;
  #isStopping = false;

  constructor(deps: WorkersDeps) {
    this.#deps = deps;
    this.#places = Array.from({ length: deps.count }, (_, at) => ({
      number: at + 1,
      worker: null,
      isReady: false,
      readyAt: 0,
      deaths: 0,
      isLeaving: false,
    }));
    const { file, execArgv, args } = deps.program;
    // the parent would be on the way of each connection, and keep one that it has just handed to a worker that died
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ exec: file, execArgv, args });
  }

  /**
   * Starts them: the first one alone, which makes what all need.
   * @returns the address at which they listen
   * @throws Error with the reason of one that could not start
   */
  async start(): Promise<string> {
    const [first, ...others] = this.#places;
    const base = await this.#begin(first!);
    await Promise.all(others.map((place) => this.#begin(place)));
    return base;
  }

  /** Lets them finish what they do. @throws Error when some did not end as they should */
  async stop(withinMs: number): Promise<void> {
    this.#isStopping = true;
    const running = this.#places.flatMap(({ worker }) => worker ?? []);
    const ended = running.map((worker) => once(worker, 'exit') as Promise<[number | null, string | null]>);
    for (const worker of running) tell(worker, { kind: 'stop' });
    const late = delay(withinMs, 'late' as const, { ref: false });
    const codes = await Promise.race([Promise.all(ended), late]);
    if (codes === 'late') {
      for (const worker of running) worker.process.kill('SIGKILL');
      throw new Error(`not all workers have ended after ${withinMs / 1_000} s`);
    }
    const bad = codes.filter(([code]) => code !== 0).length;
    if (bad > 0) throw new Error(`${bad} workers did not end as they should`);
  }

  get #running(): WorkerSlot[] {
    return this.#places.filter(({ isReady }) => isReady);
  }

  /** @returns the address at which it listens. @throws Error when it ends before */
  #begin(place: WorkerSlot): Promise<string> {
    const { count, database } = this.#deps;
    const worker = cluster.fork();
    place.worker = worker;
    return new Promise((resolve, reject) => {
      let fault: string | undefined;
      worker.on('message', (message: ToParent) => {
        if (message.kind === 'hello') {
          tell(worker, { kind: 'begin', number: place.number, of: count, nodeId: this.#nodeId, database });
          if (this.#isStopping) tell(worker, { kind: 'stop' });
        } else if (message.kind === 'fault') fault = message.sentence;
        else if (message.kind === 'gather') void this.#gather(worker, message.id);
        else if (message.kind === 'metrics') this.#collected(worker, message.id, message.text);
        else if (message.kind === 'leaving') {
          place.isLeaving = true;
          void this.#release();
        } else {
          place.isReady = true;
          place.readyAt = Date.now();
          this.#tellRunning();
          resolve(message.base);
        }
      });
      worker.once('exit', (code, signal) => {
        const how = fault ?? `worker ${place.number} ended with ${signal ?? `code ${code}`}`;
        place.worker = null;
        place.isLeaving = false;
        this.#forget(worker);
        void this.#release();
        if (place.isReady) this.#died(place, how);
        reject(new Error(how)); // without effect when it was ready
      });
    });
  }

  /** Lets workers close the socket that they listen at: together when the node stops, else each by itself. */
  async #release(): Promise<void> {
    if (this.#isStopping) {
      if (this.#places.some(({ isLeaving, worker }) => worker && !isLeaving)) return;
      await this.#closeShare();
    }
    for (const { isLeaving, worker } of this.#places) if (isLeaving) worker?.process.kill(RELEASED);
  }

  /**
   * Closes the socket in this process, which has it for workers that start later: connections that come after the last
   * worker has closed it must be refused. Node closes it when no worker is connected any more.
   */
  async #closeShare(): Promise<void> {
    const connected = this.#places.flatMap(({ worker }) => (worker?.isConnected() ? worker : []));
    const closed = connected.map((worker) => once(worker, 'disconnect'));
    for (const worker of connected) worker.process.disconnect();
    await Promise.all(closed);
  }

  #died(place: WorkerSlot, how: string): void {
    place.isReady = false;
    this.#tellRunning();
    if (this.#isStopping) return;
    if (Date.now() - place.readyAt >= STEADY_MS) place.deaths = 0;
    this.#deps.logger.error({ worker: place.number, how }, 'a worker has ended, another one takes its place');
    void this.#replace(place, how);
  }

  async #replace(place: WorkerSlot, how: string): Promise<void> {
    this.#deaths++;
    place.deaths++;
    if (place.deaths > MOST_DEATHS && this.#running.length === 0) return this.#deps.onGone(how);
    // the first one at once
    const pauseMs = place.deaths === 1 ? 0 : Math.min(LONGEST_PAUSE_MS, 500 * 2 ** (place.deaths - 1));
    await delay(pauseMs);
    if (this.#isStopping) return;
    try {
      await this.#begin(place);
      this.#deps.logger.info({ worker: place.number }, 'the worker is ready again');
    } catch (error) {
      if (this.#isStopping) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#deps.logger.error({ worker: place.number, how: reason }, 'a worker could not start, it is tried again');
      await this.#replace(place, reason);
    }
  }

  #tellRunning(): void {
    const running = this.#running.length;
    for (const { worker } of this.#running) if (worker) tell(worker, { kind: 'running', running });
  }

  /** Asks all workers for their metrics. One that does not answer in time is left out. */
  async #gather(asking: Worker, id: number): Promise<void> {
    const own = ++this.#gathered;
    const asked = this.#running.flatMap(({ worker }) => worker ?? []);
    const texts: string[] = [];
    const all = new Promise<void>((done) => this.#gatherings.set(own, { missing: new Set(asked), texts, done }));
    for (const worker of asked) tell(worker, { kind: 'collect', id: own });
    await Promise.race([all, delay(METRICS_MS, undefined, { ref: false })]);
    this.#gatherings.delete(own);
    tell(asking, { kind: 'collected', id, texts: [...texts, this.#ownMetrics()] });
  }

  #ownMetrics(): string {
    return (
      '# HELP platform_worker_deaths Workers of this node that ended by themselves.\n' +
      `# TYPE platform_worker_deaths counter\nplatform_worker_deaths_total ${this.#deaths}\n`
    );
  }

  #collected(worker: Worker, id: number, text: string): void {
    const gathering = this.#gatherings.get(id);
    if (!gathering?.missing.delete(worker)) return;
    gathering.texts.push(text);
    if (gathering.missing.size === 0) gathering.done();
  }

  #forget(worker: Worker): void {
    for (const gathering of this.#gatherings.values())
      if (gathering.missing.delete(worker) && gathering.missing.size === 0) gathering.done();
  }
}

/** One that is gone hears nothing, and its end is told otherwise. */
function tell(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => undefined);
}
