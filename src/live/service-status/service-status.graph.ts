import type { SigningKeyFacts } from '../../access/signing-keys.ts';
import { builder } from '../../graphql/builder.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { KnownNode, ServiceNode } from '../../platform/nodes/known-nodes.ts';
import type { RootKeyUse } from '../../vault/secrets/root-key-uses.ts';
import type { Lag } from '../events/event-lag.ts';
import type { NodeConnections, ServiceStatus, TaskJobs } from './service-status.service.ts';

const NodeStatus = builder.objectRef<ServiceNode>('NodeStatus').implement({
  description: 'The node that answers. With several nodes behind a proxy, the next answer may be of another node.',
  fields: (t) => ({
    version: t.exposeString('version', { description: 'Its version.' }),
    startedAt: t.expose('startedAt', { type: 'DateTime', description: 'When the process that answers started.' }),
    workerCount: t.exposeInt('workerCount', { description: 'How many workers it should have (`WORKERS`).' }),
    runningWorkerCount: t.exposeInt('runningWorkerCount', { description: 'How many of them are ready.' }),
  }),
});

const NodeStateType = wordEnum('NodeState', 'How a node of the service is.', {
  ready: 'It takes requests.',
  not_ready: 'It runs, and takes no requests: `problem` says why.',
  away: 'It has not said for 45 seconds that it runs.',
});

const KnownNodeType = builder.objectRef<KnownNode>('KnownNode').implement({
  description:
    'A node of the service, as it said itself: each says every 15 seconds that it runs. One that stops leaves the ' +
    'list. One that was lost stays for a day.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Of this start of the node: after the next one it is another.' }),
    hostName: t.exposeString('hostName', { description: 'The name of its machine or container.' }),
    address: t.exposeString('address', {
      nullable: true,
      description: 'The address, as the database sees it: that of a pooler, if one is between. `null` for a socket.',
    }),
    version: t.exposeString('version', { description: 'Its version.' }),
    startedAt: t.expose('startedAt', { type: 'DateTime', description: 'When it started.' }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime', description: 'When it last said that it runs.' }),
    workerCount: t.exposeInt('workerCount', { description: 'How many workers it should have (`WORKERS`).' }),
    runningWorkerCount: t.exposeInt('runningWorkerCount', { description: 'How many of them were ready.' }),
    status: t.expose('status', { type: NodeStateType, authorize: 'inherited', description: 'How it is.' }),
    problem: t.exposeString('problem', {
      nullable: true,
      description: 'Why it takes no requests, as in `/readyz`.',
    }),
    isAnswering: t.exposeBoolean('isAnswering', { description: 'Whether it is the node that answers.' }),
  }),
});

const DatabaseClient = builder.objectRef<NodeConnections>('DatabaseClient').implement({
  description:
    'Connections of nodes to the primary database, by the address from which they come. Several nodes with one ' +
    'address, or behind one pooler, are one entry; a node without an open connection has none.',
  fields: (t) => ({
    address: t.exposeString('address', {
      nullable: true,
      description: 'The address, as the database sees it. `null` for a local socket.',
    }),
    connectionCount: t.exposeInt('connectionCount', { description: 'How many are open.' }),
    oldestConnectionAt: t.expose('oldestAt', { type: 'DateTime', description: 'When the oldest of them was opened.' }),
  }),
});

const JobStatus = builder.objectRef<TaskJobs>('JobStatus').implement({
  description: 'The background jobs of a task, of all nodes. At most 100,000 jobs of all tasks are counted.',
  fields: (t) => ({
    task: t.exposeString('task', { description: 'The name of the task, as in logs and metrics.' }),
    waitingCount: t.exposeInt('waitingCount', { description: 'Not tried yet.' }),
    retryingCount: t.exposeInt('retryingCount', { description: 'Failed, and waiting for another attempt.' }),
    runningCount: t.exposeInt('runningCount', { description: 'Running now.' }),
    failedCount: t.exposeInt('failedCount', {
      description:
        'Out of attempts because their node died in the last one. A node removes them soon. Jobs that fail in their ' +
        'last attempt are removed at once: the log and `platform_jobs_given_up_total` have them.',
    }),
    oldestWaitingSeconds: t.exposeFloat('oldestWaitingSeconds', {
      nullable: true,
      description: 'For how long the oldest job could have run already. `null` if no job is due.',
    }),
  }),
});

