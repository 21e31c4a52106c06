import { createHash } from 'node:crypto';
import { noCache } from '../../data/request-cache.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, InputError, invalidInput, valueIssue } from '../../kernel/errors.ts';
import { canonicalJson } from '../../kernel/json-object.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { ServerAuthorization } from '../mcp-servers/server-authorization.ts';
import { entryNames } from '../tools/placeholders.ts';
import type { Tool } from '../tools/tool.reads.ts';
import { MAX_LIST_BYTES, type ToolService } from '../tools/tool.service.ts';
import { MAX_ENTRIES, oauthServiceOf } from '../tools/tool-shapes.ts';
import { addressOf } from './base-address.ts';
import type { DocumentReader, DocumentSource, FoundDocument } from './document-reader.ts';
import type { ImportGap, ImportKind, ReadDocument } from './import-plan.ts';
import { type ImportedOperation, type ImportSource, operationsOf } from './import-source.ts';
import { applied, changesOf, chosenActions, type OperationChange } from './reimport-changes.ts';
import type { ServerCredentials } from './server-credentials.ts';

/** Operations that one preview shows, beside those that the tool has. */
const MOST_SHOWN = 200;

interface Sourced extends DocumentSource {
  baseUrl?: string | null;
}

/** A document that is looked at. */
export interface PreviewInput extends Sourced {
  search?: string | null;
}

/** What a document of a tool that there is may come with. */
interface Connected {
  /** The instance of the tool whose connection an MCP server is asked with. */
  toolInstanceId?: string | null;
}

/** A document that is looked at beside a tool. */
export type PreviewAgainInput = PreviewInput & Connected;

/** What was chosen of a document that was looked at. */
interface ChosenInput extends Sourced {
  /** Of the document that was looked at. */
  documentDigest?: string | null;
  operations: readonly string[];
}

/** A new tool of a document. */
export interface ImportInput extends ChosenInput {
  name?: string | null;
  slug: string;
  description?: string | null;
  category?: string | null;
}

/** What is taken of a document into a tool. */
export interface ReimportInput extends ChosenInput, Connected {
  overwrite?: readonly string[] | null;
}

/** What a server says of OAuth, with what this service can do about it. */
export interface ShownAuthorization extends ServerAuthorization {
  /** By what it can be a client there without having been registered; `null` if it cannot. */
  clientId: string | null;
}

/** A document as an import would take it. */
export interface ToolImportPreview extends Omit<ReadDocument, 'authorization'> {
  kind: ImportKind;
  url: string | null;
  documentDigest: string;
  authorization: ShownAuthorization | null;
}

/** A document beside the tool. */
export interface ToolReimportPreview extends ToolImportPreview {
  orgId: string;
  toolId: string;
  changes: OperationChange[];
  /** How many imported operations make the action that they made. */
  unchanged: number;
  /** Whether the document describes other credentials than the tool has. */
  otherCredentials: boolean;
}

interface ImportDeps {
  tools: ToolService;
  documents: DocumentReader;
  serverCredentials: ServerCredentials;
  outbound: Outbound;
  /** The address of the document that describes this service as a client; `null` if nobody else could read it. */
  ownClientId: () => string | null;
}

/**
 * Tools from OpenAPI documents and MCP servers, and what became of these since (docs/decisions/0081, 0086). What is
 * imported passes the checks of any other tool.
 */
export class ToolImports {
  readonly #deps: ImportDeps;

  constructor(deps: ImportDeps) {
    this.#deps = deps;
  }

  /** What an import would take. @throws InputError; RATE_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE */
  async preview(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    input: PreviewInput,
  ): Promise<ToolImportPreview> {
    const baseUrl = baseUrlOf(input, null);
    const task = { baseUrl, keys: [], reserved: [], search: input.search ?? null, most: MOST_SHOWN };
    const { found, read } = await this.#deps.documents.read(caller, orgId, input, () => task);
    return this.#shown(read, bound(found, baseUrl));
  }

