import { builder } from '../../graphql/builder.ts';
import { inOrganization, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { customActionSchemas } from './custom-action-schemas.ts';
import { CustomActionType, ToolStatus } from './tool.enums.ts';
import { CreateToolInput, UpdateToolInput } from './tool.inputs.ts';
import type { Tool as ToolRow } from './tool.reads.ts';

export const Tool = builder.objectRef<ToolRow>('Tool').implement({
  description:
    'A tool that workspaces can use: one of the organization, or a built-in one. Built-in tools are the same in ' +
    'every organization and cannot be changed.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name.' }),
    slug: t.exposeString('slug', { description: 'Unique in the catalogue.' }),
    description: t.exposeString('description', { description: 'What the tool does.' }),
    shortDescription: t.exposeString('shortDescription', { nullable: true, description: 'One sentence.' }),
    category: t.exposeString('category', { description: '`communication`, `developer`, … or another word.' }),
    version: t.exposeString('version', { description: 'Free text.' }),
    status: t.expose('status', { type: ToolStatus, description: 'Its status.' }),
    iconUrl: t.exposeString('iconUrl', { nullable: true, description: 'Address of an image.' }),
    documentationUrl: t.exposeString('documentationUrl', {
      nullable: true,
      description: 'Address of the documentation.',
    }),
    connectionServiceName: t.exposeString('connectionServiceName', {
      nullable: true,
      description: 'The service that a connection signs in to.',
    }),
    author: t.exposeString('author', { nullable: true, description: 'Who made the tool.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    supportedActions: t.exposeStringList('supportedActions', { description: 'Names of what the tool can do.' }),
    supportedStepTypes: t.exposeStringList('supportedStepTypes', {
      description: 'Steps of an app that may use the tool.',
    }),
    isBuiltin: t.exposeBoolean('isBuiltin', { description: 'Whether the tool came with the service.' }),
    configSchema: t.expose('configSchema', {
      type: ['JSONObject'],
      description: 'The fields of the configuration of an instance.',
    }),
    credentialSchema: t.expose('credentialSchema', {
      type: ['JSONObject'],
      description: 'The credentials of an instance; an entry of the type `oauth2` describes a service to sign in to.',
    }),
    actionSchemas: t.expose('actionSchemas', { type: ['JSONObject'], description: 'The actions of the tool.' }),
    mcpFunctions: t.expose('mcpFunctions', { type: ['JSONObject'], description: 'Functions for MCP clients.' }),
    customActionType: t.expose('customActionType', {
      type: CustomActionType,
      description: 'Which custom actions instances may have.',
    }),
    isMcpCompatible: t.exposeBoolean('isMcpCompatible', { description: 'Whether MCP clients may use the tool.' }),
    currentSchemaVersion: t.exposeInt('currentSchemaVersion', {
      description: 'Raised by each change of the config or action schemas.',
    }),
    minSchemaVersion: t.exposeInt('minSchemaVersion', {
      description: 'Instances of a lower schema version are deprecated.',
    }),
    schemaChangelog: t.expose('schemaChangelog', {
      type: 'StringMap',
      description: 'What each schema version changed, by its number.',
    }),
    supportsConnection: t.exposeBoolean('supportsConnection', { description: 'Whether instances may be connected.' }),
  }),
});

inOrganization(Tool, 'tool');
tracked(Tool);

const search = { constraints: { maxLength: 200 } } as const;

