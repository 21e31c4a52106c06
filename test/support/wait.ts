import { inspect } from 'node:util';
import { slowness } from './slowness.ts';

// taken before any test stops the clock
const { setTimeout, clearTimeout } = globalThis;
const { hrtime } = process;

const DEFAULT_MS = 60_000;
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 20;

export interface WaitOptions {
  /** What is waited for, for the message of the error. Default: the text of the condition. */
  what?: string | (() => string);
  /** Longest wait on a machine that does nothing else. Default: a minute. It is multiplied by `slowness()`. */
  withinMs?: number;
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | 0n | ''>;

/**
 * Resolves as soon as the assertions hold, with what they return. A value to wait for belongs to `waitUntil`.
 * @throws Error that says what did not come, with the last failure as its cause
 */
export function waitFor<T>(assertions: () => T | Promise<T>, options: WaitOptions = {}): Promise<T> {
  return poll(assertions, options, (value): value is T => {
    if (value === false) throw new TypeError('waitFor takes assertions: use waitUntil for a boolean.');
    return true;
  });
}

/**
 * Resolves with the first value of the condition that is truthy. A condition that throws is tried again, too.
 * @throws Error that says what did not come, with the last failure as its cause
 */
export function waitUntil<T>(condition: () => T | Promise<T>, options: WaitOptions = {}): Promise<Truthy<T>> {
  return poll(condition, options, (value): value is Truthy<T> => Boolean(value));
}

/** What a try came to. */
type Tried<T> = { value: T } | { error: unknown } | 'unanswered';

async function poll<T, V extends T>(
  condition: () => T | Promise<T>,
  { what = () => textOf(condition), withinMs = DEFAULT_MS }: WaitOptions,
  isMet: (value: T) => value is V,
): Promise<V> {
  const failure = new Error();
  Error.captureStackTrace(failure, poll);
  const deadline = deadlineAfter(withinMs * slowness());
  let last: Tried<T>;
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
      last = await attempt(condition, deadline.passed);
      if (last !== 'unanswered' && 'value' in last && isMet(last.value)) return last.value;
      if (deadline.isOver()) break;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  } finally {
    deadline.cancel();
  }
  failure.message = `waited ${deadline.seconds} s for ${typeof what === 'string' ? what : what()}: ${told(last)}`;
  if (last !== 'unanswered' && 'error' in last) failure.cause = last.error;
  throw failure;
}

async function attempt<T>(condition: () => T | Promise<T>, passed: Promise<typeof OVER>): Promise<Tried<T>> {
  try {
    const value = await Promise.race([condition(), passed]);
    return value === OVER ? 'unanswered' : { value };
  } catch (error) {
    return { error };
  }
}

const OVER = Symbol('the deadline has passed');

function deadlineAfter(ms: number) {
  const begun = hrtime.bigint();
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<typeof OVER>((resolve) => {
    timer = setTimeout(() => resolve(OVER), ms);
  });
  return {
    passed,
    isOver: () => Number(hrtime.bigint() - begun) / 1e6 >= ms,
    cancel: () => clearTimeout(timer),
    seconds: Math.round(ms / 100) / 10,
  };
}

function told(last: Tried<unknown>): string {
  if (last === 'unanswered') return 'the last try has not answered';
  if ('value' in last) return `the last value was ${inspect(last.value, { depth: 4, maxStringLength: 500 })}`;
  return last.error instanceof Error ? last.error.message : inspect(last.error);
}

/** The text of a condition, without what the transformation of modules made of imported names. */
const textOf = (condition: () => unknown): string =>
  `\`${condition.toString().replaceAll(/\(0,\s*__vite_ssr_import_\d+__\.(\w+)\)|__vite_ssr_import_\d+__\./g, '$1')}\``;
