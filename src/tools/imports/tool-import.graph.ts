import { builder } from '../../graphql/builder.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { authorizationOutcomes } from '../mcp-servers/server-authorization.ts';
import { Tool } from '../tools/tool.graph.ts';
import { SLUG } from '../tools/tool.words.ts';
import { MAX_ENTRIES } from '../tools/tool-shapes.ts';
import { gapKinds, type ImportGap, importKinds, type ReadOperation } from './import-plan.ts';
import type { ImportedOperation, ImportSource } from './import-source.ts';
import { changeKinds, type OperationChange } from './reimport-changes.ts';
import type {
  ToolImportPreview as PreviewRow,
  ToolReimportPreview as ReimportRow,
  ShownAuthorization,
} from './tool-imports.ts';

const address = { maxLength: 1_000, format: 'uri' } as const satisfies Constraints;
/** With what JSON adds to it, a request may have 1 MiB. */
const document = { minLength: 1, maxBytes: 900_000 } as const satisfies Constraints;
const operations = { maxItems: MAX_ENTRIES, item: { minLength: 1, maxLength: 500 } } as const satisfies Constraints;
const OPERATION = '`GET /pets/{id}`';

const ToolImportKind = wordEnum('ToolImportKind', 'What a tool is imported from.', importKinds);

const FORMAT = 'Its version of OpenAPI, or its revision of MCP: `unknown` for a server that wants a token first.';
const SHOWN_DIGEST = 'Of its text, its `url` and the base address that was given: another of these has another digest.';

/** The name of a header; the protocol and the connection decide the others. */
const header = { pattern: '[A-Za-z0-9-]{1,128}' } as const satisfies Constraints;
const credential = {
  minLength: 1,
  maxLength: 8_192,
  pattern: '[!-~]+(?: [!-~]+)*',
  sensitive: true,
} as const satisfies Constraints;

const sourceFields = (t: InputFields, more: string, initially: string) => ({
  kind: t.field({ type: ToolImportKind, description: `What it is. Default: ${initially}.` }),
  url: t.string({
    constraints: address,
    description:
      `The address of the OpenAPI document or of the MCP server. Either this or \`document\`${more}. It is kept with ` +
      'the tool, so one that has a credential is refused.',
  }),
  document: t.string({
    constraints: document,
    description: 'The text of an OpenAPI document of the versions 3.0 or 3.1, in JSON or YAML.',
  }),
  baseUrl: t.string({
    constraints: address,
    description: 'Where the operations are, in place of the servers of the document.',
  }),
  credential: t.string({
    constraints: credential,
    description:
      'What an MCP server is asked with, as `Authorization: Bearer`. It is not kept: each instance has its own.',
  }),
  credentialHeader: t.string({
    constraints: header,
    description: 'The header that `credential` is sent in, in place of `Authorization`.',
  }),
});
const instanceField = (t: InputFields) =>
  t.id({
    constraints: bounds.id,
    description:
      'The instance of the tool whose connection an MCP server is asked with, in place of `credential`. It takes ' +
      '`connection:use`. The address stays the one of the tool, and its actions must send the credential there.',
  });
const searchField = (t: InputFields) =>
  t.string({
    constraints: { maxLength: 200 },
    description: 'Only operations with this text in their method, path, id, summary or tags.',
  });
const digestField = (t: InputFields) =>
  t.string({
    constraints: { pattern: '[0-9a-f]{64}' },
    description:
      'The `documentDigest` of the preview. If the document, its address or the base address is another by now, the ' +
      'mutation fails with `RESOURCE_CONFLICT`, `document_changed`.',
  });

const PreviewToolImportInput = builder.inputType('PreviewToolImportInput', {
  description: 'The document to look at.',
  fields: (t) => ({ ...sourceFields(t, ' is given', 'OpenAPI'), search: searchField(t) }),
});

const ImportToolInput = builder.inputType('ImportToolInput', {
  description: 'The document, the operations that are wanted of it, and the new tool.',
  fields: (t) => ({
    ...sourceFields(t, ' is given', 'OpenAPI'),
    documentDigest: digestField(t),
    operations: t.stringList({
      required: true,
      constraints: operations,
      description:
        `The operations that become actions, such as ${OPERATION}. None for an MCP server that wants a token first: ` +
        'import them later.',
    }),
    name: t.string({ constraints: bounds.name, description: 'Display name. Default: the title of the document.' }),
    slug: t.string({
      required: true,
      constraints: { pattern: SLUG, maxLength: 64 },
      description: 'Unique in the organization and among the built-in tools.',
    }),
    description: t.string({
      constraints: { minLength: 1, maxLength: 4_000 },
      description: 'What the tool does. Default: the description of the document.',
    }),
    category: t.string({ constraints: bounds.open, description: 'Its category. Default `custom`.' }),
  }),
});

