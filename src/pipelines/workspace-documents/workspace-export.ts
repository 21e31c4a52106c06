import type { Access } from '../../access/access.ts';
import type { ReadRunner } from '../../data/sql.ts';
import { environmentsOf } from '../../delivery/views.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { conflict, InputError, notFound } from '../../kernel/errors.ts';
import { kindOfId } from '../../kernel/ids.ts';
import { overloadOf, VALUES_PER_KEY } from '../../kernel/json-shape.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import { masked, SECRET_REFERENCE, withoutPlainSecrets } from '../../kernel/plain-secrets.ts';
import { limitsByName, type WorkspaceLimits } from '../../models/model-entitlements/workspace-limits.ts';
import { entitlementsOf } from '../../models/views.ts';
import { workspaceSettings } from '../../tenancy/views.ts';
import { fieldsOf } from '../../tools/tool-instances/configuration.ts';
import { instancesByTool, schemasOfInstances, wholeInstances, wholeTools } from '../../tools/views.ts';
import type { RecipeRequirements } from '../recipes/recipe-document.ts';
import {
  AppExport,
  bytesOfApps,
  type ExportSurroundings,
  ID,
  isTooMuch,
  keysOf,
  secretNamesIn,
  type WholeApp,
  wholeApps,
} from '../recipes/recipe-export.ts';
import { mapTexts } from '../recipes/recipe-parameters.ts';
import { withoutReferences } from '../recipes/recipe-references.ts';
import { SecretHider, secretsNamedIn } from '../recipes/secret-hider.ts';
import {
  type AppPart,
  bounds,
  type EntitlementPart,
  type EnvironmentPart,
  FORMAT,
  type InstancePart,
  limits,
  localName,
  type NamespacePart,
  type PartName,
  type ToolPart,
  VERSION,
  WORKSPACE,
  type WorkspaceDocument,
  type WorkspaceSettings,
} from './workspace-document.ts';
import { planOfDocument, requirementsOfDocument } from './workspace-plan.ts';

/** A workspace as a document, and what could not be kept. */
export interface ExportedWorkspace {
  document: WorkspaceDocument & { requirements: RecipeRequirements };
  warnings: string[];
}

type Identified<Part> = Part & { id: string };

/** The columns of an instance: names in documents, but for these. */
interface InstanceRow extends Omit<Identified<InstancePart>, 'key' | 'namespace' | 'credentials'> {
  namespace_id: string | null;
  credential_refs: Record<string, string>;
  client_id: string | null;
  client_secret_vault_id: string | null;
  callback_url: string | null;
  scopes_override: string[];
}

interface EntitlementRow extends Omit<EntitlementPart, 'model' | 'limits'> {
  logical_model_id: string;
  workspace_limits: WorkspaceLimits;
}

interface ExportedToolSchemas {
  slug: string;
  configSchema: object[];
  credentialSchema: object[];
}

interface WholeWorkspace {
  workspace: WorkspaceSettings | null;
  schemas: ExportedToolSchemas[];
  namespaces: Identified<NamespacePart>[];
  tools: ToolPart[];
  tool_instances: InstanceRow[];
  environments: Identified<EnvironmentPart>[];
  entitlements: EntitlementRow[];
  apps: WholeApp[];
}

const rows = (what: string, order: string, name: PartName) =>
  `(select coalesce(json_agg(x order by x.${order}), '[]')
    from (select * from (${what}) l order by l.${order} limit ${limits[name] + 1}) x) as ${name}`;
const NAMESPACES = `select n.id, n.slug, n.name, n.description from namespaces n
  where n.org_id = $1 and n.workspace_id = $2`;
/** The slugs of all tools that the workspace uses: by its instances, and by steps that have none. */
const USED_TOOLS = `select i.slug from (${instancesByTool('$1', '$2')}) i
  union select p.tool_slug from augmentations t join augmentation_stages g on g.augmentation_id = t.id
    join augmentation_steps p on p.stage_id = g.id
    where t.org_id = $1 and t.workspace_id = $2 and p.tool_slug is not null`;
const TOOLS = wholeTools('$1', USED_TOOLS);
const INSTANCES = wholeInstances('$1', '$2');

