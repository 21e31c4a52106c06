import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { UnusableAction } from '../tool-instances/action-request.ts';
import { headersOf, pageResult, shownAnswer, USUAL_BYTES } from './action-answer.ts';
import {
  type ActionCalls,
  type CallEnd,
  type CalledAction,
  end,
  failureOf,
  outcomeOf,
  redactorOf,
  type Trace,
} from './action-calls.ts';
import type { ActionLimits } from './action-limits.ts';
import { type ItemBounds, OF_A_STREAM, OF_ONE_LIST, PageItems, type PagesEnd } from './page-items.ts';
import { type AnsweredPage, type NoPage, type PageChoice, type Pagination, partsOfPage, sentIn } from './pagination.ts';

/** Most pages of one execution. */
export const MAX_PAGES = 100;
/** Limit of all pages together. */
export const ALL_PAGES_MS = 120_000;

/** A list that is read page by page. */
export interface PagedAction extends CalledAction {
  pagination: Pagination;
  /** Most pages. */
  most: number;
}

/** One whose pages leave one by one, while others are still read. */
export interface StreamedAction extends PagedAction {
  /** Ends the reading. */
  signal: AbortSignal;
  /** Asked before each further page. @throws ApiError if the caller may not go on */
  demand: () => Promise<void>;
}

type Shown = Pick<CallEnd, 'status' | 'headers' | 'excerpt'>;
type Failure = Pick<CallEnd, 'code' | 'message'>;

/** What the pages have given so far. */
export class ListReading {
  readonly startedAt = performance.now();
  readonly endsAt = this.startedAt + ALL_PAGES_MS;
  readonly trace: Trace = { used: new Set(), attempts: 0, url: '' };
  readonly items: PageItems;
  readonly isStreamed: boolean;
  count = 0;
  sizeBytes = 0;
  shown: Shown = { status: null, headers: {}, excerpt: null };
  failure: Failure | null = null;

  constructor({ uniqueKey }: Pagination, bounds: ItemBounds = OF_ONE_LIST) {
    this.items = new PageItems(uniqueKey, bounds);
    this.isStreamed = bounds === OF_A_STREAM;
  }

  get leftMs(): number {
    return this.endsAt - performance.now();
  }

  /** Notes why there is no more. */
  fails(failure: Failure, ended: PagesEnd = 'failed'): PagesEnd {
    this.failure = failure;
    return ended;
  }
}

/**
 * Reads the lists of actions page by page, one after the other. Each page is a call like any other one, with its time,
 * its size, its retries and its part of the limit of its `rate_limit_group`. What was read before a failure is shown.
 */
export class PagedCalls {
  readonly #calls: ActionCalls;
  readonly #limits: ActionLimits;

  constructor(calls: ActionCalls, limits: ActionLimits) {
    this.#calls = calls;
    this.#limits = limits;
  }

  /** Reads all pages into one list. @throws UnusableAction, as for a call without pages */
  async make(caller: Caller, called: PagedAction): Promise<CallEnd> {
    const reading = new ListReading(called.pagination);
    const pages = this.read(caller, called, reading);
    for (;;) {
      const step = await pages.next();
      if (!step.done) continue;
      return this.endOf(called, reading, step.value, reading.count > 0 ? listOf(reading.items) : {});
    }
  }

  /** How the reading of a list has ended. @param shown of its items */
  endOf(
    called: PagedAction,
    { failure, items, count, trace, startedAt, sizeBytes, shown }: ListReading,
    ended: PagesEnd,
    given: Partial<Pick<CallEnd, 'format' | 'result' | 'truncated' | 'whole'>> = {},
  ): CallEnd {
    return end({
      success: true,
      code: 'ok',
      message: `${called.tool.name} answered ${count} page${count === 1 ? '' : 's'}.`,
      ...(failure && { ...failure, success: false }),
      ...shown,
      truncated: ended === 'size',
      ...given,
      sizeBytes,
      attempts: trace.attempts,
      durationMs: Math.round(performance.now() - startedAt),
      pages: { count, items: items.count, hasMore: ended !== 'end', ended },
    });
  }

  /** Reads the pages, and stops after each whose items can be taken. @returns why there is no further one */
  async *read(
    caller: Caller,
    called: PagedAction | StreamedAction,
    reading: ListReading,
  ): AsyncGenerator<void, PagesEnd, void> {
    const nextOf = called.pagination.start();
    let origin: string | null = null;
    for (let parts = called.parts; ; ) {
      const { count } = reading;
      const page = await this.#page(caller, { ...called, parts }, reading);
      if (reading.count > count) yield;
      if (typeof page === 'string') return page;
      const next = nextOf(page);
      if (reading.count >= called.most && (typeof next !== 'string' || next === 'elsewhere')) return 'max_pages';
      origin ??= new URL(reading.trace.url).origin;
      if (next === 'elsewhere' || isElsewhere(next, origin)) return reading.fails(elsewhere(called), 'elsewhere');
      if (typeof next === 'string') return next;
      const stop = await this.#stopBefore(called, reading);
      if (stop) return stop;
      parts = partsOfPage(called.parts, next, false);
    }
  }