const PreviewToolReimportInput = builder.inputType('PreviewToolReimportInput', {
  description: 'The document to compare with the tool.',
  fields: (t) => ({
    ...sourceFields(t, ', or the address that was given before', 'what it was'),
    toolInstanceId: instanceField(t),
    search: searchField(t),
  }),
});

const ReimportToolInput = builder.inputType('ReimportToolInput', {
  description: 'The document, and the changes that are wanted of it.',
  fields: (t) => ({
    ...sourceFields(t, ', or the address that was given before', 'what it was'),
    toolInstanceId: instanceField(t),
    documentDigest: digestField(t),
    operations: t.stringList({
      required: true,
      constraints: { minItems: 1, ...operations },
      description:
        `The operations whose changes are applied, such as ${OPERATION}. Operations that the document no longer ` +
        'has lose their actions.',
    }),
    overwrite: t.stringList({
      constraints: operations,
      description:
        'The operations among `operations` whose actions were changed in the tool, and may lose these changes.',
    }),
  }),
});

const ToolImportGapKind = wordEnum('ToolImportGapKind', 'Why something of a document was not taken.', gapKinds);
const ToolImportChangeKind = wordEnum('ToolImportChangeKind', 'What became of an operation.', changeKinds);

const ImportedToolOperation = builder.objectRef<ImportedOperation>('ImportedToolOperation').implement({
  description: 'An operation that an action of the tool was made of.',
  fields: (t) => ({
    operation: t.exposeString('operation', {
      description: `Its method and path, ${OPERATION}, or the name of the tool of a server.`,
    }),
    action: t.exposeString('action', { description: 'The name of the action.' }),
  }),
});

const ToolImportSource = builder.objectRef<ImportSource>('ToolImportSource').implement({
  description: 'Where actions of a tool came from.',
  fields: (t) => ({
    kind: t.expose('kind', { type: ToolImportKind, description: 'What it is.' }),
    url: t.exposeString('url', { nullable: true, description: 'Its address. `null` if it was given as a text.' }),
    documentDigest: t.exposeString('digest', {
      description: 'Its digest, with the addresses, when it was last imported.',
    }),
    title: t.exposeString('title', { description: 'Its title.' }),
    version: t.exposeString('version', { nullable: true, description: 'Its own version.' }),
    baseUrl: t.exposeString('base_url', {
      nullable: true,
      description: 'The address that was given in place of its servers.',
    }),
    importedAt: t.field({
      type: 'DateTime',
      authorize: 'inherited',
      description: 'When it was last imported.',
      resolve: ({ imported_at }) => new Date(imported_at),
    }),
    operations: t.field({
      type: [ImportedToolOperation],
      authorize: 'inherited',
      description: 'The operations that were imported.',
      resolve: (source) => source.operations,
    }),
  }),
});

builder.objectField(Tool, 'importSource', (t) =>
  t.field({
    type: ToolImportSource,
    nullable: true,
    authorize: 'inherited',
    description: 'Where its actions came from. `null` if it was not imported.',
    resolve: ({ importSource }) => importSource,
  }),
);

const ToolImportGap = builder.objectRef<ImportGap>('ToolImportGap').implement({
  description: 'Something of a document that was not taken, or is less exact in the action.',
  fields: (t) => ({
    place: t.exposeString('place', { description: 'Where in the document, as a JSON pointer.' }),
    operation: t.exposeString('operation', { nullable: true, description: 'The operation. `null`: it is about all.' }),
    kind: t.expose('kind', { type: ToolImportGapKind, description: 'Why, for programs.' }),
    message: t.exposeString('message', { description: 'Why, for people.' }),
  }),
});

const ToolImportOperation = builder.objectRef<ReadOperation>('ToolImportOperation').implement({
  description: 'An operation of a document, with the action that it would become.',
  fields: (t) => ({
    operation: t.exposeString('operation', {
      description: `Its method and path, ${OPERATION}, or the name of the tool of a server.`,
    }),
    place: t.exposeString('place', { description: 'Where in the document, as a JSON pointer.' }),
    operationId: t.exposeString('operationId', { nullable: true, description: 'Its id in the document.' }),
    summary: t.exposeString('summary', { nullable: true, description: 'What the document says of it.' }),
    isDeprecated: t.exposeBoolean('isDeprecated', {
      description: 'Whether the document says that it should not be used.',
    }),
    action: t.expose('action', {
      type: 'JSONObject',
      nullable: true,
      description: 'The action, as in `actionSchemas` of a tool. `null` if it cannot be taken: a gap says why.',
    }),
  }),
});

