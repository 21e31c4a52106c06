import type { SigningKeyFacts, SigningKeys } from '../../access/signing-keys.ts';
import type { JobQueue } from '../../data/job-queue.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import { version } from '../../paths.ts';
import { type JobState, jobStates } from '../../platform/jobs/jobs.ts';
import { AWAY_SECONDS } from '../../platform/nodes/heartbeat.ts';
import type { Siblings } from '../../platform/nodes/worker-link.ts';
import type { RootKeyUse, RootKeyUses } from '../../vault/secrets/root-key-uses.ts';
import type { EventLag, Lag } from '../events/event-lag.ts';

/** So many jobs are looked at: a view that is read every ten seconds must not read millions. */
const MAX_JOBS = 100_000;
const MAX_ADDRESSES = 100;
const MAX_NODES = 200;

// by the name of this session, which DATABASE_URL may have changed for all nodes. No query text, which may hold secrets
const CONNECTIONS = `select host(a.client_addr) as address, count(*)::int as "connectionCount",
    min(a.backend_start) as "oldestAt"
  from pg_stat_activity a
  where a.datname = current_database() and a.backend_type = 'client backend'
    and a.application_name = current_setting('application_name')
  group by 1 order by 1 nulls first limit ${MAX_ADDRESSES}`;

// those that run before those that were lost
const NODES = `select n.id, n.host_name as "hostName", n.address, n.version, n.started_at as "startedAt",
    n.last_seen_at as "lastSeenAt", n.worker_count as "workerCount", n.running_worker_count as "runningWorkerCount",
    n.problem, case when n.last_seen_at < now() - interval '${AWAY_SECONDS} s' then 'away'
      when n.problem is null then 'ready' else 'not_ready' end as status, n.id = $1 as "isAnswering"
  from nodes n order by n.last_seen_at < now() - interval '${AWAY_SECONDS} s', n.host_name, n.started_at, n.id
  limit ${MAX_NODES}`;

/** How a node is. */
export type NodeState = 'ready' | 'not_ready' | 'away';

/** A node of the service, as it said itself a moment ago. */
export interface KnownNode extends ServiceNode {
  /** Of this start of the node. */
  id: string;
  hostName: string;
  /** By which the database sees it; `null` for a socket on the machine of the database. */
  address: string | null;
  lastSeenAt: Date;
  /** Why it takes no requests, or took none. */
  problem: string | null;
  status: NodeState;
  isAnswering: boolean;
}

/** The node that answers. */
export interface ServiceNode {
  version: string;
  startedAt: Date;
  workerCount: number;
  runningWorkerCount: number;
}

/** Connections of nodes to the database. */
export interface NodeConnections {
  /** `null` for a socket on the machine of the database. */
  address: string | null;
  connectionCount: number;
  oldestAt: Date;
}

/** The jobs of a task. */
export interface TaskJobs {
  task: string;
  waitingCount: number;
  retryingCount: number;
  runningCount: number;
  failedCount: number;
  oldestWaitingSeconds: number | null;
}

interface ServiceStatusDeps {
  sql: Sql;
  jobQueue: JobQueue;
  eventLag: EventLag;
  keys: SigningKeys;
  rootKeyUses: RootKeyUses;
  siblings: Pick<Siblings, 'running' | 'of'> | undefined;
  nodeId: string;
}

/** The state of the service. Each part is read when it is asked for. */
export class ServiceStatus {
  readonly #deps: ServiceStatusDeps;

  constructor(deps: ServiceStatusDeps) {
    this.#deps = deps;
  }

  get node(): ServiceNode {
    const { siblings } = this.#deps;
    return {
      version,
      startedAt: new Date(performance.timeOrigin),
      workerCount: siblings?.of ?? 1,
      runningWorkerCount: siblings?.running ?? 1,
    };
  }

  nodes(): Promise<KnownNode[]> {
    return this.#deps.sql.read<KnownNode>(NODES, [this.#deps.nodeId]);
  }

  connections(): Promise<NodeConnections[]> {
    return this.#deps.sql.read<NodeConnections>(CONNECTIONS, []);
  }

  async jobs(): Promise<TaskJobs[]> {
    const { sql, jobQueue } = this.#deps;
    const tasks = jobQueue.tasks.map(({ name }) => name).sort();
    const states = await jobStates((text, values) => sql.read<JobState>(text, values), tasks, MAX_JOBS);
    return tasks.map((name) =>
      jobsOf(
        name,
        states.filter(({ task }) => task === name),
      ),
    );
  }

  eventLag(): Promise<Lag> {
    return this.#deps.eventLag.read();
  }

  rootKeys(): Promise<RootKeyUse[]> {
    return this.#deps.rootKeyUses.list();
  }

  signingKeys(): Promise<SigningKeyFacts[]> {
    return this.#deps.keys.list();
  }
}

function jobsOf(task: string, states: readonly JobState[]): TaskJobs {
  const count = (state: JobState['state']) => states.find((one) => one.state === state)?.count ?? 0;
  const ages = states.flatMap(({ oldestSeconds }) => (oldestSeconds === null ? [] : [oldestSeconds]));
  return {
    task,
    waitingCount: count('waiting'),
    retryingCount: count('retrying'),
    runningCount: count('running'),
    failedCount: count('dead'),
    oldestWaitingSeconds: ages.length > 0 ? Math.max(...ages) : null,
  };
}

/** Shows the state of the service to administrators of the platform. */
export class ServiceStatusService {
  readonly retention = [`delete from nodes where last_seen_at < now() - interval '1 day'`];
  readonly #status: ServiceStatus;

  constructor(deps: ServiceStatusDeps) {
    this.#status = new ServiceStatus(deps);
  }

  /** @throws FORBIDDEN for callers who do not administer the platform */
  of({ principal }: Caller): ServiceStatus {
    if (!principal.isPlatformAdmin)
      throw forbidden('organization:update', 'Only administrators of the platform see the state of the service.');
    return this.#status;
  }
}
