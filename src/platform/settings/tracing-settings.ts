import { z } from 'zod';
import { choice, flag, integer, type SettingKind, setting, text, url } from '../../setting.ts';

const share: SettingKind<number> = {
  mustBe: 'a number from 0 to 1',
  schema: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,12})?$/)
    .transform(Number)
    .refine((value) => value <= 1),
};

/** Traces. The names are those of OpenTelemetry. */
export const tracingSettings = {
  otlpEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    url('http', 'https'),
    'Collector that traces are sent to, by OTLP over HTTP, like `http://collector.internal:4318`: ' +
      '[traces](observability.md#traces).',
    { defaultText: 'none: no traces' },
  ),
  otlpTracesEndpoint: setting(
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    url('http', 'https'),
    'The same as a whole address, if it does not end in `/v1/traces`.',
    { defaultText: '`OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces`' },
  ),
  otlpHeaders: setting(
    'OTEL_EXPORTER_OTLP_HEADERS',
    text,
    'Headers for the collector, like `authorization=Bearer%20TOKEN`, between commas.',
    { defaultText: 'none', secret: true },
  ),
  otlpProtocol: setting('OTEL_EXPORTER_OTLP_PROTOCOL', choice(['http/protobuf', 'http/json']), 'Form of the traces.', {
    default: 'http/protobuf',
  }),
  otelServiceName: setting('OTEL_SERVICE_NAME', text, 'Name of the service in traces.', {
    defaultText: '`platform-management-api`',
  }),
  otelSdkDisabled: setting('OTEL_SDK_DISABLED', flag, 'Whether no traces are made, whatever else is set.', {
    default: 'false',
  }),
  tracesExporter: setting('OTEL_TRACES_EXPORTER', choice(['otlp', 'none']), '`none` turns traces off.', {
    default: 'otlp',
  }),
  tracesSampler: setting(
    'OTEL_TRACES_SAMPLER',
    choice([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ]),
    'Which traces are recorded. With `parentbased_…`, a `traceparent` that comes with a request decides first.',
    { default: 'parentbased_traceidratio' },
  ),
  tracesSamplerArg: setting('OTEL_TRACES_SAMPLER_ARG', share, 'Share of the traces that `…traceidratio` records.', {
    default: '0.01',
  }),
  tracesByCallersPerSecond: setting(
    'TRACES_BY_CALLERS_PER_SECOND',
    integer(0, 100_000),
    'How many traces a second each process records because a `traceparent` says so; the others are not recorded. ' +
      '0 = none.',
    { default: '20' },
  ),
} as const;
