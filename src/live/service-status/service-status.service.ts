import type { SigningKeyFacts, SigningKeys } from '../../access/signing-keys.ts';
import type { JobQueue } from '../../data/job-queue.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import { version } from '../../paths.ts';
import { type JobState, jobStates } from '../../platform/jobs/jobs.ts';
import { type KnownNode, knownNodes, type ServiceNode } from '../../platform/nodes/known-nodes.ts';
import type { Siblings } from '../../platform/nodes/worker-link.ts';
import type { RootKeyUse, RootKeyUses } from '../../vault/secrets/root-key-uses.ts';
import type { EventLag, Lag } from '../events/event-lag.ts';

/** So many jobs are looked at: a view that is read every ten seconds must not read millions. */
const MAX_JOBS = 100_000;
const MAX_ADDRESSES = 100;

// by the name of this session, which DATABASE_URL may have changed for all nodes. No query text, which may hold secrets
const CONNECTIONS = `select host(a.client_addr) as address, count(*)::int as "connectionCount",
    min(a.backend_start) as "oldestAt"
  from pg_stat_activity a
  where a.datname = current_database() and a.backend_type = 'client backend'
    and a.application_name = current_setting('application_name')
  group by 1 order by 1 nulls first limit ${MAX_ADDRESSES}`;

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
    const { sql, nodeId } = this.#deps;
    return knownNodes((text, values) => sql.read<KnownNode>(text, values), nodeId);
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
