import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type SpanAttributes, type SpanOptions, type TraceSpan, traceBegan, traceEnded } from '../../kernel/spans.ts';

/** A request may run thousands of statements: the first ones show where its time goes. */
const MAX_SPANS = 500;

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

/** The spans of one trace here. */
interface Recording {
  tracer: Tracer;
  spans: number;
}

/** A span of OpenTelemetry. */
export class RecordedSpan implements TraceSpan {
  readonly parent: RecordedSpan | null;
  readonly #recording: Recording;
  readonly #span: SdkSpan;
  #isEnded = false;

  private constructor(recording: Recording, span: SdkSpan, parent: RecordedSpan | null) {
    this.#recording = recording;
    this.#span = span;
    this.parent = parent;
  }

  /** The first span of a trace here. */
  static begin(tracer: Tracer, name: string, { context, ...options }: SpanOptions & { context: Context }) {
    traceBegan();
    return new RecordedSpan({ tracer, spans: 1 }, started(tracer, name, options, context), null);
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  child(name: string, options: SpanOptions = {}): TraceSpan {
    const recording = this.#recording;
    recording.spans += 1;
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    // beyond the limit it is there, and records nothing
    const span =
      recording.spans <= MAX_SPANS
        ? started(recording.tracer, name, options, context)
        : trace.wrapSpanContext(this.#span.spanContext());
    return new RecordedSpan(recording, span, this);
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(attributes as Attributes);
  }

  end(failure?: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (failure !== undefined) {
      this.#span.setAttribute('error.type', failure);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    const leftOut = this.#recording.spans - MAX_SPANS;
    if (!this.parent && leftOut > 0) this.#span.setAttribute('platform.spans_left_out', leftOut);
    this.#span.end();
    if (!this.parent) traceEnded();
  }
}

function started(tracer: Tracer, name: string, { kind, attributes }: SpanOptions, context: Context): SdkSpan {
  return tracer.startSpan(name, { kind: KINDS[kind ?? 'internal'], attributes: attributes as Attributes }, context);
}
