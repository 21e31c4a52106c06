import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { MissingPart } from '../recipes/missing-parts.graph.ts';
import { mappingOf } from '../recipes/recipe-mapping.inputs.ts';
import { checkWorkspaceForm, workspaceSchema } from './workspace-document.schema.ts';
import type { ImportedWorkspace as ImportedRow } from './workspace-document.service.ts';
import { limits } from './workspace-document.ts';
import type { ExportedWorkspace as ExportedRow } from './workspace-export.ts';
import type { MadePart } from './workspace-import.ts';

const ExportedWorkspace = builder.objectRef<ExportedRow>('ExportedWorkspace').implement({
  description: 'A workspace as a document.',
  fields: (t) => ({
    document: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'The document, in the form that `/schemas/workspace.json` describes: `importWorkspace` accepts it.',
      resolve: ({ document }) => ({ ...document }),
    }),
    warnings: t.exposeStringList('warnings', { description: 'What could not be exported, in words.' }),
  }),
});

builder.queryFields((t) => ({
  exportWorkspace: t.field({
    type: ExportedWorkspace,
    description:
      'A whole workspace as a document: its namespaces, the tools of the organization itself that it uses, tool ' +
      'instances, environments, entitlements and apps. Identifiers become local names, secrets `{{secret.NAME}}`. ' +
      'Members, tokens, connections, contents and history are left out. It takes the permission to read each part.',
    authorize: { workspace: 'recipe:export' },
    activity: { action: 'export', resourceType: 'workspace' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: workspaceArgs(),
    extensions: { cost: 500 }, // of a whole workspace
    resolve: ({ workspace }, _args, { caller, services }) => services.workspaceDocuments.export(caller, workspace),
  }),
}));

const ImportedPartKind = wordEnum<MadePart['resourceType']>('ImportedPartKind', 'What an import can create.', {
  namespace: 'A namespace.',
  environment: 'An environment.',
  tool: 'A tool of the organization.',
  tool_instance: 'A tool instance.',
  model_entitlement: 'The entitlement of the workspace to a model.',
  app: 'An app with everything in it.',
});

const ImportedPart = builder.objectRef<MadePart>('ImportedPart').implement({
  description: 'A part that an import made.',
  fields: (t) => ({
    resourceType: t.expose('resourceType', { type: ImportedPartKind, description: 'What kind of part it is.' }),
    key: t.exposeString('key', { description: 'What the document calls it: its key, its slug, or the model.' }),
    resourceId: t.exposeID('resourceId', {
      nullable: true,
      description: 'Its identifier. `null` after a dry run.',
    }),
  }),
});
refersTo(ImportedPart, { resourceId: 'node' });

const ImportedWorkspace = builder.objectRef<ImportedRow>('ImportedWorkspace').implement({
  description: 'What an import made, or would make.',
  fields: (t) => ({
    message: t.exposeString('message', { description: 'What was done, or would be, and what the workspace lacks.' }),
    made: t.field({
      type: [ImportedPart],
      authorize: 'inherited',
      description: 'The new parts. Tools that the organization has already are not among them.',
      resolve: ({ made }) => [...made],
    }),
    missing: t.field({
      type: [MissingPart],
      authorize: 'inherited',
      description:
        'What is needed and not there, at most 1,000 things with at most 100 users of each. Users are called ' +
        '`app.KEY.PART`, `tool_instance.KEY` and `entitlement.MODEL`. Schedules of an app that lacks something are ' +
        'made disabled.',
      resolve: ({ missing }) => [...missing],
    }),
    warnings: t.exposeStringList('warnings', { description: 'What is otherwise than the document says, in words.' }),
  }),
});

const ImportWorkspaceInput = builder.inputType('ImportWorkspaceInput', {
  description: 'A document, and what takes the place of what it names.',
  fields: (t) => ({
    document: t.field({
      type: 'JSONObject',
      required: true,
      constraints: {
        maxBytes: limits.bytes,
        shape: {
          name: 'WorkspaceDocument',
          schema: workspaceSchema,
          // instances may be given the secrets that a document must not have
          sensitive: ['configuration', 'auth_config', 'connection_credentials'],
          check: checkWorkspaceForm,
        },
      },
      description: 'The document, such as an export. `/schemas/workspace.json` describes it.',
    }),
    tools: mappingOf(
      t,
      'What takes the place of tool instances: the identifier of one of the workspace, by the slug of the tool, or ' +
        'by `SLUG/KEY` of an instance in the document, which is not made then.',
    ),
    models: mappingOf(t, 'What takes the place of models: a model of the organization, by the model in the document.'),
    secrets: mappingOf(
      t,
      'Replaces secrets: from the NAME of `{{secret.NAME}}` to the name or identifier of a secret.',
    ),
    dryRun: t.boolean({ description: 'Creates nothing, and answers what would be created. Default false.' }),
  }),
});

builder.mutationFields((t) => ({
  importWorkspace: t.field({
    type: ImportedWorkspace,
    description:
      'Creates all parts of a document of a workspace in an existing workspace, in one change: all or nothing. ' +
      'Slugs of namespaces and environments, and models, that the workspace has already are refused with their ' +
      'places. Tools that the organization has already are used. What the workspace lacks is no failure: `missing` ' +
      'lists it. The caller needs the permission to create each part.',
    authorize: { workspace: 'recipe:apply' },
    activity: { action: 'import', resourceType: 'workspace' },
    emits: ['workspace.imported'],
    mayEmit: [
      'namespace.created',
      'environment.created',
      'environment.updated',
      'tool.created',
      'tool_instance.created',
      'model_entitlement.created',
      'app.created',
      'augmentation.created',
      'endpoint.created',
      'action.created',
    ],
    args: { ...workspaceArgs(), ...inputArg(ImportWorkspaceInput, 'The document.') },
    resolve: async ({ workspace }, { input }, { caller, services }) => {
      const imported = await services.workspaceDocuments.import(caller, workspace, input);
      if (!input.dryRun) return imported;
      const { orgId, workspaceId } = workspace;
      // else it would look like an import
      const entry = { orgId, workspaceId, resourceId: workspaceId, metadata: { dry_run: true } };
      const label = { action: 'import', resourceType: 'workspace', field: 'importWorkspace' } as const;
      await services.activity.recordNow(caller, { ...label, ...entry }, imported);
      return imported;
    },
  }),
}));