  /** Makes a tool of chosen operations. @throws InputError; RESOURCE_CONFLICT `document_changed`; like `createTool` */
  async create(caller: Caller, place: Checked<OrganizationPlace>, input: ImportInput): Promise<Tool> {
    const { orgId } = place;
    const baseUrl = baseUrlOf(input, null);
    const { found, read } = await this.#deps.documents.read(caller, orgId, input, (document) => {
      demandSame(bound(document, baseUrl), input, null);
      return taskOf(baseUrl, input.operations, []);
    });
    demandChoice(input, read);
    const { actions, imported } = chosenActions(input.operations, read);
    this.#demandCallable(read, input, found);
    demandRoom(actions);
    const { credentialSchema } = read;
    const oauth = oauthServiceOf(credentialSchema);
    const tool = {
      name: input.name ?? read.title,
      slug: input.slug,
      description: input.description ?? read.description ?? read.title,
      category: input.category,
      connectionServiceName: oauth && read.title,
      credentialSchema,
      actionSchemas: actions,
      customActionType: found.kind === 'mcp' ? ('mcp' as const) : null,
      supportsConnection: credentialSchema.length > 0,
    };
    const source = sourceOf(read, bound(found, baseUrl), baseUrl, imported);
    return this.#deps.tools.create(caller, place, tool, source).catch(inOperations);
  }

  /** What a document would change of a tool. @throws RESOURCE_NOT_FOUND; like {@link preview} */
  async previewAgain(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    given: PreviewAgainInput,
  ): Promise<ToolReimportPreview> {
    const { orgId } = place;
    const tool = await this.#deps.tools.reads.get(noCache, place, id);
    const { importSource: source } = tool;
    const input = await this.#connected(caller, tool, given);
    const baseUrl = baseUrlOf(input, source);
    const known = [...operationsOf(source).keys()];
    const task = { baseUrl, keys: known, reserved: namesOf(tool), search: input.search ?? null, most: MOST_SHOWN };
    const { found, read } = await this.#deps.documents.read(caller, orgId, input, () => task, source);
    const changes = changesOf({ actions: tool.actionSchemas, source }, read);
    const changed = new Set(changes.map(({ operation }) => operation));
    const present = new Set(read.operations.map(({ operation }) => operation));
    return {
      ...this.#shown(read, bound(found, baseUrl)),
      orgId,
      toolId: id,
      changes,
      unchanged: known.filter((operation) => present.has(operation) && !changed.has(operation)).length,
      otherCredentials: isOther(read, tool.credentialSchema),
    };
  }

  /**
   * Takes chosen changes of a document into a tool.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `document_changed`, `locally_changed`, `builtin_tool`; FORBIDDEN
   * `secret:reveal` for changes that could send credentials of others elsewhere; like {@link create}
   */
  async update(caller: Caller, place: Checked<OrganizationPlace>, id: string, given: ReimportInput): Promise<Tool> {
    const { orgId } = place;
    const tool = await this.#deps.tools.reads.get(noCache, place, id);
    // before anything is fetched, and again under the lock
    caller.request.expectation?.demand(tool.resourceVersion);
    const { importSource: source } = tool;
    const input = await this.#connected(caller, tool, given);
    const baseUrl = baseUrlOf(input, source);
    const taken = (document: FoundDocument) => {
      demandSame(bound(document, baseUrl), input, id);
      return taskOf(baseUrl, input.operations, namesOf(tool));
    };
    const { found, read } = await this.#deps.documents.read(caller, orgId, input, taken, source);
    this.#demandCallable(read, input, found);
    return this.#deps.tools
      .reimport(caller, place, id, (before) => {
        const choice = { operations: input.operations, overwrite: input.overwrite ?? [] };
        const { actions, operations } = applied(id, importedIn(before), read, choice);
        demandRoom(actions);
        return { actionSchemas: actions, importSource: sourceOf(read, bound(found, baseUrl), baseUrl, operations) };
      })
      .catch(inOperations);
  }

  /** What was given, with the credential of the connection that it names. @throws InputError; as ServerCredentials */
  async #connected<Input extends Sourced & Connected>(caller: Caller, tool: Tool, input: Input): Promise<Input> {
    const { toolInstanceId, credential, url, kind } = input;
    if (!toolInstanceId) return input;
    if (credential) throw invalidInput(['input', 'credential'], 'give a credential or an instance, not both');
    // a credential goes nowhere but where the actions of the tool send it
    if ((url && url !== tool.importSource?.url) || (kind && kind !== tool.importSource?.kind))
      throw invalidInput(['input', 'toolInstanceId'], 'a connection is used only at the address of the tool');
    return { ...input, connected: await this.#deps.serverCredentials.of(caller, tool, toolInstanceId) };
  }

  #shown(read: ReadDocument, { kind, url, digest }: FoundDocument): ToolImportPreview {
    const refused = this.#refusedAddress(read);
    const gap: ImportGap[] = refused
      ? [{ place: '/servers', operation: null, kind: 'unsafe_address', message: `${read.baseUrl}: ${refused}` }]
      : [];
    const { authorization } = read;
    const clientId = authorization?.takesClientDocuments ? this.#deps.ownClientId() : null;
    return {
      ...read,
      authorization: authorization && { ...authorization, clientId },
      gaps: [...gap, ...read.gaps],
      gapCount: gap.length + read.gapCount,
      kind,
      url,
      documentDigest: digest,
    };
  }

  #refusedAddress({ baseUrl }: ReadDocument): string | null {
    return baseUrl === null ? null : (this.#deps.outbound.refusalOf(baseUrl)?.message ?? null);
  }

  /** @throws InputError if this service does not call the address of the operations */
  #demandCallable(read: ReadDocument, { baseUrl }: Sourced, { url }: FoundDocument): void {
    const refused = this.#refusedAddress(read);
    if (!refused) return;
    const at = baseUrl ? 'baseUrl' : url === null ? 'document' : 'url';
    throw invalidInput(['input', at], `the operations are at '${read.baseUrl}'. ${refused}`);
  }
}

