import { builder } from '../../graphql/builder.ts';
import { inWorkspace, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { namespaceArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { reasonBounds } from '../../tenancy/reveal-reasons.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import { ToolInstance } from '../tool-instances/tool-instance.graph.ts';
import { ConnectionAuthType, ConnectionStatusEnum } from './connection.enums.ts';
import type { ConnectionRow, InitiatedConnection as InitiatedConnectionRow } from './connection.service.ts';
import type {
  ConnectionRequirement as RequirementRow,
  ConnectionRequirements as RequirementsRow,
} from './connection-requirements.ts';
import type { ConnectionToken as ConnectionTokenRow } from './connection-tokens.ts';
import { endUserId } from './end-user.ts';
import { missingScopes } from './missing-scopes.ts';

export const ToolAuthorization = builder.objectRef<ConnectionRow>('ToolAuthorization').implement({
  description:
    'The credentials of a tool instance at its provider: OAuth tokens or an API key, for a namespace or for the ' +
    'whole workspace. A namespace without a connection of its own uses the connection of the workspace. The ' +
    'tokens and the key are never shown.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    namespaceId: t.exposeID('namespaceId', {
      nullable: true,
      description: 'The namespace. `null` if the connection is for the whole workspace.',
    }),
    toolInstanceId: t.exposeID('toolInstanceId', { description: 'The tool instance.' }),
    toolId: t.exposeID('toolId', { description: 'The tool of the instance.' }),
    authType: t.expose('authType', { type: ConnectionAuthType, description: 'What kind of credential it has.' }),
    status: t.expose('status', { type: ConnectionStatusEnum, description: 'Its status.' }),
    scopes: t.exposeStringList('scopes', { description: 'The scopes that the provider granted.' }),
    requestedScopes: t.exposeStringList('requestedScopes', {
      description: 'The scopes that the last authorization asked for. Empty for an API key.',
    }),
    missingScopes: t.stringList({
      authorize: 'inherited',
      description:
        'The scopes that the last authorization asked for and the provider did not grant. The status stays ' +
        '`connected`, because the token works for the rest.',
      resolve: ({ requestedScopes, scopes }) => missingScopes(requestedScopes, scopes),
    }),
    accountLabel: t.exposeString('accountLabel', {
      nullable: true,
      description: 'The account at the provider. `null` if the provider does not name it.',
    }),
    expiresAt: t.expose(
      'expiresAt',
      optionalTime('Expiry time of the access token. The service refreshes the token before it expires.'),
    ),
    lastRefreshedAt: t.expose('lastRefreshedAt', optionalTime('When the access token was last refreshed.')),
    lastError: t.exposeString('lastError', {
      nullable: true,
      description: 'Why the last refresh failed. `null` if it did not.',
    }),
  }),
});

inWorkspace(ToolAuthorization, 'connection');
tracked(ToolAuthorization, { by: 'The user who connected it first.' });
refersTo(ToolAuthorization, {
  workspaceId: 'workspace',
  namespaceId: 'namespace',
  toolId: 'tool',
  toolInstanceId: 'tool_instance',
});
export const ConnectionPage = readable(ToolAuthorization, {
  kind: 'connection',
  // a type whose name ends in Connection is a page (Relay)
  word: 'Connection',
  below: Workspace,
  reads: ({ connections }) => connections.reads,
  // the REST list has no cursor
  list: {
    description: 'The connections of a workspace and of its namespaces, newest first.',
    page: () => pageArgs({ min: 1, max: 10_000 }),
  },
  nested: { description: 'The connections of the workspace and of its namespaces, newest first.' },
});

builder.objectField(Namespace, 'connections', (t) =>
  t.field({
    type: ConnectionPage,
    description: 'The connections of the namespace itself, newest first.',
    authorize: { workspace: 'connection:read' },
    args: pageArgs(),
    resolve: (row, args, context) =>
      context.services.connections.inNamespace.list(context, inside.namespace(row), args),
  }),
);

