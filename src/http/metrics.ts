import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type OpenMetricsContentType, Registry } from 'prom-client';
import type { ReplicaReads } from '../data/replica-reads.ts';
import type { OperationCounts } from '../engine/path/operation-counts.ts';
import type { AuditSender } from '../live/audit-streams/audit-sender.ts';
import type { EventLag } from '../live/events/event-lag.ts';
import type { Jobs } from '../platform/jobs/jobs.ts';
import { AWAY_SECONDS } from '../platform/nodes/heartbeat.ts';
import type { KnownNode } from '../platform/nodes/known-nodes.ts';
import type { Siblings } from '../platform/nodes/worker-link.ts';
import type { Outbound } from '../platform/outbound/outbound.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import type { Tracing } from '../platform/tracing/tracing.ts';
import type { ToolProxy } from '../tools/tool-proxy/tool-proxy.ts';
import { Figures } from './figures.ts';
import { asPrometheus } from './openmetrics.ts';

/** What is counted of services. */
interface Counted {
  activity: { readonly depth: number; readonly lost: number; readonly failedSignIns: ReadonlyMap<string, number> };
  passwords: { readonly queueDepth: number };
  samlChecks: { readonly pending: number };
  tail: { readonly size: number };
  outbound: Pick<Outbound, 'running' | 'waiting' | 'idle' | 'outcomes'>;
  toolProxy: Pick<ToolProxy, 'running' | 'outcomes' | 'bytes'>;
  auditSender: Pick<AuditSender, 'outcomes' | 'sentRecords'>;
}

interface MetricsDeps {
  services: Counted;
  pool: pg.Pool;
  /** `null` without replicas. */
  replicaReads?: ReplicaReads | null;
  eventLag: EventLag;
  jobs: Jobs;
  nodes: () => Promise<readonly Pick<KnownNode, 'version' | 'status'>[]>;
  operations: OperationCounts;
  tracing: Tracing;
  lostLogLines?: (() => number) | undefined;
  redis: RedisLink | null;
  siblings?: Siblings | undefined;
}

/**
 * Serves `/metrics`: requests per route, event-loop delay, pool use, depth of the queues. What the service counts
 * begins with `platform_`; what the library counts of the process and of Node keeps the names that dashboards know.
 * Whoever accepts OpenMetrics gets it, with the trace of a request beside its duration.
 */
export function addMetrics(server: FastifyInstance, deps: MetricsDeps): void {
  const { replicaReads, redis, siblings } = deps;
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  // each worker counts for itself: a sum would fall when one of them dies
  if (siblings) registry.setDefaultLabels({ worker: String(siblings.number) });
  siblings?.onCollect(() => registry.metrics());
  const stopDefaults = collectDefaultMetrics({ register: registry });
  const figures = new Figures(registry);
  measureRequests(server, figures);
  addProcess(figures, deps);
  addJobs(figures, deps);
  addNodes(figures, deps);
  addSums(figures, deps);
  if (redis) addRedis(figures, redis);
  if (replicaReads) addReplicas(figures, replicaReads);
  addCalls(figures, deps);
  addQueues(figures, deps);
  server.addHook('onClose', async () => {
    registry.clear();
    return stopDefaults;
  });
  server.get('/metrics', async (request, reply) => {
    if (!isWrittenPlainly(request.url)) return reply.callNotFound();
    const text = await (siblings ? siblings.gather() : registry.metrics());
    const isOpen = OPENMETRICS.test(request.headers.accept ?? '');
    reply.header('vary', 'accept').type(isOpen ? registry.contentType : Registry.PROMETHEUS_CONTENT_TYPE);
    return reply.send(isOpen ? text : asPrometheus(text));
  });
}

const OPENMETRICS = /(?:^|,)\s*application\/openmetrics-text\s*(?:[;,]|$)/;

/** Proxies keep in what is called so. The router would also take `/metrics/` and `/%6detrics` for it. */
const isWrittenPlainly = (url: string): boolean => url.split('?', 1)[0] === '/metrics';

