import type { Sql } from '../../data/sql.ts';
import { STOPPING } from '../../http/health.ts';
import { AWAY_SECONDS } from '../../platform/nodes/heartbeat.ts';
import { type KnownNode, knownNodes } from '../../platform/nodes/known-nodes.ts';
import { type Check, ok, warn } from './finding.ts';

/** A message names so many nodes; Operators in the console have them all. */
const MAX_NAMED = 10;

type HeartbeatFinding = Awaited<ReturnType<Check['run']>>[number];

const named = (nodes: readonly KnownNode[], nameOf: (node: KnownNode) => string): string =>
  [
    ...nodes.slice(0, MAX_NAMED).map(nameOf),
    ...(nodes.length > MAX_NAMED ? [`${nodes.length - MAX_NAMED} more`] : []),
  ].join(', ');

/**
 * Whether a node may have taken the place of a lost node. The start is a time of the node's clock, and the last beat
 * is one of the database's: they may differ by as much as a node may be silent.
 */
const mayReplace = ({ hostName, startedAt }: KnownNode, lost: KnownNode): boolean =>
  hostName === lost.hostName && startedAt.getTime() > lost.lastSeenAt.getTime() - AWAY_SECONDS * 1_000;

/** The lost nodes that nobody replaced: each node that runs takes the place of one, the last that it can. */
function missedOf(lost: readonly KnownNode[], running: readonly KnownNode[]): KnownNode[] {
  const missed = lost.toSorted((one, other) => other.lastSeenAt.getTime() - one.lastSeenAt.getTime());
  // the oldest first: a later node may take the place of every lost node that an older may
  for (const node of running.toSorted((one, other) => one.startedAt.getTime() - other.startedAt.getTime())) {
    const replaced = missed.findIndex((one) => mayReplace(node, one));
    if (replaced >= 0) missed.splice(replaced, 1);
  }
  return missed;
}

/** Nodes of two versions work together while one takes the place of the other, not for long. */
function versionsOf(running: readonly KnownNode[]): HeartbeatFinding[] {
  const versions = [...new Set(running.map(({ version }) => version))].sort();
  if (versions.length < 2) return [];
  const said = versions.map((version) => {
    const nodes = running.filter((node) => node.version === version);
    return `${version} (${named(nodes, ({ hostName }) => hostName)})`;
  });
  return [warn(`Nodes of ${versions.length} versions run: ${said.join(', ')}.`, 'Give all nodes the newest of them.')];
}

function lostOf(lost: readonly KnownNode[]): HeartbeatFinding[] {
  if (lost.length === 0) return [];
  const said = named(
    lost,
    ({ hostName, version, lastSeenAt }) => `${hostName} ${version}, last heard at ${lastSeenAt.toISOString()}`,
  );
  const remedy =
    'It was killed, cannot reach the database, or could not say so when it left: look at its machine and at the last ' +
    'lines of its log.';
  return [warn(`Fell silent without leaving: ${said}.`, remedy)];
}

/** A node that leaves as planned is none of them. */
const unreadyOf = (running: readonly KnownNode[]): HeartbeatFinding[] => {
  const unready = running.filter(({ problem }) => problem !== null && problem !== STOPPING);
  if (unready.length === 0) return [];
  const said = named(unready, ({ hostName, problem }) => `${hostName}: ${problem}`);
  return [warn(`Takes no requests: ${said}.`, 'Ask /readyz of the node.')];
};

/** Which nodes run, as they say themselves every few seconds, and which were lost within a day. */
export const heartbeatsCheck = (sql: Sql): Check => ({
  name: 'heartbeats',
  remedy: 'Apply the migrations.',
  async run() {
    const nodes = await knownNodes((text, values) => sql.read<KnownNode>(text, values), null);
    const running = nodes.filter(({ status }) => status !== 'away');
    const lost = nodes.filter(({ status }) => status === 'away');
    const found =
      running.length === 0
        ? 'no node runs'
        : `run: ${named(running, ({ hostName, version }) => `${hostName} ${version}`)}`;
    return [ok(found), ...versionsOf(running), ...unreadyOf(running), ...lostOf(missedOf(lost, running))];
  },
});