/** The bytes of all parts, before any of them is read. */
const BYTES = `select (select coalesce(sum(a.bytes), 0) from (${bytesOfApps}) a)
  + (select coalesce(sum(octet_length(to_jsonb(i)::text)), 0) from (${INSTANCES}) i)
  + (select coalesce(sum(octet_length(to_jsonb(t)::text)), 0) from (${TOOLS}) t)
  + (select coalesce(sum(octet_length(to_jsonb(e)::text)), 0) from (${entitlementsOf('$1', '$2')}) e) as bytes`;

// one statement: all parts are of one moment
const WHOLE = `select (select to_json(w) from (${workspaceSettings('$1', '$2')}) w) as workspace,
  (select coalesce(json_agg(s), '[]') from (${schemasOfInstances('$1', '$2')}) s) as schemas,
  ${rows(NAMESPACES, 'id', 'namespaces')},
  ${rows(TOOLS, 'slug', 'tools')},
  ${rows(INSTANCES, 'id', 'tool_instances')},
  ${rows(environmentsOf('$1', '$2'), 'id', 'environments')},
  ${rows(entitlementsOf('$1', '$2'), 'logical_model_id', 'entitlements')},
  ${rows(wholeApps, 'id', 'apps')}`;

/**
 * A whole workspace as a document: identifiers become local names, secrets `{{secret.NAME}}`. Members, tokens,
 * connections, contents and history are not part of it.
 * @throws RESOURCE_NOT_FOUND `workspace`; RESOURCE_CONFLICT `too_large` for one with more than a document may have
 */
export async function exportWorkspace(
  deps: { reads: ReadRunner; access: Access },
  caller: Caller,
  place: WorkspacePlace,
): Promise<ExportedWorkspace> {
  const { orgId, workspaceId } = place;
  const [size] = await deps.reads.read<{ bytes: string }>(BYTES, [orgId, workspaceId]);
  if (Number(size!.bytes) > limits.bytes) throw tooLarge(workspaceId);
  const [whole] = await deps.reads.read<WholeWorkspace>(WHOLE, [orgId, workspaceId]);
  if (!whole?.workspace) throw notFound('workspace', workspaceId);
  refuseTooMuch(whole, workspaceId);
  const secrets = await secretNamesIn(deps, caller, place, whole);
  const exported = new WorkspaceExport(whole, workspaceId, secrets).result();
  const text = JSON.stringify(exported.document);
  if (Buffer.byteLength(text) > limits.bytes) throw tooLarge(workspaceId);
  refuseOverload(text, workspaceId);
  refuseGrown(exported.document, workspaceId);
  return exported;
}

function refuseTooMuch(whole: WholeWorkspace, workspaceId: string): void {
  for (const name of Object.keys(limits) as (keyof typeof limits)[])
    if (name !== 'bytes' && whole[name].length > limits[name]) throw tooLarge(workspaceId);
  const app = whole.apps.find(isTooMuch);
  if (app)
    throw conflict(
      'workspace',
      workspaceId,
      'too_large',
      `The app '${app.name}' has more parts than a recipe may have.`,
    );
}

/** No import would take it: few bytes may hold many values. */
function refuseOverload(text: string, workspaceId: string): void {
  const overload = overloadOf(text, bounds);
  if (!overload) return;
  const most =
    overload === 'values'
      ? `${bounds.maxValues} values, where each key counts as ${VALUES_PER_KEY} more`
      : `${bounds.maxDepth} levels of lists and objects`;
  const message = `A document of a workspace has at most ${most}: the workspace has more.`;
  throw conflict('workspace', workspaceId, 'too_large', message);
}

/** Names in place of identifiers may be longer. */
function refuseGrown(document: WorkspaceDocument, workspaceId: string): void {
  try {
    planOfDocument(document);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const tooLong = error.issues.find(({ type, msg }) => type.endsWith('too_long') || msg.includes('it has at most'));
    if (!tooLong) return;
    // `input`, `document`
    const at = tooLong.path.slice(2).join('.');
    const message = `With names in place of identifiers, ${at} is longer than it may be in a document: shorten it.`;
    throw conflict('workspace', workspaceId, 'too_large', message);
  }
}

const tooLarge = (workspaceId: string) => {
  const { bytes, ...counts } = limits;
  const parts = Object.entries(counts).map(([name, most]) => `${most} ${name.replaceAll('_', ' ')}`);
  const message = `A document of a workspace has at most ${bytes} bytes, ${parts.join(', ')}: the workspace has more.`;
  return conflict('workspace', workspaceId, 'too_large', message);
};