/** Counts and times each request. */
function measureRequests(server: FastifyInstance, { registry }: Figures): void {
  const durations = new Histogram<'method' | 'route' | 'trace_id'>({
    name: 'platform_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its answer.',
    labelNames: ['method', 'route'],
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10],
    enableExemplars: true,
    registers: [registry],
  });
  // apart: a histogram has a dozen lines for each set of labels
  const requests = new Counter({
    name: 'platform_http_requests_total',
    help: 'Requests that were answered.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  server.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.config.template ?? request.routeOptions.url ?? 'unknown';
    durations.observe({
      labels: { method: request.method, route },
      value: reply.elapsedTime / 1000,
      ...(request.span ? { exemplarLabels: { trace_id: request.span.traceId } } : {}),
    });
    requests.inc({ method: request.method, route, status: reply.statusCode });
    done();
  });
}

/** The connections of the process, and what it had to drop. */
function addProcess(figures: Figures, { pool, services: { activity }, lostLogLines = () => 0 }: MetricsDeps): void {
  figures.gauge('platform_database_pool_connections', 'Open database connections.', () => pool.totalCount);
  figures.gauge('platform_database_pool_idle_connections', 'Idle database connections.', () => pool.idleCount);
  figures.gauge(
    'platform_database_pool_waiting_requests',
    'Requests that wait for a database connection.',
    () => pool.waitingCount,
  );
  figures.gauge('platform_activity_queue_depth', 'Activity records that are not written yet.', () => activity.depth);
  figures.counter(
    'platform_activity_records_lost_total',
    'Activity records that were dropped: refused by the database, or too many to keep until it answered.',
    () => activity.lost,
  );
  figures.counter(
    'platform_log_lines_lost_total',
    'Log lines that were dropped: too many to keep while the output accepted none.',
    lostLogLines,
  );
}

/** What reads of lists, sums and searches went to, and how old each replica is. */
function addReplicas(figures: Figures, replicaReads: ReplicaReads): void {
  figures.counts(
    'platform_database_replica_reads_total',
    'Lists, sums and searches by the server that answered: a replica or the primary.',
    'server',
    () => Object.entries(replicaReads.counts),
  );
  new Gauge({
    name: 'platform_database_replica_lag_seconds',
    help: 'Age of what a replica has, by its place in DATABASE_READ_URLS.',
    labelNames: ['replica'],
    registers: [figures.registry],
    collect() {
      for (const { number, lagMs } of replicaReads.replicas) this.set({ replica: number }, lagMs / 1_000);
    },
  });
  new Gauge({
    name: 'platform_database_replica_in_use',
    help: '1 while a replica is read from; 0 while it is away, too late or no replica.',
    labelNames: ['replica'],
    registers: [figures.registry],
    collect() {
      for (const { number, state } of replicaReads.replicas) this.set({ replica: number }, state === 'ok' ? 1 : 0);
    },
  });
}

/** The jobs of the whole database by task and state, and the jobs that this process gave up. */
function addJobs(figures: Figures, { jobs }: MetricsDeps): void {
  new Gauge({
    name: 'platform_jobs',
    help:
      'Background jobs by task. `waiting`: not tried yet; `retrying`: failed, waiting for another try; ' +
      '`running`; `dead`: not tried again.',
    labelNames: ['task', 'state'],
    registers: [figures.registry],
    async collect() {
      this.reset();
      const states = await jobs.states().catch(() => []); // the other figures matter all the more
      for (const { task, state, count } of states) this.set({ task, state }, count);
    },
  });
  figures.counts(
    'platform_jobs_given_up_total',
    'Background jobs that this process gave up: all tries failed, or another try would have failed too.',
    'task',
    () => jobs.givenUp,
  );
}

/** The nodes over the database that were heard a moment ago. All of them say the same. */
function addNodes(figures: Figures, { nodes }: MetricsDeps): void {
  new Gauge({
    name: 'platform_nodes',
    help: `Nodes over the database that were heard within the last ${AWAY_SECONDS} seconds, by version.`,
    labelNames: ['version'],
    registers: [figures.registry],
    async collect() {
      this.reset();
      const known = await nodes().catch(() => []); // the other figures matter all the more
      for (const { version, status } of known) if (status !== 'away') this.inc({ version });
    },
  });
}