readable(Tool, {
  kind: 'tool',
  below: Organization,
  reads: ({ tools }) => tools.catalogue,
  filters: () =>
    builder.args((t) => ({
      workspaceId: t.id({
        constraints: bounds.id,
        description: 'A workspace in which the tools are to be used: the caller must be able to see it.',
      }),
      category: t.string({ constraints: bounds.open, description: 'Only tools of this category.' }),
      status: t.string({
        constraints: bounds.open,
        description: 'Only tools with this status. Another word finds nothing.',
      }),
      search: t.string({
        ...search,
        description: 'Words of the name, slug, descriptions or tags. Finds words with typing errors too.',
      }),
      q: t.string({ ...search, description: 'Alias of `search`; ignored if `search` is given.' }),
      includeDisabled: t.boolean({
        required: true,
        defaultValue: false,
        description: 'Disabled tools too. They are left out unless `status` asks for them.',
      }),
    })),
  one: { organization: 'The organization in whose catalogue the tool is.', argDescription: 'The tool.' },
  list: { description: 'The tools of an organization, newest first, then the built-in tools.' },
  nested: { description: 'The tools of the organization, newest first, then the built-in tools.' },
});

const CustomActionSchemas = builder.objectRef<typeof customActionSchemas>('CustomActionSchemas').implement({
  description: 'What custom actions of tool instances look like.',
  fields: (t) => ({
    schemas: t.expose('schemas', {
      type: 'JSONObject',
      description: 'By the kind of custom action: `type`, `description` and `example`.',
    }),
    jsonSchemas: t.expose('jsonSchemas', {
      type: 'JSONObject',
      description:
        'By the kind of custom action: its JSON Schema (draft 2020-12), from which a form can be generated. The same ' +
        'schema checks the custom actions of instances. Also at `/schemas/<kind>.json`.',
    }),
    customRestSchema: t.expose('customRestSchema', {
      type: 'JSONObject',
      description: 'The form of a custom REST action with its initial values. A list shows one empty element.',
    }),
    dataTransformSchema: t.expose('dataTransformSchema', {
      type: 'JSONObject',
      description: 'The form of a data transform with its initial values. A list shows one empty element.',
    }),
  }),
});

builder.queryFields((t) => ({
  toolBySlug: t.field({
    type: Tool,
    description: 'A tool by its slug.',
    authorize: { organization: 'tool:read' },
    args: {
      ...organizationArgs('The organization in whose catalogue the tool is.'),
      ...builder.args((of) => ({
        slug: of.string({ required: true, constraints: bounds.key, description: 'The slug.' }),
      })),
    },
    resolve: ({ organization }, { slug }, context) => context.services.tools.bySlug.get(context, organization, slug),
  }),
  customActionSchemas: t.field({
    type: CustomActionSchemas,
    description: 'What custom actions of tool instances look like.',
    authorize: { organization: 'tool:read' },
    args: organizationArgs(),
    resolve: () => customActionSchemas,
  }),
}));

const DeleteToolPayload = deletePayload('DeleteTool', { noun: 'tool', in: ['orgId'] });

const target = () => ({ ...organizationArgs(), ...idArg('The tool.') });

builder.mutationFields((t) => ({
  createTool: t.field({
    type: Tool,
    description: 'Adds a tool to the catalogue of an organization.',
    authorize: { organization: 'tool:create' },
    emits: ['tool.created'],
    args: { ...organizationArgs(), ...inputArg(CreateToolInput, 'The tool.') },
    resolve: ({ organization }, { input }, { caller, services }) => services.tools.create(caller, organization, input),
  }),
  updateTool: t.field({
    type: Tool,
    description:
      'Changes a tool of the organization. Other config or action schemas raise `currentSchemaVersion`. A built-in ' +
      'tool cannot be changed.',
    authorize: { organization: 'tool:update' },
    emits: ['tool.updated'],
    args: { ...target(), ...inputArg(UpdateToolInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.tools.update(caller, organization, id, input),
  }),
  deleteTool: t.field({
    type: DeleteToolPayload,
    description:
      'Deletes a tool of the organization. Its slug is free again. While tool instances use the tool, it fails with ' +
      '`RESOURCE_CONFLICT`, `in_use`. A built-in tool cannot be deleted.',
    authorize: { organization: 'tool:delete' },
    emits: ['tool.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.tools.delete(caller, organization, id),
  }),
}));