class WorkspaceExport {
  readonly #whole: WholeWorkspace;
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #warnings = new Set<string>();
  readonly #hider: SecretHider;
  readonly #namespaces: ReadonlyMap<string, string>;
  /** Names of the fields that each tool keeps secret, by its slug. */
  readonly #sensitive: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #instanceKeys: ReadonlyMap<string, string>;
  readonly #appKeys: ReadonlyMap<string, string>;
  /** Local names by identifier. */
  readonly #around: ReadonlyMap<string, string>;
  readonly #local: ReadonlySet<string>;

  constructor(whole: WholeWorkspace, workspaceId: string, secrets: ReadonlyMap<string, string>) {
    this.#whole = whole;
    this.#secrets = secrets;
    const named = whole.tool_instances.flatMap(({ client_secret_vault_id }) => nameIn(client_secret_vault_id) ?? []);
    this.#hider = new SecretHider(this.#warnings, [...secrets.values(), ...named, ...secretsNamedIn(whole)]);
    this.#namespaces = new Map(whole.namespaces.map(({ id, slug }) => [id, slug]));
    this.#sensitive = new Map(whole.schemas.map(({ slug, ...tool }) => [slug, fieldsOf(tool).sensitive]));
    this.#instanceKeys = keysOf(whole.tool_instances, 'instance');
    this.#appKeys = keysOf(whole.apps, 'app');
    this.#around = new Map([
      [workspaceId, WORKSPACE],
      ...whole.namespaces.map(({ id, slug }) => [id, localName('namespace', slug)] as const),
      ...whole.environments.map(({ id, slug }) => [id, localName('environment', slug)] as const),
      ...[...this.#instanceKeys].map(([id, key]) => [id, localName('tool_instance', key)] as const),
      ...[...this.#appKeys].map(([id, key]) => [id, localName('app', key)] as const),
    ]);
    this.#local = new Set(this.#around.values());
  }

