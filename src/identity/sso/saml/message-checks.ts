import { unavailable } from '../../../kernel/errors.ts';
import { moduleOf } from '../../../paths.ts';
import { BoundedThread, ThreadError, type ThreadLimits } from '../../../platform/threads/bounded-thread.ts';
import { unfinishedWork } from '../../../platform/threads/unfinished-work.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { CheckEnd, Checks } from './check-thread.ts';

/** The most expensive message takes half a second of a processor; a busy machine takes its time for it. */
const LIMITS: ThreadLimits = { timeMs: 10_000, heapMiB: 256, mostPending: 32 };
/** Administrators say where metadata is: it must not take the room of sign-ins. */
const MOST_METADATA = 4;

/**
 * Checks messages of SAML in a thread of their own (docs/decisions/0024): whoever sends one decides how long its
 * signature takes to check, and nobody else waits for that.
 */
export class MessageChecks {
  readonly #thread: BoundedThread;
  #metadata = 0;

  /** @param limits that a test may lower */
  constructor(limits: Partial<ThreadLimits> = {}) {
    this.#thread = new BoundedThread(moduleOf('identity/sso/saml/check-thread'), { ...LIMITS, ...limits });
  }

  /** Messages that are checked, or wait for it. */
  get pending(): number {
    return this.#thread.pending;
  }

  /** Refuses before anything is used up. @throws SERVICE_UNAVAILABLE while too many messages wait */
  demandRoom(): void {
    if (this.#thread.isFull) throw unavailable();
  }

  /** @throws SsoRefusal; SERVICE_UNAVAILABLE while too many messages wait, or too much metadata */
  async run<Name extends keyof Checks>(name: Name, input: Parameters<Checks[Name]>[0]): Promise<CheckResult<Name>> {
    if (name !== 'metadata') return this.#run(name, input);
    if (this.#metadata >= MOST_METADATA) throw unavailable();
    this.#metadata += 1;
    try {
      return await this.#run(name, input);
    } finally {
      this.#metadata -= 1;
    }
  }

  async #run<Name extends keyof Checks>(name: Name, input: Parameters<Checks[Name]>[0]): Promise<CheckResult<Name>> {
    const end = (await this.#thread.run({ name, input }).catch((error: unknown) => {
      if (!(error instanceof ThreadError)) throw error;
      throw unfinishedWork(error, (what) => new SsoRefusal(`the message takes too ${what} to check`));
    })) as CheckEnd<CheckResult<Name>>;
    if ('refusal' in end) throw new SsoRefusal(end.refusal);
    return end.accepted;
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

type CheckResult<Name extends keyof Checks> = Awaited<ReturnType<Checks[Name]>>;
