// `node --import tsx bench/spans-off.ts`: what a request costs that is not recorded, while traces are on: its trace id,
// the decision, and as many looks for a span as a small request has, beside the same with traces off. The least of many
// short rounds, one kind after the other: other programs on the machine can only make a round longer.
import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { loadConfig } from '../src/config.ts';
import { traceIdOf } from '../src/http/request-context.ts';
import { addRequestSpans } from '../src/http/request-spans.ts';
import { activeSpan } from '../src/kernel/spans.ts';
import { createLogger } from '../src/platform/logger.ts';
import { openTracing } from '../src/platform/tracing/open-tracing.ts';
import { noTracing, type Tracing } from '../src/platform/tracing/tracing.ts';

const ROUNDS = 80;
const REQUESTS = 200;
/** An operation, a few statements and the identification of the caller. */
const LOOKS = 8;

async function serverWith(tracing: Tracing) {
  const server = Fastify({ genReqId: ({ headers }) => traceIdOf(headers, tracing.newTraceId.bind(tracing)) });
  // the service has such hooks anyway: the first one of its kind is the dear one
  server.addHook('onRequest', (_request, _reply, done) => done());
  server.addHook('onResponse', (_request, _reply, done) => done());
  addRequestSpans(server, tracing);
  server.get('/v1/things/:id', async () => {
    for (let look = 0; look < LOOKS; look++) activeSpan();
    return '{}';
  });
  await server.ready();
  return server;
}

const tracing = await openTracing({
  config: loadConfig({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_TRACES_SAMPLER: process.env.OTEL_TRACES_SAMPLER ?? 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  }),
  logger: createLogger({ logLevel: 'silent' }),
});
const servers = [await serverWith(noTracing), await serverWith(tracing)];
const parent = `00-${randomUUID().replaceAll('-', '')}-00f067aa0ba902b7-00`;
for (const [title, headers] of [
  ['without traceparent', {}],
  ['with a traceparent that does not record', { traceparent: parent }],
] as const) {
  const least = servers.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, server] of servers.entries()) {
      const before = process.cpuUsage();
      for (let request = 0; request < REQUESTS; request++) await server.inject({ url: '/v1/things/1', headers });
      const { user, system } = process.cpuUsage(before);
      least[at] = Math.min(least[at]!, (user + system) / REQUESTS);
    }
  const [off, on] = least as [number, number];
  console.log(
    `${title}: ${off.toFixed(1)} us of CPU a request with traces off, ${on.toFixed(1)} on and not recorded: ` +
      `${(on - off).toFixed(1)} us more (ratio ${(on / off).toFixed(2)})`,
  );
}
await tracing.close();