const ToolImportAuthorizationOutcome = wordEnum(
  'ToolImportAuthorizationOutcome',
  'How the look for the OAuth service of an MCP server ended.',
  authorizationOutcomes,
);

const ToolImportAuthorization = builder.objectRef<ShownAuthorization>('ToolImportAuthorization').implement({
  description: 'What an MCP server says of how tokens for it are got.',
  fields: (t) => ({
    outcome: t.expose('outcome', {
      type: ToolImportAuthorizationOutcome,
      description: 'How the look for it ended, for programs.',
    }),
    message: t.exposeString('message', {
      description: 'The same for people: what was found, or why nothing can be used.',
    }),
    issuer: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'The authorization server. `null` unless it was found; its addresses are in `credentialSchema`.',
      resolve: ({ service }) => service?.issuer ?? null,
    }),
    resource: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'What tokens are asked for (RFC 8707). `null` unless it was found.',
      resolve: ({ service }) => service?.resource ?? null,
    }),
    scopes: t.stringList({
      authorize: 'inherited',
      description: 'The scopes that the server wants.',
      resolve: ({ service }) => service?.scopes ?? [],
    }),
    clientId: t.exposeString('clientId', {
      nullable: true,
      description:
        'The `client_id` by which this service is a public client there without having been registered: the address ' +
        'of a document about it (Client ID Metadata Documents). `null` if the authorization server takes none or ' +
        'does not promise `iss` (RFC 9207), or `PUBLIC_URL` is not https: then register a client by hand.',
    }),
  }),
});
const authorizationField = {
  type: ToolImportAuthorization,
  nullable: true,
  authorize: 'inherited',
  description: 'What an MCP server says of OAuth. `null` for a document.',
  resolve: ({ authorization }: { authorization: ShownAuthorization | null }) => authorization,
} as const;

const ToolImportPreview = builder.objectRef<PreviewRow>('ToolImportPreview').implement({
  description: 'What an import of a document would take.',
  fields: (t) => ({
    kind: t.expose('kind', { type: ToolImportKind, description: 'What it is.' }),
    url: t.exposeString('url', { nullable: true, description: 'The address of the document or the server.' }),
    documentDigest: t.exposeString('documentDigest', { description: SHOWN_DIGEST }),
    format: t.exposeString('format', { description: FORMAT }),
    title: t.exposeString('title', { description: 'Its title.' }),
    description: t.exposeString('description', {
      nullable: true,
      description: 'The description that it has in the document.',
    }),
    version: t.exposeString('version', { nullable: true, description: 'Its own version.' }),
    servers: t.exposeStringList('servers', { description: 'The addresses of its servers.' }),
    baseUrl: t.exposeString('baseUrl', { nullable: true, description: 'Where its operations are.' }),
    credentialSchema: t.expose('credentialSchema', {
      type: ['JSONObject'],
      description: 'The credentials that the tool would have: those that most operations accept.',
    }),
    authorization: t.field(authorizationField),
    total: t.exposeInt('total', { description: 'How many operations it has.' }),
    matching: t.exposeInt('matching', { description: 'How many of them match `search`.' }),
    operations: t.field({
      type: [ToolImportOperation],
      authorize: 'inherited',
      description: 'The first 200 of these, in the order of the document.',
      resolve: (preview) => preview.operations,
    }),
    gaps: t.field({
      type: [ToolImportGap],
      authorize: 'inherited',
      description: 'What cannot be taken, or only less exactly: the first 500.',
      resolve: ({ gaps }) => gaps,
    }),
    gapCount: t.exposeInt('gapCount', { description: 'How many gaps there are.' }),
  }),
});