builder.objectField(ToolInstance, 'connections', (t) =>
  t.field({
    type: ConnectionPage,
    description: 'The connections of the instance, for the workspace and for namespaces, newest first.',
    authorize: { workspace: 'connection:read' },
    args: pageArgs(),
    resolve: (row, args, context) =>
      context.services.connections.ofInstance.list(context, inside.toolInstance(row), args),
  }),
);

const ConnectionRequirement = builder.objectRef<RequirementRow>('ConnectionRequirement').implement({
  description: 'A tool that an app uses and that must be connected.',
  fields: (t) => ({
    toolId: t.exposeID('toolId', { description: 'The tool.' }),
    toolSlug: t.exposeString('toolSlug', { description: 'The slug of the tool.' }),
    toolName: t.exposeString('toolName', { description: 'The name of the tool.' }),
    toolInstanceId: t.exposeID('toolInstanceId', {
      nullable: true,
      description: 'The tool instance. `null` if the workspace has none that the namespace can use.',
    }),
    authType: t.expose('authType', { type: ConnectionAuthType, description: 'What kind of credential it needs.' }),
    scopes: t.exposeStringList('scopes', { description: 'The scopes that an authorization asks for.' }),
    status: t.expose('status', {
      type: ConnectionStatusEnum,
      description: 'The status of the connection that the namespace uses; `not_connected` if it has none.',
    }),
    missingScopes: t.exposeStringList('missingScopes', {
      description: 'The `scopes` that the connection does not have. Empty unless the status is `connected`.',
    }),
    satisfied: t.exposeBoolean('satisfied', {
      description: 'Whether the status is `connected` and no scope is missing.',
    }),
  }),
});

refersTo(ConnectionRequirement, { toolId: 'tool', toolInstanceId: 'tool_instance' });

const ConnectionRequirements = builder.objectRef<RequirementsRow>('ConnectionRequirements').implement({
  description: 'What an app needs to be connected in a namespace.',
  fields: (t) => ({
    appId: t.exposeID('appId', { description: 'The app.' }),
    requirements: t.expose('requirements', {
      type: [ConnectionRequirement],
      authorize: 'inherited',
      description: 'What the app needs, by the slug of the tool. At most 1,000.',
    }),
    total: t.exposeInt('total', { description: 'The number of requirements.' }),
    allSatisfied: t.exposeBoolean('allSatisfied', { description: 'Whether all requirements are satisfied.' }),
  }),
});
refersTo(ConnectionRequirements, { appId: 'app' });

