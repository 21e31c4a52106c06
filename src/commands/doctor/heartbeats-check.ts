import type { Sql } from '../../data/sql.ts';
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

/** One that came back on its machine after it was lost is missed by nobody. */
const isMissed = (lost: KnownNode, running: readonly KnownNode[]): boolean =>
  !running.some(({ hostName, startedAt }) => hostName === lost.hostName && startedAt > lost.lastSeenAt);

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
  const remedy = 'It was killed, or cannot reach the database: look at its machine and at the last lines of its log.';
  return [warn(`Fell silent without leaving: ${said}.`, remedy)];
}

const unreadyOf = (running: readonly KnownNode[]): HeartbeatFinding[] => {
  const unready = running.filter(({ problem }) => problem !== null);
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
    const lost = nodes.filter((node) => node.status === 'away' && isMissed(node, running));
    const found =
      running.length === 0
        ? 'no node runs'
        : `run: ${named(running, ({ hostName, version }) => `${hostName} ${version}`)}`;
    return [ok(found), ...versionsOf(running), ...unreadyOf(running), ...lostOf(lost)];
  },
});
