import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { versionArg } from '../../graphql/versions.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { ConnectionStatusEnum } from '../connections/connection.enums.ts';
import { ConnectionPage, ToolAuthorization } from '../connections/connection.graph.ts';
import { endUserId } from '../connections/end-user.ts';
import { ToolInstance } from '../tool-instances/tool-instance.graph.ts';
import type { IssuedConnectLink } from './connect-links.ts';

const address = { minLength: 1, maxLength: 2_048, pattern: '[!-~]+' } as const satisfies Constraints;

builder.objectFields(ToolAuthorization, (t) => ({
  endUserId: t.exposeString('endUserId', {
    nullable: true,
    description:
      'What an app calls the end user whose connection it is. `null` for a connection of the workspace or of a ' +
      'namespace.',
  }),
  endUserName: t.exposeString('endUserName', {
    nullable: true,
    description: 'The name of the end user, as the app gave it.',
  }),
  endUserEmail: t.exposeString('endUserEmail', {
    nullable: true,
    description: 'The e-mail address of the end user, as the app gave it.',
  }),
}));

builder.objectField(ToolInstance, 'returnAddresses', (t) =>
  t.exposeStringList('returnAddresses', { description: 'Where connect links of the instance may lead back to.' }),
);

const ConnectLink = builder.objectRef<IssuedConnectLink>('ConnectLink').implement({
  description: 'An address at which an end user of an app connects an account of theirs.',
  fields: (t) => ({
    url: t.exposeString('url', {
      description: 'The page to open in the browser of the end user. It is shown only this once.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'Expiry time, half an hour after the link was made.',
    }),
    toolInstanceId: t.exposeID('toolInstanceId', { description: 'The tool instance.' }),
    endUserId: t.exposeString('endUserId', { description: 'The end user, as the app calls them.' }),
  }),
});
refersTo(ConnectLink, { toolInstanceId: 'tool_instance' });

const CreateConnectLinkInput = builder.inputType('CreateConnectLinkInput', {
  description: 'Who connects, and where their browser goes then.',
  fields: (t) => ({
    endUserId: t.string({
      required: true,
      constraints: endUserId,
      description: 'What the app calls the end user: visible ASCII characters. It stands for one connection.',
    }),
    name: t.string({
      constraints: { minLength: 1, maxLength: 255 },
      description: 'The name of the end user, which the page shows.',
    }),
    email: t.string({
      constraints: { maxLength: 320, format: 'email' },
      description: 'The e-mail address of the end user, which the page shows.',
    }),
    returnTo: t.string({
      constraints: address,
      description:
        'Where the browser goes at the end, with `status` and `connection_id`. It must be one of the ' +
        '`returnAddresses` of the instance. Without it, the page of the service says how it ended.',
    }),
  }),
});

const ReturnAddressesInput = builder.inputType('ReturnAddressesInput', {
  description: 'Where connect links may lead back to.',
  fields: (t) => ({
    addresses: t.stringList({
      required: true,
      constraints: { maxItems: 20, item: address },
      description:
        'The whole addresses, with https, or with http on the own machine. They replace the earlier addresses.',
    }),
  }),
});

const DeleteEndUserConnectionPayload = deletePayload('DeleteEndUserConnection', {
  noun: 'connection',
  in: ['orgId', 'workspaceId', 'toolInstanceId'],
});

builder.queryFields((t) => ({
  endUserConnection: t.field({
    type: ToolAuthorization,
    description: 'The connection of an end user by its identifier.',
    authorize: { workspace: 'connection:read' },
    args: { ...workspaceArgs(), ...idArg('The connection.') },
    resolve: ({ workspace }, { id }, context) => context.services.endUserConnections.reads.get(context, workspace, id),
  }),
  endUserConnections: t.field({
    type: ConnectionPage,
    description: 'The connections of the end users of a tool instance, newest first.',
    authorize: { workspace: 'connection:read' },
    args: {
      ...workspaceArgs(),
      ...builder.args((of) => ({
        toolInstanceId: of.id({ required: true, description: 'The tool instance.' }),
        endUserId: of.string({ constraints: endUserId, description: 'Only the connection of this end user.' }),
        status: of.field({ type: ConnectionStatusEnum, description: 'Only connections with this status.' }),
      })),
      ...pageArgs(),
    },
    resolve: async ({ workspace }, { toolInstanceId, ...args }, context) => {
      const { services } = context;
      const instance = await services.toolInstances.reads.get(context, workspace, toolInstanceId);
      return services.endUserConnections.ofInstance.list(context, inside.toolInstance(instance), args);
    },
  }),
}));

builder.mutationFields((t) => ({
  createConnectLink: t.field({
    type: ConnectLink,
    description:
      'Makes an address at which an end user of an app connects an account of theirs to a tool instance. It works ' +
      'for half an hour, for one connection, in the first browser that goes on with it, and as long as its maker ' +
      'may connect the instance. Earlier links for the same end user end. Members may make links only for the ' +
      'instances that they created. It takes `connection:use`, too, where the instance says to which host ' +
      'credentials go: by an action of its own, or for a tool whose actions leave the host to it. At most 120 a ' +
      'minute for each user.',
    authorize: { workspace: 'connection:create' },
    activity: { action: 'connect', resourceType: 'tool_instance' },
    args: {
      ...workspaceArgs(),
      ...idArg('The tool instance.'),
      ...inputArg(CreateConnectLinkInput, 'Who connects.'),
    },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.connectLinks.create(caller, workspace, id, input),
  }),
  setReturnAddresses: t.field({
    type: ToolInstance,
    description:
      'Sets where connect links of a tool instance may lead back to. Members may do so only for the instances that ' +
      'they created.',
    authorize: { workspace: 'tool_instance:update' },
    emits: ['tool_instance.updated'],
    args: { ...workspaceArgs(), ...idArg('The instance.'), ...inputArg(ReturnAddressesInput), ...versionArg() },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.endUserConnections.setReturnAddresses(caller, workspace, id, input.addresses),
  }),
  deleteEndUserConnection: t.field({
    type: DeleteEndUserConnectionPayload,
    description:
      'Deletes the connection of an end user, and ends the links that were made for them. Its tokens are revoked at ' +
      'the provider, if that is possible. Members may delete only the connections whose links they made.',
    authorize: { workspace: 'connection:delete' },
    activity: { action: 'disconnect', resourceType: 'connection' },
    emits: ['connection.deleted'],
    args: { ...workspaceArgs(), ...idArg('The connection.'), ...versionArg('the connection') },
    resolve: ({ workspace }, { id }, { caller, services }) => services.endUserConnections.delete(caller, workspace, id),
  }),
}));