const importedIn = ({ actionSchemas, importSource }: ToolRow) => ({
  actions: actionSchemas as Record<string, unknown>[],
  source: importSource as unknown as ImportSource | null,
});

const taskOf = (baseUrl: string | null, keys: readonly string[], reserved: readonly string[]) => ({
  baseUrl,
  keys,
  reserved,
  search: null,
  most: 0,
});

/** What actions of a tool may name beside their parameters. */
const namesOf = ({ configSchema, credentialSchema }: Tool): string[] => [
  ...entryNames(configSchema),
  ...entryNames(credentialSchema),
];

/** The digest of a document with the addresses that decide where its actions go. */
function bound({ kind, url, digest }: FoundDocument, baseUrl: string | null): FoundDocument {
  const text = JSON.stringify([digest, url, baseUrl]);
  return { kind, url, digest: createHash('sha256').update(text).digest('hex') };
}

const sourceOf = (
  { title, version }: ReadDocument,
  { kind, url, digest }: FoundDocument,
  baseUrl: string | null,
  operations: ImportedOperation[],
): ImportSource => ({
  kind,
  url,
  digest,
  title,
  version,
  base_url: baseUrl,
  imported_at: new Date().toISOString(),
  operations,
});

/** The address in place of the servers of the document. @throws InputError */
function baseUrlOf({ baseUrl, kind }: Sourced, source: ImportSource | null): string | null {
  if ((kind ?? source?.kind) === 'mcp') {
    if (baseUrl) throw invalidInput(['input', 'baseUrl'], 'an MCP server is where its address says');
    return null;
  }
  if (!baseUrl) return source?.base_url ?? null;
  const address = addressOf(baseUrl, null);
  if (address === null)
    throw invalidInput(['input', 'baseUrl'], 'it must be an address without user name, query and fragment');
  return address;
}

/** @throws RESOURCE_CONFLICT `document_changed` if it is not the document that was looked at */
function demandSame({ digest }: FoundDocument, { documentDigest }: ChosenInput, id: string | null): void {
  if (documentDigest && documentDigest !== digest)
    throw conflict('tool', id ?? '', 'document_changed', 'The document is not the one that was looked at.', { digest });
}

/** A tool begins without actions only where none can be known yet. @throws InputError */
function demandChoice({ operations }: ChosenInput, { isListed }: ReadDocument): void {
  if (isListed && operations.length === 0) throw invalidInput(['input', 'operations'], 'choose at least one operation');
}

/** @throws InputError */
function demandRoom(actions: readonly object[]): void {
  const at = ['input', 'operations'];
  if (actions.length > MAX_ENTRIES) throw invalidInput(at, `a tool has at most ${MAX_ENTRIES} actions`);
  if (Buffer.byteLength(JSON.stringify(actions)) > MAX_LIST_BYTES)
    throw invalidInput(
      at,
      `the actions of the tool would have more than ${MAX_LIST_BYTES} bytes: choose fewer operations`,
    );
}

/** What is wrong with actions is told where they were chosen. */
function inOperations(error: unknown): never {
  if (!(error instanceof InputError)) throw error;
  throw new InputError(
    error.issues.map((issue) =>
      issue.path[1] === 'actionSchemas' || issue.path[1] === 'credentialSchema'
        ? valueIssue(['input', 'operations'], `${issue.path.slice(1).join('.')}: ${issue.msg}`)
        : issue,
    ),
  );
}

/** Whether a document describes other credentials than a tool has. */
function isOther({ authorization, credentialSchema }: ReadDocument, own: readonly Record<string, unknown>[]): boolean {
  if (!authorization) return placesOf(credentialSchema) !== placesOf(own);
  // an MCP server says only of OAuth what it wants
  const ofOAuth = (schema: readonly Record<string, unknown>[]) =>
    placesOf(schema.filter(({ type }) => type === 'oauth2'));
  return authorization.service !== null && ofOAuth(credentialSchema) !== ofOAuth(own);
}

/** What credentials are sent where, without what only people read. */
const placesOf = (credentials: readonly Record<string, unknown>[]): string =>
  JSON.stringify(
    credentials.map(({ type, placement, authorization_url, token_url, resource, issuer }) => [
      type,
      placement && canonicalJson(placement),
      authorization_url,
      token_url,
      resource,
      issuer,
    ]),
  );
