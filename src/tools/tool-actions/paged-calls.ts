import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { UnusableAction } from '../tool-instances/action-request.ts';
import { headersOf, pageResult, shownAnswer } from './action-answer.ts';
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
import { PageItems, type PagesEnd } from './page-items.ts';
import { type AnsweredPage, type NoPage, type PageChoice, type Pagination, partsOfPage, sentIn } from './pagination.ts';

/** Most pages of one execution. */
export const MAX_PAGES = 100;
/** Limit of all pages together. */
const ALL_PAGES_MS = 120_000;

/** A list that is read page by page. */
export interface PagedAction extends CalledAction {
  pagination: Pagination;
  /** Most pages. */
  most: number;
}

type Shown = Pick<CallEnd, 'status' | 'headers' | 'excerpt'>;
type Failure = Pick<CallEnd, 'code' | 'message'>;

/** What the pages have given so far. */
class Reading {
  readonly startedAt = performance.now();
  readonly endsAt = this.startedAt + ALL_PAGES_MS;
  readonly trace: Trace = { used: new Set(), attempts: 0, url: '' };
  readonly items: PageItems;
  count = 0;
  sizeBytes = 0;
  shown: Shown = { status: null, headers: {}, excerpt: null };
  failure: Failure | null = null;

  constructor({ uniqueKey }: Pagination) {
    this.items = new PageItems(uniqueKey);
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

  /** @throws UnusableAction, as for a call without pages */
  async make(caller: Caller, called: PagedAction): Promise<CallEnd> {
    const reading = new Reading(called.pagination);
    const ended = await this.#read(caller, called, reading);
    const { failure, items, count, trace, startedAt, sizeBytes, shown } = reading;
    const { list } = items;
    return end({
      success: true,
      code: 'ok',
      message: `${called.tool.name} answered ${count} page${count === 1 ? '' : 's'}.`,
      ...(failure && { ...failure, success: false }),
      ...shown,
      ...(count > 0 && { format: 'json', result: list }),
      truncated: ended === 'size',
      sizeBytes,
      attempts: trace.attempts,
      durationMs: Math.round(performance.now() - startedAt),
      pages: { count, items: list.length, hasMore: ended !== 'end', ended },
    });
  }

  async #read(caller: Caller, called: PagedAction, reading: Reading): Promise<PagesEnd> {
    const nextOf = called.pagination.start();
    let origin: string | null = null;
    for (let parts = called.parts; ; ) {
      const page = await this.#page(caller, { ...called, parts }, reading);
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

  /** Why the next page is not asked for. */
  async #stopBefore(called: PagedAction, { leftMs }: Reading): Promise<PagesEnd | null> {
    if (leftMs <= 0) return 'time';
    try {
      await this.#limits.demand(called);
      return null;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'RATE_LIMIT_EXCEEDED') return 'rate_limit';
      throw error;
    }
  }

  /** Reads a page, and takes its items. @returns why it was the last that could be read, if it was */
  async #page(caller: Caller, called: PagedAction, reading: Reading): Promise<AnsweredPage | PagesEnd> {
    const { tool, action, pagination } = called;
    let answer: OutboundResponse;
    try {
      answer = await this.#calls.answer(caller, called, reading.trace, reading.leftMs);
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
    const { headers, url } = answer;
    return { json, headers, url, count: items.length, sent: sentIn(called.parts, reading.trace.url) };
  }
}

/** A page of which no request can be made is the caller's fault only where the caller has chosen it: the first one. */
function failureOfPage(error: unknown, { count }: Reading): Failure {
  if (count > 0 && error instanceof UnusableAction) return { code: error.code, message: error.message };
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