  /** Waits for room for what the pages gave. @returns why there is no further one, if there is no room */
  async #hold({ room, signal }: PagedAction, reading: ListReading): Promise<PagesEnd | null> {
    if (!room || reading.items.bytes <= USUAL_BYTES) return null;
    const late = AbortSignal.timeout(Math.max(1, Math.ceil(reading.leftMs)));
    try {
      await room.hold(signal ? AbortSignal.any([signal, late]) : late);
      return null;
    } catch (error) {
      if (late.aborted) return 'time';
      return reading.fails(failureOf(error));
    }
  }

  /** Why the next page is not asked for. */
  async #stopBefore(called: PagedAction | StreamedAction, reading: ListReading): Promise<PagesEnd | null> {
    if (reading.leftMs <= 0) return 'time';
    try {
      if ('demand' in called) await called.demand();
      await this.#limits.demand(called);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'RATE_LIMIT_EXCEEDED') return 'rate_limit';
      return reading.fails({ code: error.code.toLowerCase(), message: error.message });
    }
  }

  /** Reads a page, and takes its items. @returns why it was the last that could be read, if it was */
  async #page(
    caller: Caller,
    called: PagedAction | StreamedAction,
    reading: ListReading,
  ): Promise<AnsweredPage | PagesEnd> {
    const { tool, action, pagination } = called;
    let answer: OutboundResponse;
    try {
      answer = await this.#calls.answer(caller, called, reading.trace, { withinMs: reading.leftMs });
    } catch (error) {
      const failure = failureOfPage(error, reading);
      const isOver = reading.count > 0 && reading.leftMs <= 0 && OutboundError.in(error)?.code === 'timeout';
      return isOver ? 'time' : reading.fails(failure);
    }
    reading.sizeBytes += answer.body.length;
    const redactor = redactorOf(called, reading.trace);
    if (!answer.isOk) {
      const { status, headers, excerpt, code, message } = outcomeOf(tool, shownAnswer(action, answer, redactor));
      reading.shown = { status, headers, excerpt };
      return reading.fails({ code, message });
    }
    reading.shown = { status: answer.status, headers: headersOf(answer.headers, redactor), excerpt: null };
    const { json, items, fault } = pageResult(action, answer, pagination.itemsPath);
    if (fault !== null)
      return reading.fails({
        code: 'schema_mismatch',
        message: `${tool.name} answered ${answer.status}, but ${redactor.clean(fault)}.`,
      });
    reading.count++;
    const full = reading.items.add(redactor.cleanJson(items) as unknown[]);
    if (full) return full;
    const stop = await this.#hold(called, reading);
    if (stop) return stop;
    const { headers, url } = answer;
    return { json, headers, url, count: items.length, sent: sentIn(called.parts, reading.trace.url) };
  }
}

/** The items of all pages as the result: the first of them, and all of them as a text where that is more. */
function listOf(items: PageItems): Partial<CallEnd> {
  const list = { format: 'json', result: items.take(), truncated: items.isCut } as const;
  if (!items.isCut) return list;
  const content = items.whole();
  const whole = { content, contentType: 'application/json', isText: true, sizeBytes: content.length };
  return { ...list, whole };
}

/**
 * A page of which no request can be made is the caller's fault only where the caller has chosen it: the first one. A
 * stream has begun by then, and says it at its end. So does a list of which pages were read say what has ended
 * meanwhile, such as the connection of its end user.
 */
function failureOfPage(error: unknown, { count, isStreamed }: ListReading): Failure {
  if (count === 0 && !isStreamed) return failureOf(error);
  if (error instanceof UnusableAction) return { code: error.code, message: error.message };
  if (error instanceof ApiError) return { code: error.code.toLowerCase(), message: error.message };
  return failureOf(error);
}

/** Credentials go to the host of the first page, and to no other: a provider may be made to name any address. */
function isElsewhere(next: PageChoice | NoPage, origin: string): boolean {
  if (typeof next === 'string' || !next.at) return false;
  return next.at.origin !== origin || next.at.username !== '' || next.at.password !== '';
}

const elsewhere = ({ tool }: PagedAction): Failure => ({
  code: 'next_page_elsewhere',
  message: `${tool.name} named a next page that is not on the host of the first one. It was not called.`,
});
