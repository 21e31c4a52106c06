import { noTracing, type Tracing, type TracingOptions } from './tracing.ts';

/** What the settings ask for. Without a collector, nothing of OpenTelemetry is loaded. */
export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const { otlpEndpoint, otlpTracesEndpoint, otelSdkDisabled, tracesExporter } = options.config;
  const isOn = (otlpEndpoint ?? otlpTracesEndpoint) !== undefined && !otelSdkDisabled && tracesExporter === 'otlp';
  if (!isOn) return noTracing;
  const { OpenTelemetry } = await import('./open-telemetry.ts');
  return OpenTelemetry.open(options);
}
