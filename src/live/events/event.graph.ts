import type { StreamEvent } from '../../data/outbox.ts';
import { builder } from '../../graphql/builder.ts';
import type { Context } from '../../graphql/context.ts';
import { bounds } from '../../graphql/inputs.ts';
import { Node, visibleResource } from '../../graphql/node.ts';
import { PrincipalTypeEnum } from '../../graphql/shared-enums.ts';
import type { SubscribeOptions } from './event.service.ts';

// the REST routes of these streams are in rest/operations/sync.graphql

const EventActor = builder.objectRef<StreamEvent['actor']>('EventActor').implement({
  description: 'Who caused an event.',
  fields: (t) => ({
    principalType: t.expose('principal_type', { type: PrincipalTypeEnum, description: 'What kind of principal.' }),
    principalId: t.exposeID('principal_id', { nullable: true, description: 'Identifier of the principal.' }),
    username: t.exposeString('username', { nullable: true, description: 'Name of the user.' }),
  }),
});

const WorkspaceEvent = builder.objectRef<StreamEvent>('WorkspaceEvent').implement({
  description:
    'An event in a workspace. It is the same for everybody who receives it, except for `resource`, which is what the ' +
    'reader may see.',
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace.' }),
    namespaceId: t.exposeID('namespaceId', {
      nullable: true,
      description: 'The namespace that the event is about, if any.',
    }),
    environmentId: t.exposeID('environmentId', {
      nullable: true,
      description: 'The environment that the event is about, if any.',
    }),
    appId: t.exposeID('appId', { nullable: true, description: 'The app that the event is about, if any.' }),
  }),
});

const OrganizationEvent = builder.objectRef<StreamEvent>('OrganizationEvent').implement({
  description:
    'An event of an organization itself. It is the same for everybody who receives it, except for `resource`, which ' +
    'is what the reader may see.',
});

