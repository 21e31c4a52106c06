import { setTimeout as delay } from 'node:timers/promises';
import { type OutboundCode, OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';

/** Limit of one try, unless the action has another one. */
const TRY_MS = 10_000;
/** Limit of the whole call. */
const WHOLE_MS = 300_000;
/** The longest wait that an answer can ask for. */
const LONGEST_WAIT_MS = 30_000;
const FIRST_WAIT_MS = 250;

/** Sending these again changes nothing more (RFC 9110, section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const PASSING_FAULTS: ReadonlySet<OutboundCode> = new Set<OutboundCode>(['network', 'timeout', 'bad_response']);

/** How long a call may take, and how often it is tried. */
export interface CallLimits {
  tryMs: number;
  wholeMs: number;
  retries: number;
}

const positive = (value: unknown): number | null => (typeof value === 'number' && value > 0 ? value : null);

/** The limits of an action. */
export function limitsOf({ timeout_seconds: seconds, retry_count: count }: ToolAction): CallLimits {
  const tryMs = Math.min(WHOLE_MS, (positive(seconds) ?? TRY_MS / 1_000) * 1_000);
  const retries = Math.min(10, Math.floor(positive(count) ?? 0));
  return {
    tryMs,
    retries,
    wholeMs: Math.min(WHOLE_MS, tryMs * (retries + 1) + LONGEST_WAIT_MS * Math.min(retries, 1)),
  };
}

/** A call that may be made again. */
export interface Retried {
  method: string;
  /** Whether it may be repeated, if that is not said by its method. */
  isRepeatable?: boolean;
  limits: CallLimits;
  /** When it must be over, in the time of `performance`. */
  endsAt: number;
  /** Ends the waiting, too. */
  signal?: AbortSignal | undefined;
  ask: (timeoutMs: number) => Promise<OutboundResponse>;
}

/**
 * Makes a call, and makes it again where that is safe and may help: after what a second try can mend, for methods that
 * may be repeated. A provider that says 429 has done nothing, so any method may be repeated then. `Retry-After` is
 * obeyed; an answer that asks for a longer wait than there is time is the answer.
 * @returns the last answer
 */
export async function withRetries({
  method,
  isRepeatable = IDEMPOTENT.has(method),
  limits,
  endsAt,
  signal,
  ask,
}: Retried): Promise<OutboundResponse> {
  for (let tries = 1; ; tries++) {
    const left = Math.max(1, endsAt - performance.now());
    const isLast = tries > limits.retries;
    try {
      const answer = await ask(Math.min(limits.tryMs, left));
      const mayHelp = PASSING.has(answer.status) && (isRepeatable || answer.status === 429);
      if (isLast || !mayHelp || !(await waits(tries, endsAt, retryAfterOf(answer), signal))) return answer;
    } catch (error) {
      const fault = OutboundError.in(error);
      const mayHelp = fault !== null && isRepeatable && PASSING_FAULTS.has(fault.code);
      if (isLast || !mayHelp || !(await waits(tries, endsAt, null, signal))) throw error;
    }
  }
}

/** Waits until the next try. @returns false, at once, if there is no time for it */
async function waits(
  tries: number,
  endsAt: number,
  asked: number | null,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const own = FIRST_WAIT_MS * 2 ** Math.min(tries - 1, 6) * (0.5 + 0.5 * Math.random());
  const wait = Math.max(own, asked ?? 0);
  if (wait > LONGEST_WAIT_MS || performance.now() + wait >= endsAt) return false;
  try {
    await delay(wait, undefined, { signal });
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
  return true;
}

/** The milliseconds that an answer asks to wait (`Retry-After`: seconds, or a date); `null` if it does not. */
export function retryAfterOf({ headers }: { headers: Headers }, now = Date.now()): number | null {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const time = text === '' ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : Math.max(0, time - now);
}
