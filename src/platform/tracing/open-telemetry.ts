import { randomFillSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Context, ROOT_CONTEXT, SpanKind, TraceFlags, type Tracer, trace } from '@opentelemetry/api';
import { parseKeyPairsIntoRecord } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { TraceSpan } from '../../kernel/spans.ts';
import { CountedExporter } from './counted-exporter.ts';
import { RecordedSpan } from './recorded-span.ts';
import type { TraceParent } from './trace-parent.ts';
import type { TraceStart, Tracing, TracingOptions } from './tracing.ts';

const NAME = 'platform-management-api';
/** How long a stop waits for the collector. */
const LAST_SPANS_MS = 3_000;

/** Traces by OpenTelemetry's SDK. Spans are made by hand; nothing is patched. */
export class OpenTelemetry implements Tracing {
  readonly isOn = true;
  readonly #provider: BasicTracerProvider;
  readonly #exporter: CountedExporter;
  readonly #tracer: Tracer;
  readonly #sampler: Sampler;
  readonly #budget: BudgetOfStrangers;
  readonly #ids: GivenIds;

  private constructor(
    exporter: CountedExporter,
    ids: GivenIds,
    { sampler, resource, perSecond }: { sampler: Sampler; resource: Resource; perSecond: number },
  ) {
    this.#exporter = exporter;
    this.#ids = ids;
    this.#sampler = sampler;
    this.#budget = new BudgetOfStrangers(perSecond);
    this.#provider = new BasicTracerProvider({
      // decided at the beginning of a trace: what is not recorded has no spans at all
      sampler: new AlwaysOnSampler(),
      idGenerator: ids,
      resource,
      spanProcessors: [exporter.counting(new BatchSpanProcessor(exporter))],
    });
    this.#tracer = this.#provider.getTracer(NAME);
  }

  /** Reads the standard variables that are no settings of ours (`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_…`), too. */
  static open({ config, logger }: TracingOptions): OpenTelemetry {
    const { otlpEndpoint, otlpTracesEndpoint, otlpHeaders = '', otlpProtocol } = config;
    const given = {
      url: otlpTracesEndpoint ?? `${otlpEndpoint}/v1/traces`,
      headers: parseKeyPairsIntoRecord(otlpHeaders),
    };
    const exporter = otlpProtocol === 'http/json' ? new JsonExporter(given) : new ProtobufExporter(given);
    return new OpenTelemetry(new CountedExporter(exporter, logger), new GivenIds(), {
      sampler: samplerOf(config.tracesSampler, config.tracesSamplerArg),
      resource: resourceOf(config.otelServiceName),
      perSecond: config.tracesByCallersPerSecond,
    });
  }

  get spans(): Tracing['spans'] {
    return this.#exporter.outcomes;
  }

  newTraceId(): string {
    return randomHex(16);
  }

  begin(name: string, { traceId, parent, isOfStranger, kind, attributes }: TraceStart = {}): TraceSpan | null {
    const context = parent ? contextOf(parent) : ROOT_CONTEXT;
    // what this service began is recorded to its end
    const isRecorded = (parent?.isSampled && !isOfStranger) || this.#decides(name, context, parent);
    if (!isRecorded || (parent && isOfStranger && !this.#budget.take())) return null;
    this.#ids.next = parent ? undefined : traceId;
    return RecordedSpan.begin(this.#tracer, name, { kind, attributes, context });
  }

  #decides(name: string, context: Context, parent: TraceParent | null = null): boolean {
    // an id that a caller chose for a trace must not decide whether it is recorded
    const id = parent?.traceId ?? randomHex(16);
    const { decision } = this.#sampler.shouldSample(context, id, name, SpanKind.INTERNAL, {}, []);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  async close(): Promise<void> {
    const late = new AbortController();
    const sent = this.#provider.shutdown().catch(() => undefined); // the exporter has said what failed
    await Promise.race([sent, delay(LAST_SPANS_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
  }
}

const random = Buffer.alloc(4_096);
let used = random.length;

/** Taken from what was made for many: each request needs some, and asking for a few takes as long as for hundreds. */
function randomHex(bytes: number): string {
  if (used + bytes > random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += bytes;
  return random.toString('hex', used - bytes, used);
}

/** Ids as the SDK makes them, except of a trace whose id is known already. */
class GivenIds {
  next: string | undefined;

  generateTraceId(): string {
    const given = this.next;
    this.next = undefined;
    return given ?? randomHex(16);
  }

  generateSpanId(): string {
    return randomHex(8);
  }
}

/** How many traces a second begin because a caller says so: each is recorded whole. */
class BudgetOfStrangers {
  readonly #perSecond: number;
  #left = 0;
  #second = -1;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  take(): boolean {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#left = this.#perSecond;
    this.#second = second;
    this.#left -= 1;
    return this.#left >= 0;
  }
}

const contextOf = ({ traceId, spanId, isSampled }: TraceParent): Context =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  });

/** The samplers that OpenTelemetry names. */
function samplerOf(name: TracingOptions['config']['tracesSampler'], ratio: number): Sampler {
  const [, ofParent, own] = /^(parentbased_)?(.+)$/.exec(name) ?? [];
  const root =
    own === 'always_on'
      ? new AlwaysOnSampler()
      : own === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio);
  return ofParent ? new ParentBasedSampler({ root }) : root;
}

/** `OTEL_SERVICE_NAME` before the `service.name` of `OTEL_RESOURCE_ATTRIBUTES` before our own. */
function resourceOf(serviceName: string | undefined): Resource {
  const named = resourceFromAttributes(serviceName === undefined ? {} : { 'service.name': serviceName });
  return defaultResource()
    .merge(resourceFromAttributes({ 'service.name': NAME }))
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(named);
}