for (const Event of [WorkspaceEvent, OrganizationEvent])
  builder.objectFields(Event, (t) => ({
    id: t.exposeID('id', { description: 'Identifier of the event.' }),
    cursor: t.string({
      authorize: 'inherited',
      extensions: { sameForAll: true },
      description: 'Position of the event in the stream. Pass it as `after` to resume after this event.',
      resolve: (event, _args, { services }) => services.events.cursorOf(event),
    }),
    type: t.exposeString('type', {
      description:
        '`<resource>.created`, `<resource>.updated` and so on. `resync`, `heartbeat` and `stream.closing` are about ' +
        'the stream itself. An open set: later versions have more types, and a client ignores those that it does not ' +
        'know.',
    }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    actor: t.field({
      type: EventActor,
      authorize: 'inherited',
      extensions: { sameForAll: true },
      description: 'Who caused the event.',
      resolve: (event) => event.actor,
    }),
    resourceType: t.exposeString('resourceType', { description: 'Kind of the resource: an open set, as `type`.' }),
    resourceId: t.exposeID('resourceId', { description: 'Identifier of the resource.' }),
    resource: t.field({
      type: Node,
      nullable: true,
      authorize: 'signedIn',
      extensions: { beside: 'resourceId' },
      description:
        'The resource as it is when the event is sent, read with the rights that the reader has then: what ' +
        '`node(id: resourceId)` would be. `null` if it was deleted, if the reader may not read it, and for what is ' +
        'no `Node`.',
      resolve: ({ resourceId, orgId }, _args, context) => visibleResource(context, resourceId, orgId),
    }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details, depending on `type`.' }),
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When it happened.' }),
    traceId: t.exposeString('traceId', { nullable: true, description: 'Trace of the request that caused the event.' }),
  }));

const RESUMING =
  'The stream starts now, or after the event `after`, and keeps the order of the commits. A client can resume within ' +
  'the last 24 hours and at most 10,000 events, and not to before its user joined or got the present role. A client ' +
  'that missed more gets one `resync` event and must read its state again.';
const RECEIVING = 'A client receives the events of the resources that it may read.';
const SECONDS = { min: 60, max: 7_200 };

const CLOSING = (deletion: string) =>
  'The last event is `stream.closing`. Its `data.reason` is `timeout`, `token_revoked`, `membership_revoked`, ' +
  `\`shutdown\`, \`slow_consumer\`, \`${deletion}\` or \`unavailable\`.`;

interface SubscribeArgs extends Pick<SubscribeOptions, 'after' | 'types' | 'heartbeat' | 'join'> {
  timeout?: number | null | undefined;
}

const subscribeOptions = (
  { after, types, timeout, heartbeat, join }: SubscribeArgs,
  lastEventId: string | undefined,
): SubscribeOptions => ({
  after: lastEventId ?? after,
  types,
  timeoutSeconds: timeout,
  heartbeat,
  join,
});

/** The streams, whose readers read together what an event is about. */
function eventsOf(context: Context): Context['services']['events'] {
  const { events } = context.services;
  context.rows = events.rows;
  return events;
}

builder.queryField('eventCursor', (t) =>
  t.string({
    description:
      'Where the streams of all workspaces and organizations are now. A client asks for it, then reads what it ' +
      'shows, and follows a stream with it as `after`: what changes between its reading and the beginning of the ' +
      'stream is not missed. Other fields of the same document may be read before it.',
    // anybody who is signed in may ask: a position says nothing about a place
    authorize: { service: 'sync:subscribe' },
    activity: { resourceType: 'sync', action: 'read' },
    resolve: (_root, _args, { caller, services }) => services.events.cursorNow(caller),
  }),
);

builder.subscriptionFields((t) => {
  const options = {
    after: t.arg.string({
      constraints: bounds.cursor,
      description:
        'The `cursor` of the last event that the client saw. Over SSE, the header `Last-Event-ID` takes precedence.',
    }),
    types: t.arg.stringList({
      constraints: { minItems: 1, maxItems: 100, item: { maxLength: 64 } },
      description:
        'Only events of these types: an exact type like `secret.rotated`, or `secret.*` for all events of a ' +
        'resource. Events about the stream itself are always sent.',
    }),
    timeout: t.arg.int({
      constraints: SECONDS,
      description: 'Seconds after which the stream ends. Default: it does not end by itself.',
    }),
  };
  return {
    workspaceEvents: t.field({
      type: WorkspaceEvent,
      description:
        `The events of a workspace. ${RESUMING} ${RECEIVING} A token that is restricted to namespaces, ` +
        `environments or an app does not receive events of others. ${CLOSING('workspace_deleted')}`,
      authorize: { workspace: 'sync:subscribe' },
      activity: { resourceType: 'sync', action: 'read' },
      args: {
        orgId: t.arg.id({ required: true, description: 'The organization of the workspace.' }),
        workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
        heartbeat: t.arg.boolean({
          description: 'Whether to send the event `heartbeat` after every 15 seconds without an event.',
        }),
        join: t.arg.boolean({
          description:
            'Whether the user is present in the workspace while the stream is open; not for tokens. The stream then ' +
            'begins with the event `connected`, with its `connection_id`, its `timeout`, `last_event_id`, after ' +
            'which it resumes, and `presence`, who is present.',
        }),
        ...options,
      },
      extensions: { sameForAll: true },
      subscribe: (_root, { orgId, workspaceId, ...options }, context) =>
        eventsOf(context).subscribe(
          context.caller,
          { orgId, workspaceId },
          subscribeOptions(options, context.lastEventId),
        ),
      resolve: (event: StreamEvent) => event,
    }),
    organizationEvents: t.field({
      type: OrganizationEvent,
      description:
        'The events of an organization itself: of the organization, its members, invitations, models, provider ' +
        `accounts, API tokens and its own secrets, \`workspace.created\` and \`workspace.restored\`. ${RESUMING} ` +
        `${RECEIVING} Events of an API token go to its owner and to those who manage tokens. \`workspaceEvents\` ` +
        `sends the other events of workspaces. ${CLOSING('organization_deleted')}`,
      authorize: { organization: 'sync:subscribe' },
      activity: { resourceType: 'sync', action: 'read' },
      args: { orgId: t.arg.id({ required: true, description: 'The organization.' }), ...options },
      extensions: { sameForAll: true },
      subscribe: (_root, { orgId, ...options }, context) =>
        eventsOf(context).subscribeToOrganization(
          context.caller,
          orgId,
          subscribeOptions(options, context.lastEventId),
        ),
      resolve: (event: StreamEvent) => event,
    }),
  };
});
