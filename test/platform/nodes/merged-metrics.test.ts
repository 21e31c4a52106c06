import { Counter, Histogram, type OpenMetricsContentType, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { mergedMetrics } from '../../../src/platform/nodes/merged-metrics.ts';

/** The exposition of a worker that has counted. */
async function worker(number: string, count: number, extra = false): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  registry.setDefaultLabels({ worker: number });
  new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['route'], registers: [registry] }).inc(
    { route: '/a # HELP b' },
    count,
  );
  new Histogram({ name: 'seconds', help: 'Time.', buckets: [1], registers: [registry] }).observe(count);
  if (extra) new Counter({ name: 'rare_total', help: 'Rare.', registers: [registry] }).inc();
  return registry.metrics();
}

it('keeps the values of each worker apart, below one help and type', async () => {
  expect(mergedMetrics([await worker('1', 2), await worker('2', 0.5, true)])).toBe(`# HELP requests Requests.
# TYPE requests counter
requests_total{route="/a # HELP b",worker="1"} 2
requests_total{route="/a # HELP b",worker="2"} 0.5
# HELP seconds Time.
# TYPE seconds histogram
seconds_bucket{le="1",worker="1"} 0
seconds_bucket{le="+Inf",worker="1"} 1
seconds_sum{worker="1"} 2
seconds_count{worker="1"} 1
seconds_bucket{le="1",worker="2"} 1
seconds_bucket{le="+Inf",worker="2"} 1
seconds_sum{worker="2"} 0.5
seconds_count{worker="2"} 1
# HELP rare Rare.
# TYPE rare counter
rare_total{worker="2"} 1
# EOF
`);
});

it('is empty where nobody has answered', () => {
  expect(mergedMetrics([])).toBe('# EOF\n');
});
