import type { StreamEvent } from '../data/outbox.ts';
import { builder } from '../graphql/builder.ts';
import { cursorOf } from './position.ts';

const EventActor = builder.objectRef<StreamEvent['actor']>('EventActor').implement({
  description: 'Who made an event happen.',
  fields: (t) => ({
    principalType: t.exposeString('principal_type', {
      description: '`user`, `api_token`, `app_token`, `service_account`, `system` or `anonymous`.',
    }),
    principalId: t.exposeID('principal_id', { nullable: true, description: 'Identifier of the principal.' }),
    username: t.exposeString('username', { nullable: true, description: 'Name of the user.' }),
  }),
});

const WorkspaceEvent = builder.objectRef<StreamEvent>('WorkspaceEvent').implement({
  description: 'Something that happened in a workspace. It carries identifiers, not rows: read what you may see.',
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace.' }),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'The namespace that it is about, if any.' }),
    environmentId: t.exposeID('environmentId', {
      nullable: true,
      description: 'The environment that it is about, if any.',
    }),
    appId: t.exposeID('appId', { nullable: true, description: 'The app that it is about, if any.' }),
  }),
});

const OrganizationEvent = builder.objectRef<StreamEvent>('OrganizationEvent').implement({
  description:
    'Something that happened in an organization itself. It carries identifiers, not rows: read what you may see.',
});

for (const Event of [WorkspaceEvent, OrganizationEvent])
  builder.objectFields(Event, (t) => ({
    id: t.exposeID('id', { description: 'Identifier.' }),
    cursor: t.string({
      authorize: 'inherited',
      extensions: { sameForAll: true },
      description: 'Place of the event in the stream. Pass it as `after` to resume behind it.',
      resolve: cursorOf,
    }),
    type: t.exposeString('type', {
      description:
        '`<resource>.created`, `<resource>.updated`, …; `resync` and `stream.closing` are about the stream itself.',
    }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    actor: t.field({
      type: EventActor,
      authorize: 'inherited',
      extensions: { sameForAll: true },
      description: 'Who did it.',
      resolve: (event) => event.actor,
    }),
    resourceType: t.exposeString('resourceType', { description: 'Kind of the resource.' }),
    resourceId: t.exposeID('resourceId', { description: 'Identifier of the resource.' }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details of the type.' }),
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When it happened.' }),
    traceId: t.exposeString('traceId', { nullable: true, description: 'Trace of the request that caused it.' }),
  }));

const RESUMING =
  'from now on, or from behind the event `after`, in the order in which it was committed. Events of the last 24 hours can be resumed from, 10,000 at most; a reader that missed more gets one `resync` event and reads its state again.';
const CLOSING = (deletion: string) =>
  `The last event is \`stream.closing\`; \`data.reason\` is \`timeout\`, \`token_revoked\`, \`membership_revoked\`, \`shutdown\`, \`slow_consumer\`, \`${deletion}\` or \`unavailable\`.`;

builder.subscriptionFields((t) => {
  const wish = {
    after: t.arg.string({
      description:
        'The `cursor` of the last event that was seen. Over SSE the header `Last-Event-ID` takes precedence.',
    }),
    types: t.arg.stringList({
      constraints: { minItems: 1, maxItems: 100, item: { maxLength: 64 } },
      description:
        'Only these events: exact types like `secret.rotated`, and `secret.*` for all of a resource. What is about the stream itself always comes.',
    }),
  };
  return {
    workspaceEvents: t.field({
      type: WorkspaceEvent,
      description: `What happens in a workspace, ${RESUMING} A token that is confined to namespaces, environments or an app does not hear of others. ${CLOSING('workspace_deleted')}`,
      authorize: { workspace: 'sync:subscribe' },
      activity: { resourceType: 'sync', action: 'read' },
      args: {
        orgId: t.arg.id({ required: true, description: 'The organization of the workspace.' }),
        workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
        ...wish,
      },
      extensions: { sameForAll: true },
      subscribe: (_root, { orgId, workspaceId, after, types }, { actor, services, lastEventId }) =>
        services.events.subscribe(actor, { orgId, workspaceId }, { after: lastEventId ?? after, types }),
      resolve: (event: StreamEvent) => event,
    }),
    organizationEvents: t.field({
      type: OrganizationEvent,
      description: `What happens in an organization itself (to the organization, its members, invitations, models, provider accounts, API tokens and own secrets), ${RESUMING} Whoever may read a resource receives its events: of API tokens their owner, and who manages them. Events of workspaces come by \`workspaceEvents\`. ${CLOSING('organization_deleted')}`,
      authorize: { organization: 'sync:subscribe' },
      activity: { resourceType: 'sync', action: 'read' },
      args: { orgId: t.arg.id({ required: true, description: 'The organization.' }), ...wish },
      extensions: { sameForAll: true },
      subscribe: (_root, { orgId, after, types }, { actor, services, lastEventId }) =>
        services.events.subscribeToOrganization(actor, orgId, { after: lastEventId ?? after, types }),
      resolve: (event: StreamEvent) => event,
    }),
  };
});
