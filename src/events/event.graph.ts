import { builder } from '../graphql/builder.ts';
import type { StreamEvent } from '../infra/events.ts';

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
    id: t.exposeID('id', { description: 'Identifier; deliveries repeat, so drop what you have seen.' }),
    type: t.exposeString('type', { description: '`<resource>.created`, `<resource>.updated`, …' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace.' }),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'The namespace that it is about, if any.' }),
    environmentId: t.exposeID('environmentId', {
      nullable: true,
      description: 'The environment that it is about, if any.',
    }),
    appId: t.exposeID('appId', { nullable: true, description: 'The app that it is about, if any.' }),
    actor: t.field({
      type: EventActor,
      authorize: 'inherited',
      description: 'Who did it.',
      resolve: (event) => event.actor,
    }),
    resourceType: t.exposeString('resourceType', { description: 'Kind of the resource.' }),
    resourceId: t.exposeID('resourceId', { description: 'Identifier of the resource.' }),
    data: t.expose('data', { type: 'JSONObject', description: 'Details of the type.' }),
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When it happened.' }),
    traceId: t.exposeString('traceId', { nullable: true, description: 'Trace of the request that caused it.' }),
  }),
});

builder.subscriptionFields((t) => ({
  workspaceEvents: t.field({
    type: WorkspaceEvent,
    description:
      'What happens in a workspace from now on, in the order in which it was committed. A token that is confined to namespaces, environments or an app does not hear of others. Ends when the session or the membership does.',
    authorize: { workspace: 'sync:subscribe' },
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization of the workspace.' }),
      workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
    },
    subscribe: (_root, { orgId, workspaceId }, { actor, services }) =>
      services.events.subscribe(actor, orgId, workspaceId),
    resolve: (event: StreamEvent) => event,
  }),
}));
