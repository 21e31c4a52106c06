import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { openTracing } from '../../../src/platform/tracing/open-tracing.ts';
import { noTracing } from '../../../src/platform/tracing/tracing.ts';
import { stopAges } from '../../support/passing-time.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { startCollector, type TraceCollector } from '../../support/trace-collector.ts';

/** The variables of OpenTelemetry's SDK, as its specification lists them. */
const STANDARD = {
  OTEL_ATTRIBUTE_COUNT_LIMIT: '64',
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '512',
  OTEL_BSP_EXPORT_TIMEOUT: '1000',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '64',
  OTEL_BSP_MAX_QUEUE_SIZE: '128',
  OTEL_BSP_SCHEDULE_DELAY: '1000',
  OTEL_EXPORTER_OTLP_CERTIFICATE: '/etc/ca.pem',
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: '/etc/client.pem',
  OTEL_EXPORTER_OTLP_CLIENT_KEY: '/etc/client.key',
  OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
  OTEL_EXPORTER_OTLP_INSECURE: 'true',
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318/v1/metrics',
  OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://collector:4318/v1/logs',
  OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=b',
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '1000',
  OTEL_LOGS_EXPORTER: 'none',
  OTEL_LOG_LEVEL: 'info',
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
  OTEL_NODE_RESOURCE_DETECTORS: 'env',
  OTEL_PROPAGATORS: 'tracecontext',
  OTEL_RESOURCE_ATTRIBUTES: 'a=b',
  OTEL_SEMCONV_STABILITY_OPT_IN: 'http',
  OTEL_SPAN_EVENT_COUNT_LIMIT: '64',
};
const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9/' };
const opened = (env: Record<string, string>) => openTracing({ config: loadConfig(env), logger: quietLogger });

/** It takes what is sent: without one, closing waits for tries that cannot succeed. */
let collector: TraceCollector;
beforeAll(async () => {
  collector = await startCollector();
});
afterAll(() => collector.close());
const beside = (env: Record<string, string>) => opened({ ...env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });

it('takes none of the standard variables for a misspelt one', () => {
  expect(() => loadConfig({ ...STANDARD, ...COLLECTOR })).not.toThrow();
});

it('is off without a collector, and where it is turned off', async () => {
  expect(await opened({ OTEL_SERVICE_NAME: 'ours', OTEL_TRACES_SAMPLER: 'always_on' })).toBe(noTracing);
  expect(await opened({ ...COLLECTOR, OTEL_SDK_DISABLED: 'true' })).toBe(noTracing);
  expect(await opened({ ...COLLECTOR, OTEL_TRACES_EXPORTER: 'none' })).toBe(noTracing);
  const { tracesSampler, tracesSamplerArg } = loadConfig(COLLECTOR);
  expect([tracesSampler, tracesSamplerArg]).toEqual(['parentbased_traceidratio', 0.01]);
});

const PARENT = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };

it.each([
  ['always_on', '1', [true, true, true]],
  ['always_off', '1', [false, false, false]],
  ['traceidratio', '1', [true, true, true]],
  ['traceidratio', '0', [false, false, false]],
  ['parentbased_always_on', '1', [true, true, false]],
  ['parentbased_always_off', '1', [false, true, false]],
  ['parentbased_traceidratio', '0', [false, true, false]],
])('samples as OTEL_TRACES_SAMPLER=%s with %s says', async (sampler, share, recorded) => {
  const tracing = await beside({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share });
  const begins = [null, { ...PARENT, isSampled: true }, { ...PARENT, isSampled: false }].map((parent) => {
    const span = tracing.begin('one', { parent, isOfStranger: true });
    span?.end();
    return span !== null;
  });
  expect(begins).toEqual(recorded);
  await tracing.close();
});

it('records what this service began to its end, and of strangers as many a second as they may', async () => {
  const few = await beside({ OTEL_TRACES_SAMPLER: 'always_off', TRACES_BY_CALLERS_PER_SECOND: '3' });
  const parent = { ...PARENT, isSampled: true };
  const job = few.begin('job', { parent });
  expect(job).toMatchObject({ traceId: PARENT.traceId });
  job?.end();
  await few.close();
  const some = await beside({ OTEL_TRACES_SAMPLER: 'always_on', TRACES_BY_CALLERS_PER_SECOND: '3' });
  // within one second
  stopAges();
  const spans = Array.from({ length: 100 }, () => some.begin('one', { parent, isOfStranger: true }));
  const begun = spans.filter((span) => span !== null);
  for (const span of begun) span.end();
  expect(begun).toHaveLength(3);
  await some.close();
});

it.each([
  ['OTEL_TRACES_SAMPLER', 'sometimes', /OTEL_TRACES_SAMPLER must be one of always_on/],
  ['OTEL_TRACES_SAMPLER_ARG', '1.5', /OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1/],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', /OTEL_EXPORTER_OTLP_PROTOCOL must be one of http\/protobuf, http\/json/],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', /OTEL_EXPORTER_OTLP_ENDPOINT must be a URL/],
  ['OTEL_EXPORTER_OTLP_ENDPOIT', 'http://c', /Did you mean OTEL_EXPORTER_OTLP_ENDPOINT/],
])('refuses %s=%s', (name, value, sentence) => {
  expect(() => loadConfig({ [name]: value })).toThrow(sentence);
});

it('takes the headers of the collector from a file', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'headers-'));
  const file = path.join(folder, 'headers');
  writeFileSync(file, 'authorization=Bearer%20x\n');
  const { otlpHeaders } = loadConfig({ ...COLLECTOR, OTEL_EXPORTER_OTLP_HEADERS_FILE: file });
  rmSync(folder, { recursive: true });
  expect(otlpHeaders).toBe('authorization=Bearer%20x');
});
