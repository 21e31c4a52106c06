import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { CallEnd } from './action-calls.ts';
import type { PagesEnd } from './page-items.ts';
import { ALL_PAGES_MS, type ListReading, type PagedCalls, type StreamedAction } from './paged-calls.ts';
import type { ToolActionResult } from './tool-action-result.ts';

/** A page of a list, or how the reading has ended: the last message, which has no page. */
export interface StreamedPage {
  orgId: string;
  /** From 1. */
  page: number | null;
  items: unknown[] | null;
  end: ToolActionResult | null;
}

/** What one message says at most once. */
export const pageOf = (orgId: string, given: Partial<StreamedPage>): StreamedPage => ({
  orgId,
  page: null,
  items: null,
  end: null,
  ...given,
});

/** For whoever asks for pages that are not read: one message. */
export async function* onlyEnd(end: ToolActionResult): AsyncGenerator<StreamedPage, void, void> {
  yield pageOf(end.orgId, { end });
}

interface StreamedReading {
  /** The pages, one after the other. */
  pages: ReturnType<PagedCalls['read']>;
  reading: ListReading;
  called: StreamedAction;
  /** Ends the call that runs. */
  abort: AbortController;
  /** Counts and records how it ended, and gives back what it holds. Called once. */
  finish: (end: CallEnd) => Promise<ToolActionResult>;
  endOf: PagedCalls['endOf'];
}

/**
 * The pages of an execution, each read when the client has taken the one before. A client that leaves ends the call
 * that runs, and one that stands still ends with the time of all pages: how far it came is recorded once, whoever ends
 * it.
 */
export class StreamedPages implements AsyncIterableIterator<StreamedPage, void, void> {
  readonly #work: StreamedReading;
  readonly #late: NodeJS.Timeout;
  #ending: Promise<ToolActionResult> | null = null;
  #isOver = false;

  constructor(work: StreamedReading, limitMs = ALL_PAGES_MS) {
    this.#work = work;
    this.#late = setTimeout(() => this.#stop('time'), limitMs).unref();
  }

  async next(): Promise<IteratorResult<StreamedPage, void>> {
    if (this.#isOver) return { done: true, value: undefined };
    const { pages, reading, called } = this.#work;
    const { orgId } = called.instance;
    const ended = this.#ending ? null : await this.#read();
    if (ended === undefined && !this.#ending)
      return { done: false, value: pageOf(orgId, { page: reading.count, items: reading.items.take() }) };
    this.#isOver = true;
    void pages.return('left');
    const end = await (this.#ending ?? this.#end(ended!));
    return { done: false, value: pageOf(orgId, { end }) };
  }

  /** The client has left. */
  async return(): Promise<IteratorResult<StreamedPage, void>> {
    this.#isOver = true;
    this.#stop('left');
    await this.#ending;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Reads a page. @returns why there is none, if there is none; a fault of the service is told and recorded, too */
  async #read(): Promise<PagesEnd | undefined> {
    const { pages, reading } = this.#work;
    try {
      const step = await pages.next();
      return step.done ? step.value : undefined;
    } catch (error) {
      this.#isOver = true;
      reading.failure ??= { code: 'fault', message: 'The service has failed.' };
      await (this.#ending ?? this.#end('failed'));
      throw error;
    }
  }

  #stop(ended: 'time' | 'left'): void {
    this.#work.abort.abort(new OutboundError('aborted'));
    // whoever waits for it sees the error; otherwise nobody does
    if (!this.#ending) this.#end(ended).catch(() => undefined);
  }

  #end(ended: PagesEnd): Promise<ToolActionResult> {
    clearTimeout(this.#late);
    const { endOf, called, reading, finish } = this.#work;
    if (ended === 'left' && reading.count === 0)
      reading.failure ??= { code: 'aborted', message: 'The client left before the first page was read.' };
    this.#ending = finish(endOf(called, reading, ended));
    return this.#ending;
  }
}