  result(): ExportedWorkspace {
    const { workspace, namespaces, environments } = this.#whole;
    const others = namespaces.filter(({ slug }) => slug !== DEFAULT_NAMESPACE);
    const document: WorkspaceDocument = {
      format: FORMAT,
      version: VERSION,
      workspace: this.#settings(withoutEmpty(workspace!)),
      namespaces: others.map(({ id: _id, ...part }) => this.#described(withoutEmpty(part))),
      tools: this.#whole.tools.map((tool) => this.#tool(withoutEmpty(tool))),
      tool_instances: this.#whole.tool_instances.map((row) => this.#instance(row)),
      environments: environments.map(({ id: _id, ...part }) => this.#described(withoutEmpty(part))),
      entitlements: this.#whole.entitlements.map((row) => this.#entitlement(row)),
      apps: this.#whole.apps.map((app) => this.#app(app)),
    };
    const requirements = requirementsOfDocument(document);
    return { document: { ...document, requirements }, warnings: [...this.#warnings] };
  }

  #described<Part extends { description?: string | null }>(part: Part): Part {
    const { description } = part;
    return typeof description === 'string' ? { ...part, description: this.#hidden(description, 'description') } : part;
  }

  #settings({ tags, ...part }: WorkspaceSettings): WorkspaceSettings {
    return { ...this.#described(part), ...(tags && { tags: this.#hidden(tags, 'tags') }) };
  }

  #hidden<Value>(value: Value, key = ''): Value {
    return withoutPlainSecrets(value, this.#hider, key);
  }

  // nothing fills `{{secret.NAME}}` into a tool, and in a template it would name nothing
  #tool({ slug, name, ...rest }: ToolPart): ToolPart {
    const write = (key: string, secret: string): string => {
      const word = /^https?:/i.test(secret) ? REMOVED_ADDRESS : REMOVED;
      this.#warnings.add(`The '${key}' of the tool '${slug}' may contain a secret: ${word} replaces it.`);
      return word;
    };
    return { slug, name, ...withoutPlainSecrets(rest, { write, doubt: this.#hider.doubt }) };
  }

  #instance(row: InstanceRow): InstancePart {
    const { id, name, tool, namespace_id, credential_refs, client_secret_vault_id, ...rest } = row;
    const { client_id, callback_url, scopes_override, ...part } = rest;
    const scopes = scopes_override.length > 0 ? scopes_override : null;
    const client = withoutEmpty({
      ...this.#hidden({ client_id, scopes_override: scopes }),
      client_secret: this.#clientSecret(row, client_secret_vault_id),
      callback_url: this.#callbackUrl(name, callback_url),
    });
    const kept = this.#configuration(row);
    const credentials = [...new Set([...Object.keys(credential_refs), ...kept.secrets])].sort();
    return {
      key: this.#instanceKeys.get(id)!,
      tool,
      ...(namespace_id !== null && { namespace: this.#namespaces.get(namespace_id)! }),
      name,
      ...this.#withNames(withoutEmpty({ ...part, configuration: kept.plain })),
      ...(credentials.length > 0 && { credentials }),
      ...(Object.keys(client).length > 0 && { connection_credentials: client }),
    };
  }

  /** Fields may have become sensitive after the instance was configured: what it has in them counts as a credential. */
  #configuration({ tool, configuration }: InstanceRow): { plain: InstancePart['configuration']; secrets: string[] } {
    const sensitive = this.#sensitive.get(tool);
    const entries = Object.entries(configuration ?? {});
    return {
      plain: Object.fromEntries(entries.filter(([name]) => !sensitive?.has(name))),
      secrets: entries.flatMap(([name]) => (sensitive?.has(name) ? [name] : [])),
    };
  }

  /** What is free-form, with local names in place of identifiers. */
  #withNames<Value extends object>(value: Value): Value {
    const change = (text: string) =>
      withoutReferences(text, (name) => this.#local.has(name)).replaceAll(ID, (id) => this.#nameOf(id));
    return mapTexts(this.#hidden(value), change, { keys: true });
  }

  #nameOf(id: string): string {
    const name = this.#around.get(id);
    if (name !== undefined) return `{{${name}}}`;
    const secret = this.#secrets.get(id);
    return secret === undefined ? id : `{{secret.${secret}}}`;
  }

  /** An address with a placeholder leads nowhere, and may be no address any more. */
  #callbackUrl(name: string, url: string | null): string | null {
    if (url === null || masked({ callback_url: url }).callback_url === url) return url;
    this.#warnings.add(`The callback address of the tool instance '${name}' may contain a secret. It was left out.`);
    return null;
  }

  /** The reference to the secret of a client as all others are: by its name. */
  #clientSecret({ name }: InstanceRow, reference: string | null): string | null {
    if (reference === null) return null;
    const secret = nameIn(reference) ?? this.#secrets.get(reference);
    if (secret !== undefined) return `{{secret.${secret}}}`;
    if (kindOfId(reference) === null) return reference;
    this.#warnings.add(
      `The client of the tool instance '${name}' has a secret that cannot be referred to by name. It was left out.`,
    );
    return null;
  }

  #entitlement({ logical_model_id: model, workspace_limits, ...part }: EntitlementRow): EntitlementPart {
    const named = limitsByName(workspace_limits);
    return { model, limits: this.#hidden(named), ...this.#hidden(withoutEmpty(part)) };
  }

  #app(app: WholeApp): AppPart {
    const key = this.#appKeys.get(app.id)!;
    // steps name instances of the document by their keys
    const instances = app.instances.map((one) => ({ ...one, name: this.#instanceKeys.get(one.id)! }));
    const warnings = new Set<string>();
    const { namespace: _none, ...definition } = new AppExport({ ...app, instances }, this.#surroundings(warnings))
      .definition;
    for (const warning of warnings) this.#warnings.add(`The app '${app.name}': ${warning}`);
    return { key, needs_embedding: app.needsEmbedding, definition };
  }

  #surroundings(warnings: Set<string>): ExportSurroundings {
    return { secrets: this.#secrets, hider: this.#hider, warnings, around: this.#around };
  }
}

const REMOVED = 'SECRET_REMOVED';
/** An address that is none of anybody (RFC 6761). */
const REMOVED_ADDRESS = 'https://secret-removed.invalid/';

/** The name in `secret://NAME`; `null` for any other reference. */
const nameIn = (reference: string | null): string | null =>
  (reference === null ? null : SECRET_REFERENCE.exec(reference)?.[1]) ?? null;

/** A row without the columns that are `null`. */
const withoutEmpty = <Part extends object>(part: Part): Part =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null)) as Part;