/** What was counted since the start, by what became of it. */
function addSums(figures: Figures, { services, operations, tracing }: MetricsDeps): void {
  new Counter({
    name: 'platform_graphql_operations_total',
    help: 'Operations of documents that clients sent: `answered`, `failed` with errors, or `refused` before they ran.',
    labelNames: ['type', 'outcome'],
    registers: [figures.registry],
    collect() {
      this.reset();
      for (const { type, outcome, count } of operations.all) this.inc({ type, outcome }, count);
    },
  });
  figures.counts(
    'platform_sign_in_failures_total',
    'Sign-ins that failed, by the code of the error.',
    'code',
    () => services.activity.failedSignIns,
  );
  figures.counts(
    'platform_trace_spans_total',
    'Spans of traces: `exported`, `failed` to be sent, or `dropped` because too many waited.',
    'outcome',
    () => tracing.spans,
  );
}

/** Whether nodes share what Redis is for. */
function addRedis(figures: Figures, redis: RedisLink): void {
  figures.gauge('platform_redis_up', 'Whether Redis answers: 1, or 0 while this node counts budgets by itself.', () =>
    redis.isUp ? 1 : 0,
  );
  figures.counter(
    'platform_redis_failures_total',
    'Questions that Redis did not answer, and this node did without it.',
    () => redis.failures,
  );
}

/** Calls to others. */
function addCalls(figures: Figures, { services: { outbound, toolProxy, auditSender } }: MetricsDeps): void {
  figures.gauge('platform_outbound_calls_running', 'Outbound calls in progress.', () => outbound.running);
  figures.gauge(
    'platform_outbound_calls_waiting',
    'Outbound calls that wait for other calls to end.',
    () => outbound.waiting,
  );
  figures.gauge(
    'platform_outbound_connections_idle',
    'Connections to providers of tools that wait for their next call.',
    () => outbound.idle,
  );
  figures.counts(
    'platform_outbound_calls_total',
    'Outbound calls that ended: `answered` with any status, or by the reason why there was no answer.',
    'outcome',
    () => outbound.outcomes,
  );
  figures.gauge(
    'platform_tool_proxy_calls_running',
    'Calls through the proxy of tools in progress.',
    () => toolProxy.running,
  );
  figures.counts(
    'platform_tool_proxy_calls_total',
    'Calls through the proxy of tools that ended: `answered` with any status, or by the reason why they were cut.',
    'outcome',
    () => toolProxy.outcomes,
  );
  figures.counts(
    'platform_tool_proxy_bytes_total',
    'Bytes of bodies through the proxy of tools: `sent` to providers, and `received` from them.',
    'direction',
    () => toolProxy.bytes,
  );
  figures.counts(
    'platform_audit_stream_attempts_total',
    'Attempts to deliver records to audit streams: `delivered`, or `failed`.',
    'outcome',
    () => auditSender.outcomes,
  );
  figures.counter(
    'platform_audit_stream_records_total',
    'Activity records that were delivered to audit streams.',
    () => auditSender.sentRecords,
  );
}

/** What waits in the process, and what its event streams wait for. */
function addQueues(figures: Figures, { services, eventLag }: MetricsDeps): void {
  figures.gauge('platform_password_queue_depth', 'Password hashes that wait.', () => services.passwords.queueDepth);
  figures.gauge(
    'platform_saml_check_queue_depth',
    'SAML messages that are being checked or wait for their check.',
    () => services.samlChecks.pending,
  );
  figures.gauge('platform_event_streams', 'Open event streams.', () => services.tail.size);
  // without the database, the other figures matter all the more
  const lag = async (figure: 'seconds' | 'waiting') =>
    (await eventLag.read().catch(() => null))?.[figure] ?? Number.NaN;
  figures.gauge('platform_event_lag_seconds', 'Age of the oldest event that a running transaction holds back.', () =>
    lag('seconds'),
  );
  figures.gauge('platform_event_lag_events', 'Events that a running transaction holds back, 10,000 at most.', () =>
    lag('waiting'),
  );
}