const EventLagStatus = builder.objectRef<Lag>('EventLagStatus').implement({
  description: 'Events that are held back by a running transaction, as in `/readyz`.',
  fields: (t) => ({
    waitingCount: t.exposeInt('waiting', { description: 'How many, 10,000 at most.' }),
    lagSeconds: t.exposeFloat('seconds', { description: 'The age of the oldest of them, in seconds. 0 for none.' }),
  }),
});

const RootKeyStatus = builder.objectRef<RootKeyUse>('RootKeyStatus').implement({
  description: 'A root key that the database needs. It never shows the key.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Its id, as in the name of its file or in `ROOT_KEYS`.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the database first needed it.' }),
    sealedCount: t.exposeInt('sealedCount', {
      description: 'Secrets and credentials whose data keys it wraps, with deleted secrets. 10,000 at most.',
    }),
    isCurrent: t.exposeBoolean('isCurrent', { description: 'Whether the node that answers wraps with it.' }),
    isPresent: t.exposeBoolean('isPresent', { description: 'Whether the node that answers has it.' }),
  }),
});

const SigningKeyStatus = builder.objectRef<SigningKeyFacts>('SigningKeyStatus').implement({
  description: 'A key that verifies access tokens. It never shows the private key.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Its `kid`, as in `/.well-known/jwks.json`.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was made. `null` for keys that earlier versions made.',
    }),
    retiredAt: t.expose('retiredAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When a newer key took its place. `null` for the key that signs.',
    }),
  }),
});

const ServiceStatusType = builder.objectRef<ServiceStatus>('ServiceStatus').implement({
  description: 'The state of the service: its nodes, background jobs, live events and keys.',
  fields: (t) => ({
    node: t.expose('node', { type: NodeStatus, authorize: 'inherited', description: 'The node that answers.' }),
    nodes: t.field({
      type: [KnownNodeType],
      authorize: 'inherited',
      description: 'The nodes of the service: those that run, then those that were lost. 200 at most.',
      resolve: (status) => status.nodes(),
    }),
    databaseClients: t.field({
      type: [DatabaseClient],
      authorize: 'inherited',
      description: 'What the database knows of all nodes: their connections, by address. 100 addresses at most.',
      resolve: (status) => status.connections(),
    }),
    jobs: t.field({
      type: [JobStatus],
      authorize: 'inherited',
      description: 'The background jobs, by task.',
      resolve: (status) => status.jobs(),
    }),
    eventLag: t.field({
      type: EventLagStatus,
      authorize: 'inherited',
      description: 'How far live events are behind.',
      resolve: (status) => status.eventLag(),
    }),
    rootKeys: t.field({
      type: [RootKeyStatus],
      authorize: 'inherited',
      description: 'The root keys that the database needs, newest first. 100 at most.',
      resolve: (status) => status.rootKeys(),
    }),
    signingKeys: t.field({
      type: [SigningKeyStatus],
      authorize: 'inherited',
      description: 'The keys of access tokens, of the node that answers; the key that signs first.',
      resolve: (status) => status.signingKeys(),
    }),
  }),
});

builder.queryFields((t) => ({
  serviceStatus: t.field({
    type: ServiceStatusType,
    description: 'The state of the service, for administrators of the platform. Refused to everybody else.',
    authorize: { session: 'organization:update' },
    resolve: (_root, _args, { caller, services }) => services.serviceStatus.of(caller),
  }),
}));