const ToolImportChange = builder.objectRef<OperationChange>('ToolImportChange').implement({
  description: 'How a document differs from a tool in one operation.',
  fields: (t) => ({
    operation: t.exposeString('operation', {
      description: `Its method and path, ${OPERATION}, or the name of the tool of a server.`,
    }),
    action: t.exposeString('action', { description: 'The name of the action.' }),
    change: t.expose('change', { type: ToolImportChangeKind, description: 'What became of it.' }),
    isEdited: t.exposeBoolean('isEdited', {
      description:
        'Whether the action was changed in the tool since it was imported. Then it is replaced only if `overwrite` ' +
        'names the operation.',
    }),
    before: t.expose('before', { type: 'JSONObject', nullable: true, description: 'The action of the tool.' }),
    after: t.expose('after', {
      type: 'JSONObject',
      nullable: true,
      description: 'The action of the document. `null` if it has none, or none that can be taken.',
    }),
  }),
});

const ToolReimportPreview = builder.objectRef<ReimportRow>('ToolReimportPreview').implement({
  description: 'How a document differs from a tool.',
  fields: (t) => ({
    toolId: t.exposeID('toolId', { description: 'The tool.' }),
    kind: t.expose('kind', { type: ToolImportKind, description: 'What it is.' }),
    url: t.exposeString('url', { nullable: true, description: 'The address of the document or the server.' }),
    documentDigest: t.exposeString('documentDigest', { description: SHOWN_DIGEST }),
    format: t.exposeString('format', { description: FORMAT }),
    title: t.exposeString('title', { description: 'Its title.' }),
    version: t.exposeString('version', { nullable: true, description: 'Its own version.' }),
    baseUrl: t.exposeString('baseUrl', { nullable: true, description: 'Where its operations are.' }),
    otherCredentials: t.exposeBoolean('otherCredentials', {
      description: 'Whether it describes other credentials than the tool has. An import does not change them.',
    }),
    authorization: t.field(authorizationField),
    total: t.exposeInt('total', { description: 'How many operations it has.' }),
    unchanged: t.exposeInt('unchanged', { description: 'How many imported operations are as they were.' }),
    changes: t.field({
      type: [ToolImportChange],
      authorize: 'inherited',
      description: 'The differences. Of the operations that the tool does not have, the first 200 that match `search`.',
      resolve: ({ changes }) => changes,
    }),
    gaps: t.field({
      type: [ToolImportGap],
      authorize: 'inherited',
      description: 'What cannot be taken, or only less exactly: the first 500.',
      resolve: ({ gaps }) => gaps,
    }),
    gapCount: t.exposeInt('gapCount', { description: 'How many gaps there are.' }),
  }),
});
refersTo(ToolReimportPreview, { toolId: 'tool' });

const target = () => ({ ...organizationArgs(), ...idArg('The tool.') });
const FETCHED = 'A document has at most 8 MiB; at most 60 are read a minute for each user.';

builder.mutationFields((t) => ({
  previewToolImport: t.field({
    type: ToolImportPreview,
    description:
      'Shows what an import of an OpenAPI document or of the tools of an MCP server would take, and what it could ' +
      'not take. It changes nothing. ' +
      FETCHED,
    authorize: { organization: 'tool:create' },
    activity: { action: 'view', resourceType: 'tool' },
    args: { ...organizationArgs(), ...inputArg(PreviewToolImportInput, 'The document.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.toolImports.preview(caller, organization, input),
  }),
  importTool: t.field({
    type: Tool,
    description:
      'Makes a tool of chosen operations of an OpenAPI document, or of chosen tools of a remote MCP server: each ' +
      'becomes an action.',
    authorize: { organization: 'tool:create' },
    emits: ['tool.created'],
    args: { ...organizationArgs(), ...inputArg(ImportToolInput, 'The document and the tool.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.toolImports.create(caller, organization, input),
  }),
  previewToolReimport: t.field({
    type: ToolReimportPreview,
    description:
      'Shows how an OpenAPI document or an MCP server differs from a tool: added, changed and removed operations. It ' +
      'changes nothing. ' +
      FETCHED,
    authorize: { organization: 'tool:update' },
    activity: { action: 'view', resourceType: 'tool' },
    args: { ...target(), ...inputArg(PreviewToolReimportInput, 'The document.') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.toolImports.previewAgain(caller, organization, id, input),
  }),
  reimportTool: t.field({
    type: Tool,
    description:
      'Takes chosen operations of an OpenAPI document or an MCP server into a tool. Actions that were changed in the ' +
      'tool are replaced only if `overwrite` names them: otherwise it ' +
      'fails with `RESOURCE_CONFLICT`, `locally_changed`. A ' +
      'built-in tool cannot be changed.',
    authorize: { organization: 'tool:update' },
    emits: ['tool.updated'],
    args: { ...target(), ...inputArg(ReimportToolInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.toolImports.update(caller, organization, id, input),
  }),
}));
