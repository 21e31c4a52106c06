import { randomUUID } from 'node:crypto';
import type { Config } from '../../config.ts';
import type { SpanOptions, TraceSpan } from '../../kernel/spans.ts';
import type { Logger } from '../logger.ts';
import type { TraceParent } from './trace-parent.ts';

/** How a trace begins. */
export interface TraceStart extends SpanOptions {
  /** Its id; by default that of the parent, or a new one. */
  traceId?: string | undefined;
  parent?: TraceParent | null | undefined;
  /** Whether somebody outside named the parent: such traces have a budget. */
  isOfStranger?: boolean;
}

/** What became of the spans of this process. */
export type SpanOutcome = 'exported' | 'failed' | 'dropped';

/** Records traces and sends them to the collector that the operator names. */
export interface Tracing {
  readonly isOn: boolean;
  readonly spans: ReadonlyMap<SpanOutcome, number>;
  /** For a request that brings none. */
  newTraceId(): string;
  /** Begins a trace; `null` if this one is not recorded. */
  begin(name: string, start?: TraceStart): TraceSpan | null;
  /** Sends what is still there, as far as that takes no more than a moment. */
  close(): Promise<void>;
}

/** Where counting begins. */
export const noSpans = (): Map<SpanOutcome, number> =>
  new Map([
    ['exported', 0],
    ['failed', 0],
    ['dropped', 0],
  ]);

/** Records nothing. */
export const noTracing: Tracing = {
  isOn: false,
  spans: noSpans(),
  newTraceId: randomUUID,
  begin: () => null,
  close: async () => undefined,
};

type TracingConfig = Pick<
  Config,
  | 'otlpEndpoint'
  | 'otlpTracesEndpoint'
  | 'otlpHeaders'
  | 'otlpProtocol'
  | 'otelServiceName'
  | 'otelSdkDisabled'
  | 'tracesExporter'
  | 'tracesSampler'
  | 'tracesSamplerArg'
  | 'tracesByCallersPerSecond'
>;

/** What traces are made with. */
export interface TracingOptions {
  config: TracingConfig;
  logger: Logger;
}
