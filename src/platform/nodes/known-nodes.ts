import { AWAY_SECONDS } from './heartbeat.ts';

const MAX_NODES = 200;

// those that run before those that were lost
const NODES = `select n.id, n.host_name as "hostName", n.address, n.version, n.started_at as "startedAt",
    n.last_seen_at as "lastSeenAt", n.worker_count as "workerCount", n.running_worker_count as "runningWorkerCount",
    n.problem, case when n.last_seen_at < now() - interval '${AWAY_SECONDS} s' then 'away'
      when n.problem is null then 'ready' else 'not_ready' end as status, n.id = $1 as "isAnswering"
  from nodes n order by n.last_seen_at < now() - interval '${AWAY_SECONDS} s', n.host_name, n.started_at, n.id
  limit ${MAX_NODES}`;

/** How a node is. */
export type NodeState = 'ready' | 'not_ready' | 'away';

/** What a node knows of itself. */
export interface ServiceNode {
  version: string;
  startedAt: Date;
  workerCount: number;
  runningWorkerCount: number;
}

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

/**
 * The nodes over the database: those that run, and those that were lost within a day.
 *
 * @param nodeId of the node that asks; `null` for a command
 */
export const knownNodes = (
  ask: (text: string, values: unknown[]) => Promise<KnownNode[]>,
  nodeId: string | null,
): Promise<KnownNode[]> => ask(NODES, [nodeId]);