const InitiatedToolAuthorization = builder.objectRef<InitiatedConnectionRow>('InitiatedToolAuthorization').implement({
  description: 'A started authorization.',
  fields: (t) => ({
    authorizationUrl: t.exposeString('authorizationUrl', {
      description: 'The page of the provider to open. It returns to the callback page with a code and the state.',
    }),
    state: t.exposeString('state', {
      description: 'Identifies the authorization. Only the user who started it can finish it, once.',
    }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the authorization must be finished.' }),
    toolInstanceId: t.exposeID('toolInstanceId', { description: 'The tool instance.' }),
    connectionId: t.exposeID('connectionId', { description: 'The connection that the exchange will fill.' }),
  }),
});
refersTo(InitiatedToolAuthorization, { connectionId: 'connection', toolInstanceId: 'tool_instance' });

const listArgs = () => pageArgs({ min: 1, max: 10_000 });

builder.queryFields((t) => ({
  namespaceConnections: t.field({
    type: ConnectionPage,
    description: 'The connections of a namespace itself, newest first.',
    authorize: { workspace: 'connection:read', in: 'namespace' },
    args: { ...namespaceArgs(), ...listArgs() },
    resolve: ({ namespace }, args, context) => context.services.connections.inNamespace.list(context, namespace, args),
  }),
  connectionRequirements: t.field({
    type: ConnectionRequirements,
    description:
      'What must be connected in a namespace for an app to run: the tool instances of its steps (or their tools, ' +
      'for steps without an instance), and the tools and tool instances whose identifiers are in the configs of ' +
      'its steps, in its metadata or in the metadata of its newest release.',
    authorize: { workspace: 'connection:read', in: 'namespace' },
    args: {
      ...namespaceArgs(),
      ...builder.args((of) => ({ appId: of.id({ required: true, description: 'The app.' }) })),
    },
    resolve: async ({ namespace }, { appId }, { services }) => {
      const found = await services.access.parts.findPart(namespace, 'app', appId);
      return services.connectionRequirements.of(namespace, found);
    },
  }),
}));

const apiKey = {
  minLength: 1,
  maxLength: 8_192,
  pattern: '[!-~]+(?: [!-~]+)*',
  sensitive: true,
} as const satisfies Constraints;

const InitiateConnectionInput = builder.inputType('InitiateConnectionInput', {
  description: 'What to connect.',
  fields: (t) => ({
    toolInstanceId: t.id({ required: true, constraints: bounds.id, description: 'The tool instance.' }),
  }),
});

const CreateConnectionInput = builder.inputType('CreateConnectionInput', {
  description: 'What to connect, and with which key.',
  fields: (t) => ({
    toolInstanceId: t.id({ required: true, constraints: bounds.id, description: 'The tool instance.' }),
    apiKey: t.string({ required: true, constraints: apiKey, description: 'The API key. It is never shown again.' }),
  }),
});

const ofInstance = () =>
  builder.args((t) => ({ toolInstanceId: t.id({ required: true, description: 'The tool instance.' }) }));

const forEndUser = () =>
  builder.args((t) => ({
    endUserId: t.string({
      constraints: endUserId,
      description: 'The connection of this end user, and no other: without such a connection it is a 404.',
    }),
  }));

const forReason = () =>
  builder.args((t) => ({
    reason: t.string({
      constraints: reasonBounds,
      description:
        'Why the credential is taken. The activity record keeps it, as `metadata.reason`. An organization may demand ' +
        'it (`requireRevealReason`).',
    }),
  }));

const INITIATE =
  'A connection that is there keeps working until the authorization is finished. Members may connect only the tool ' +
  'instances that they created.';
const BY_KEY =
  'It replaces the connection that is there. A tool that describes only an OAuth service refuses a key. Members may ' +
  'connect only the tool instances that they created.';
const REFRESH =
  'The answer is the connection as it is afterwards: if the provider refuses the refresh token, its status is ' +
  '`needs_reauth`, and if the provider is in trouble, `lastError` says so. An API key, a connection without a ' +
  'refresh token and one that must be authorized again stay as they are. Members may refresh only the connections ' +
  'of the tool instances that they created. At most six times a minute for each connection.';
const DELETE =
  'Its tokens are revoked at the provider, if that is possible. Members may delete only the connections that they ' +
  'created.';

const DeleteWorkspaceConnectionPayload = deletePayload('DeleteWorkspaceConnection', {
  noun: 'connection',
  in: ['orgId', 'workspaceId', 'toolInstanceId'],
  message: 'Connection deleted successfully',
});

const DeleteNamespaceConnectionPayload = deletePayload('DeleteNamespaceConnection', {
  noun: 'connection',
  in: ['orgId', 'workspaceId', 'namespaceId', 'toolInstanceId'],
  message: 'Connection deleted successfully',
});

const ConnectionToken = builder.objectRef<ConnectionTokenRow>('ConnectionToken').implement({
  description: 'The credential of a connection, for callers who run steps.',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'The access token, or the API key.' }),
    tokenType: t.exposeString('tokenType', {
      nullable: true,
      description: '`bearer`. `null` for an API key, which goes where the tool says.',
    }),
    authType: t.expose('authType', { type: ConnectionAuthType, description: 'What kind of credential it is.' }),
    expiresAt: t.expose('expiresAt', optionalTime('Expiry time of the access token. `null` if it does not expire.')),
    scopes: t.exposeStringList('scopes', { description: 'The scopes that the provider granted.' }),
    status: t.expose('status', { type: ConnectionStatusEnum, description: 'The status of the connection.' }),
    connectionId: t.exposeID('connectionId', { description: 'The connection.' }),
    toolInstanceId: t.exposeID('toolInstanceId', { description: 'The tool instance.' }),
  }),
});
refersTo(ConnectionToken, { connectionId: 'connection', toolInstanceId: 'tool_instance' });

