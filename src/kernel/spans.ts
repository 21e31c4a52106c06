import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

/** What a span says of its work. Never a value that somebody sent. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** What begins with a span. */
export interface SpanOptions {
  kind?: 'internal' | 'server' | 'client' | 'consumer' | undefined;
  attributes?: SpanAttributes;
}

/** A piece of work in a trace that is recorded. */
export interface TraceSpan {
  readonly traceId: string;
  /** What makes others go on with the trace (W3C Trace Context). */
  readonly traceparent: string;
  readonly parent: TraceSpan | null;
  readonly isEnded: boolean;
  /** Begins a part of the work. */
  child(name: string, options?: SpanOptions): TraceSpan;
  set(attributes: SpanAttributes): void;
  /**
   * Ends it; a second time has no effect.
   * @param failure the kind of a failure, never its message, which may repeat what was sent
   */
  end(failure?: string): void;
}

/**
 * The span of what runs. On Node 20 a store in use costs each promise of the process something, so it is in use only
 * while a trace is recorded: with one request in a hundred, that is seldom.
 */
const active = new AsyncLocalStorage<TraceSpan | undefined>();
let recorded = 0;

/** Called when the first span of a trace begins. */
export function traceBegan(): void {
  recorded += 1;
}

/** Called when the first span of a trace ends. */
export function traceEnded(): void {
  recorded -= 1;
  if (recorded === 0) active.disable();
}

/** The span that what runs is part of. What goes on after its end is part of none. */
export function activeSpan(): TraceSpan | undefined {
  let span = active.getStore() ?? null;
  while (span?.isEnded) span = span.parent;
  return span ?? undefined;
}

/** Runs `work` as part of a span. */
export const within = <T>(span: TraceSpan, work: () => T): T => active.run(span, work);

/** Made before there is a request: what runs in it is part of none. */
const background = new AsyncResource('Background');

/** Runs what a request only sets going, and what is not part of it, such as a timer for what many requests recorded. */
export const apart = <T>(work: () => T): T => background.runInAsyncScope(work);

/** Runs `work` as part of a span, and ends it. */
export async function spanned<T>(span: TraceSpan, work: () => T | Promise<T>): Promise<T> {
  try {
    const value = await within(span, work);
    span.end();
    return value;
  } catch (error) {
    span.end(kindOf(error));
    throw error;
  }
}

/** What may be said of an error: its code or its class. */
export function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no error';
  const code = 'code' in error ? String(error.code) : '';
  return /^[\w.-]{1,64}$/.test(code) ? code : error.name;
}
