import { type ExportResult, ExportResultCode, getNumberFromEnv } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { kindOf } from '../../kernel/spans.ts';
import type { Logger } from '../logger.ts';
import { noSpans, type SpanOutcome } from './tracing.ts';

/** As many spans as the SDK keeps, where nothing else is said. */
const MAX_WAITING = 2_048;

/** Counts what becomes of spans. A collector that is away is one line in the log, and one when it is back. */
export class CountedExporter implements SpanExporter {
  readonly outcomes = noSpans();
  readonly #exporter: SpanExporter;
  readonly #logger: Logger;
  readonly #maxWaiting = getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE') ?? MAX_WAITING;
  #waiting = 0;
  #isAway = false;

  constructor(exporter: SpanExporter, logger: Logger) {
    this.#exporter = exporter;
    this.#logger = logger;
  }

  /** The processor, which gets only as many spans as it keeps: it would drop the others without a word. */
  counting(processor: SpanProcessor): SpanProcessor {
    return {
      onStart: (span, context) => processor.onStart(span, context),
      onEnd: (span) => {
        if (this.#waiting >= this.#maxWaiting) return this.#count('dropped', 1);
        this.#waiting += 1;
        processor.onEnd(span);
      },
      forceFlush: () => processor.forceFlush(),
      shutdown: () => processor.shutdown(),
    };
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      const isSent = result.code === ExportResultCode.SUCCESS;
      this.#waiting -= spans.length;
      this.#count(isSent ? 'exported' : 'failed', spans.length);
      this.#tell(isSent, result.error);
      done(result);
    });
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #count(outcome: SpanOutcome, spans: number): void {
    this.outcomes.set(outcome, this.outcomes.get(outcome)! + spans);
  }

  /** The answer of the collector may repeat what was sent, so only the kind of the error is logged. */
  #tell(isSent: boolean, error: unknown): void {
    if (isSent === !this.#isAway) return;
    this.#isAway = !isSent;
    if (isSent) this.#logger.info('traces are sent again');
    else this.#logger.warn({ reason: kindOf(error) }, 'traces cannot be sent to their collector, and are lost');
  }
}