const ISSUE =
  'An access token that ends within five minutes is refreshed first. The permission is part of no read or write ' +
  'scope: a token must name it. Each time is recorded before the credential leaves. At most 120 times a minute for ' +
  'each user.';

builder.mutationFields((t) => ({
  issueWorkspaceConnectionToken: t.field({
    type: ConnectionToken,
    description: `Shows the credential of the connection of a tool instance for the workspace. ${ISSUE}`,
    authorize: { workspace: 'connection:use' },
    activity: { action: 'reveal', resourceType: 'connection' },
    args: { ...workspaceArgs(), ...ofInstance(), ...forEndUser(), ...forReason() },
    resolve: ({ workspace }, { toolInstanceId, endUserId: of, reason }, { caller, services }) =>
      services.connectionTokens.issue(caller, workspace, toolInstanceId, { endUserId: of, reason }),
  }),
  issueNamespaceConnectionToken: t.field({
    type: ConnectionToken,
    description:
      'Shows the credential that a tool instance uses in a namespace: of its own connection, or of the connection ' +
      `of the workspace. ${ISSUE}`,
    authorize: { workspace: 'connection:use', in: 'namespace' },
    activity: { action: 'reveal', resourceType: 'connection' },
    args: { ...namespaceArgs(), ...ofInstance(), ...forEndUser(), ...forReason() },
    resolve: ({ namespace }, { toolInstanceId, endUserId: of, reason }, { caller, services }) =>
      services.connectionTokens.issue(caller, namespace, toolInstanceId, { endUserId: of, reason }),
  }),
  initiateNamespaceConnection: t.field({
    type: InitiatedToolAuthorization,
    description: `Starts the authorization of a tool instance for a namespace. ${INITIATE}`,
    authorize: { workspace: 'connection:create', in: 'namespace' },
    activity: { action: 'connect', resourceType: 'connection' },
    mayEmit: ['connection.created', 'connection.updated'],
    args: { ...namespaceArgs(), ...inputArg(InitiateConnectionInput, 'What to connect.') },
    resolve: ({ namespace }, { input }, { caller, services }) =>
      services.connections.initiate(caller, namespace, input.toolInstanceId),
  }),
  initiateWorkspaceConnection: t.field({
    type: InitiatedToolAuthorization,
    description: `Starts the authorization of a tool instance for the whole workspace. ${INITIATE}`,
    authorize: { workspace: 'connection:create' },
    activity: { action: 'connect', resourceType: 'connection' },
    mayEmit: ['connection.created', 'connection.updated'],
    args: { ...workspaceArgs(), ...inputArg(InitiateConnectionInput, 'What to connect.') },
    resolve: ({ workspace }, { input }, { caller, services }) =>
      services.connections.initiate(caller, workspace, input.toolInstanceId),
  }),
  exchangeConnection: t.field({
    type: ToolAuthorization,
    description:
      'Finishes an authorization with the code and the state that the provider sent to the callback page. The state ' +
      'works once, for ten minutes, for the user who started the authorization and may still connect the instance.',
    authorize: 'signedIn',
    activity: { action: 'connect', resourceType: 'connection' },
    emits: ['connection.updated'],
    isCredential: true,
    mayFail: ['RESOURCE_NOT_FOUND', 'UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'],
    args: builder.args((of) => ({
      code: of.string({
        required: true,
        constraints: { minLength: 1, maxLength: 4_096, sensitive: true },
        description: 'The authorization code of the provider.',
      }),
      state: of.string({
        required: true,
        constraints: { minLength: 1, maxLength: 512, sensitive: true },
        description: 'The state that came back with the code.',
      }),
      iss: of.string({
        constraints: { minLength: 1, maxLength: 2_048 },
        description:
          'The `iss` that came back with the code (RFC 9207): pass it on if there was one. Demanded of providers ' +
          'that always send it, and for the client by the document of this service.',
      }),
    })),
    resolve: (_root, { code, state, iss }, { caller, services }) =>
      services.connections.exchange(caller, code, state, iss ?? null),
  }),
  createNamespaceConnection: t.field({
    type: ToolAuthorization,
    description: `Connects a tool instance with an API key for a namespace. ${BY_KEY}`,
    authorize: { workspace: 'connection:create', in: 'namespace' },
    activity: { action: 'connect', resourceType: 'connection' },
    mayEmit: ['connection.created', 'connection.updated'],
    args: { ...namespaceArgs(), ...inputArg(CreateConnectionInput, 'What to connect.') },
    resolve: ({ namespace }, { input }, { caller, services }) =>
      services.connections.createByKey(caller, namespace, input.toolInstanceId, input.apiKey),
  }),
  createWorkspaceConnection: t.field({
    type: ToolAuthorization,
    description: `Connects a tool instance with an API key for the whole workspace. ${BY_KEY}`,
    authorize: { workspace: 'connection:create' },
    activity: { action: 'connect', resourceType: 'connection' },
    mayEmit: ['connection.created', 'connection.updated'],
    args: { ...workspaceArgs(), ...inputArg(CreateConnectionInput, 'What to connect.') },
    resolve: ({ workspace }, { input }, { caller, services }) =>
      services.connections.createByKey(caller, workspace, input.toolInstanceId, input.apiKey),
  }),
  refreshNamespaceConnection: t.field({
    type: ToolAuthorization,
    description: `Refreshes the access token of the connection of a tool instance in a namespace now. ${REFRESH}`,
    authorize: { workspace: 'connection:create', in: 'namespace' },
    // what a refresh finds out, the service tells by itself, whoever asked for it
    activity: { action: 'refresh', resourceType: 'connection' },
    args: { ...namespaceArgs(), ...ofInstance() },
    resolve: ({ namespace }, { toolInstanceId }, { caller, services }) =>
      services.connections.refresh(caller, namespace, toolInstanceId),
  }),
  refreshWorkspaceConnection: t.field({
    type: ToolAuthorization,
    description: `Refreshes the access token of the connection of a tool instance for the workspace now. ${REFRESH}`,
    authorize: { workspace: 'connection:create' },
    // what a refresh finds out, the service tells by itself, whoever asked for it
    activity: { action: 'refresh', resourceType: 'connection' },
    args: { ...workspaceArgs(), ...ofInstance() },
    resolve: ({ workspace }, { toolInstanceId }, { caller, services }) =>
      services.connections.refresh(caller, workspace, toolInstanceId),
  }),
  deleteNamespaceConnection: t.field({
    type: DeleteNamespaceConnectionPayload,
    description: `Deletes the connection of a tool instance in a namespace. ${DELETE}`,
    authorize: { workspace: 'connection:delete', in: 'namespace' },
    activity: { action: 'disconnect', resourceType: 'connection' },
    emits: ['connection.deleted'],
    args: { ...namespaceArgs(), ...ofInstance(), ...versionArg('the connection') },
    resolve: ({ namespace }, { toolInstanceId }, { caller, services }) =>
      services.connections.delete(caller, namespace, toolInstanceId),
  }),
  deleteWorkspaceConnection: t.field({
    type: DeleteWorkspaceConnectionPayload,
    description: `Deletes the connection of a tool instance for the whole workspace. ${DELETE}`,
    authorize: { workspace: 'connection:delete' },
    activity: { action: 'disconnect', resourceType: 'connection' },
    emits: ['connection.deleted'],
    args: { ...workspaceArgs(), ...ofInstance(), ...versionArg('the connection') },
    resolve: ({ workspace }, { toolInstanceId }, { caller, services }) =>
      services.connections.delete(caller, workspace, toolInstanceId),
  }),
}));
