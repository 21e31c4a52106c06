import type { ServiceDeps } from '../../access/service-deps.ts';
import { isPart } from '../../access/whole-place.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, forbidden, notFound } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';
import { visibleTools } from '../../tools/views.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { nameableSecrets } from '../../vault/views.ts';
import { limits as missingLimits } from '../recipes/missing-parts.ts';
import { counted, messageOf } from '../recipes/recipe.service.ts';
import { isRunning } from '../recipes/recipe-document.ts';
import { checkMapping, type RecipeMapping } from '../recipes/recipe-mapping.ts';
import { findUsed, isAllowed, type MissingPart, type Surroundings } from '../recipes/recipe-surroundings.ts';
import type { WorkspaceDocument } from './workspace-document.ts';
import { type ExportedWorkspace, exportWorkspace } from './workspace-export.ts';
import { type ImportWork, importInto, type MadePart } from './workspace-import.ts';
import {
  clientSecretName,
  issueAt,
  type PlannedApp,
  planOfDocument,
  refuse,
  usesOfDocument,
  usesOfPlan,
  type WorkspacePlan,
  withLists,
} from './workspace-plan.ts';

/** What a caller gives to import a workspace. */
export interface ImportWorkspace extends RecipeMapping {
  /** Its form is checked already. */
  document: Record<string, unknown>;
  /** Only says what would be made. */
  dryRun?: boolean | null;
}

/** What an import made, or would make. */
export interface ImportedWorkspace {
  orgId: string;
  message: string;
  made: MadePart[];
  /** What the workspace lacks. */
  missing: MissingPart[];
  warnings: string[];
}

/** Ends a change that only shows what it would do. */
class DryRun extends Error {
  readonly made: MadePart[];
  readonly warnings: string[];

  constructor({ made, warnings }: { made: MadePart[]; warnings: string[] }) {
    super('Nothing is kept of a dry run.');
    this.made = made.map((part) => ({ ...part, resourceId: null }));
    this.warnings = warnings;
  }
}

interface UsedTool {
  slug: string;
  status: string;
  isBuiltIn: boolean;
}

interface NamedSecret {
  id: string;
  name: string;
  workspaceId: string | null;
}

/** How often names are compared again that somebody else takes at the same time. */
const ATTEMPTS = 3;
const TOOLS = `select t.slug, t.status, t.is_built_in as "isBuiltIn"
  from (${visibleTools('$1')}) t where t.slug = any($2::text[])`;
const SECRETS = `select s.id, s.name, s.workspace_id as "workspaceId"
  from (${nameableSecrets('$1', '$2', '$4', '$5')}) s
  where s.name = any($3::text[]) and s.status = 'active' order by s.id`;

interface DocumentDeps extends ServiceDeps {
  vault: Vault;
  secretReads: SecretReads;
}

/** Whole workspaces as documents. */
export class WorkspaceDocumentService {
  readonly #deps: DocumentDeps;

  constructor(deps: DocumentDeps) {
    this.#deps = deps;
  }

  /**
   * A workspace as a document that {@link import} accepts.
   * @throws FORBIDDEN for callers who may not read each part; RESOURCE_CONFLICT `too_large`
   */
  async export(caller: Caller, place: Checked<WorkspacePlace>): Promise<ExportedWorkspace> {
    const { access, slowReads } = this.#deps;
    const { orgId, workspaceId } = place;
    if (isPart(caller, ['workspace'])) throw forbidden('recipe:export');
    const parts = ['namespace', 'app', 'augmentation', 'endpoint', 'action', 'tool_instance', 'environment'] as const;
    for (const part of ['workspace', ...parts, 'model_entitlement'] as const)
      await access.requireWorkspace(caller, orgId, workspaceId, `${part}:read`);
    await access.requireOrganization(caller, orgId, 'tool:read');
    return exportWorkspace({ reads: slowReads.of(orgId), access }, caller, place);
  }

  /**
   * Makes everything that a document has, in one change: all of it or nothing. Missing models, tools, secrets and
   * credentials are no failure: they are listed, and schedules of apps that lack something are disabled.
   * @throws FORBIDDEN for callers who could not make each part by itself, with its client secret; InputError for
   * what is wrong in the document, for names that the workspace has already, and for a mapping of what is not there
   */
  async import(caller: Caller, place: Checked<WorkspacePlace>, input: ImportWorkspace): Promise<ImportedWorkspace> {
    if (isPart(caller, ['workspace'])) throw forbidden('recipe:apply');
    // its form was checked with the input
    const document = withLists(input.document as unknown as WorkspaceDocument);
    await this.#demandParts(caller, place, document);
    const work = await this.#prepare(caller, place, document, input);
    const { made, warnings } = await this.#unique(() => this.#write(caller, place, work, input.dryRun === true));
    const { missing, plan } = work;
    const isHeld = plan.apps.some((app) => work.isHeld(app) && (app.definition.actions ?? []).some(isRunning));
    const did = input.dryRun ? `The import would make ${partsOf(made)}` : `Imported ${partsOf(made)}`;
    return { orgId: place.orgId, message: messageOf(did, missing, isHeld), made, missing: shown(missing), warnings };
  }

  /** @throws FORBIDDEN for the first part of a document that the caller could not make */
  async #demandParts(caller: Caller, { orgId, workspaceId }: WorkspacePlace, document: WorkspaceDocument) {
    const needed: [readonly unknown[], Permission[]][] = [
      [document.namespaces, ['namespace:create']],
      [document.environments, ['environment:create']],
      [document.tool_instances, ['tool_instance:create']],
      [document.entitlements, ['model_entitlement:create']],
      [document.apps, ['app:create', 'augmentation:create', 'endpoint:create', 'action:create']],
    ];
    for (const [parts, permissions] of needed)
      for (const permission of parts.length > 0 ? permissions : [])
        await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, permission);
  }

  async #prepare(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    document: WorkspaceDocument,
    input: ImportWorkspace,
  ): Promise<ImportWork & { missing: MissingPart[] }> {
    const { access } = this.#deps;
    const mapping = await checkMapping(this.#deps, caller, place, input, usesOfDocument(document), 'the document');
    const { orgId, workspaceId } = place;
    const defaultNamespaceId = await access.parts.defaultNamespace(orgId, workspaceId);
    if (!defaultNamespaceId) throw notFound('workspace', workspaceId);
    const plan = planOfDocument(document, mapping, { workspaceId, defaultNamespaceId });
    const { instances, builtIn } = await this.#withTools(caller, place, plan);
    const makes = new Set(instances.map(({ id }) => id));
    const others = plan.instances.filter(({ id }) => !makes.has(id));
    withoutInstances(plan.apps, new Set(others.map(({ id }) => id)));
    const granted = document.entitlements.map((part, at) => ({
      at,
      part: { ...part, model: mapping.model(part.model) },
    }));
    refuseDoubles(granted);
    const parts = instances.map(({ part }) => part);
    const uses = usesOfPlan(
      plan.apps,
      parts,
      granted.map(({ part }) => part.model),
    );
    const tools = new Map(uses.tools);
    for (const { part } of others) tools.set(part.tool, [...(tools.get(part.tool) ?? []), `tool_instance.${part.key}`]);
    const steps = plan.apps.flatMap(({ definition, instances: own }) =>
      definition.steps.filter((one) => !own.has(one)),
    );
    const found = await findUsed(this.#deps, caller, place, {
      uses: { ...uses, tools },
      steps,
      instances: new Map(plan.apps.flatMap((app) => [...app.instances])),
      needsEmbedding: plan.apps.some(({ needsEmbedding }) => needsEmbedding),
    });
    const missing = [...withEmbedding(found, plan), ...credentialsOf(instances)];
    const lacking = new Set(missing.flatMap(({ kind, name }) => (kind === 'model' ? [name] : [])));
    return {
      plan,
      surroundings: found,
      instances,
      missing,
      secretIds: await this.#secretsOf(caller, place, instances, builtIn),
      entitlements: granted.filter(({ part }) => !lacking.has(part.model)),
      isHeld: holder(missing, instances),
    };
  }

  /**
   * The instances whose tools are there and can be used, or are made with them, and the slugs of built-in tools.
   * @throws FORBIDDEN for callers who could not make the tools
   */
  async #withTools(
    caller: Caller,
    { orgId }: WorkspacePlace,
    { document, instances }: WorkspacePlan,
  ): Promise<{ instances: WorkspacePlan['instances']; builtIn: ReadonlySet<string> }> {
    const slugs = new Set([...document.tools.map(({ slug }) => slug), ...instances.map(({ part }) => part.tool)]);
    const rows = await this.#deps.sql.read<UsedTool>(TOOLS, [orgId, [...slugs]]);
    const there = new Map(rows.map(({ slug, status }) => [slug, status]));
    const made = new Map(
      document.tools.flatMap(({ slug, status }) => (there.has(slug) ? [] : [[slug, status ?? 'active'] as const])),
    );
    if (made.size > 0) await this.#deps.access.requireOrganization(caller, orgId, 'tool:create');
    const isUsable = (slug: string) => (there.get(slug) ?? made.get(slug) ?? 'disabled') !== 'disabled';
    const own = new Set(rows.flatMap(({ slug, isBuiltIn }) => (isBuiltIn ? [] : [slug])));
    return {
      instances: instances.filter(({ part }) => isUsable(part.tool)),
      // an organization's own tool comes before a built-in one
      builtIn: new Set([...there.keys()].filter((slug) => !own.has(slug))),
    };
  }

  /**
   * The identifiers of the secrets that clients of instances name, as far as the caller may read them.
   * @throws FORBIDDEN `secret:reveal` for one that goes where a tool of the organization, or of the document, says
   */
  async #secretsOf(
    caller: Caller,
    { orgId, workspaceId }: WorkspacePlace,
    instances: WorkspacePlan['instances'],
    builtIn: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, string>> {
    const { access, sql, secretReads } = this.#deps;
    const named = instances.flatMap(({ part }) => {
      const reference = part.connection_credentials?.client_secret;
      const name = reference ? clientSecretName(reference) : null;
      return name === null ? [] : [{ name, isSteered: !builtIn.has(part.tool) }];
    });
    const names = named.map(({ name }) => name);
    if (names.length === 0) return new Map();
    const [shared, own] = await Promise.all([
      isAllowed(() => access.requireOrganization(caller, orgId, 'secret:read')),
      isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'secret:read')),
    ]);
    const rows = await sql.read<NamedSecret>(SECRETS, [orgId, workspaceId, names, shared, own]);
    const found = new Map(rows.map((row) => [row.name, row]));
    const steered = new Set(named.flatMap(({ name, isSteered }) => (isSteered ? [name] : [])));
    for (const { id, name, workspaceId: home } of found.values())
      if (steered.has(name))
        await secretReads.demand(
          caller,
          { id, orgId, workspaceId: home, namespaceId: null, environmentId: null },
          'secret:reveal',
        );
    return new Map([...found].map(([name, { id }]) => [name, id]));
  }

  async #write(caller: Caller, place: Checked<WorkspacePlace>, work: ImportWork, isDry: boolean) {
    try {
      return await this.#deps.changes.run(caller, async (tx) => {
        const result = await importInto(tx, caller, place, this.#deps.vault, work);
        if (isDry) throw new DryRun(result);
        return result;
      });
    } catch (error) {
      if (error instanceof DryRun) return error;
      throw error;
    }
  }

  /** Repeats what found a name free that was taken at the same time. */
  async #unique<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!brokenUnique(error)) throw error;
        if (attempt === ATTEMPTS) throw alreadyExists('namespace', 'slug', '');
      }
    }
  }
}

/** Takes instances that are not made from the steps that name them. */
function withoutInstances(apps: readonly PlannedApp[], gone: ReadonlySet<string>): void {
  for (const { instances } of apps) for (const [step, id] of instances) if (gone.has(id)) instances.delete(step);
}

/** @throws InputError where two entitlements would be to one model, because of the mapping */
function refuseDoubles(parts: ImportWork['entitlements']): void {
  const seen = new Set<string>();
  refuse(
    parts.flatMap(({ at, part: { model } }) => {
      if (seen.has(model)) return [issueAt(['entitlements', at, 'model'], `'${model}' is listed twice`)];
      seen.add(model);
      return [];
    }),
  );
}

/** What is missing, with the apps that need an embedding model. */
function withEmbedding({ missing }: Surroundings, { apps }: WorkspacePlan): MissingPart[] {
  const users = apps.flatMap(({ key, needsEmbedding }) => (needsEmbedding ? [`app.${key}`] : []));
  return missing.map((part) => (part.kind === 'embedding_model' ? { ...part, usedBy: users } : part));
}

/** The values that new instances must be given, because no document has them. */
function credentialsOf(instances: WorkspacePlan['instances']): MissingPart[] {
  const users = new Map<string, string[]>();
  for (const { part } of instances)
    for (const name of part.credentials ?? [])
      users.set(name, [...(users.get(name) ?? []), `tool_instance.${part.key}`]);
  return [...users.keys()].sort().map((name) => ({ kind: 'credential', name, usedBy: users.get(name)! }));
}

/** Tells the apps that lack something themselves, or use an instance that does. */
function holder(missing: readonly MissingPart[], instances: WorkspacePlan['instances']): ImportWork['isHeld'] {
  const users = new Set(missing.flatMap(({ usedBy }) => usedBy));
  const lacking = new Set(instances.flatMap(({ id, part }) => (users.has(`tool_instance.${part.key}`) ? [id] : [])));
  const apps = new Set([...users].flatMap((user) => /^app\.([^.]+)/.exec(user)?.[1] ?? []));
  return (app) => apps.has(app.key) || [...app.instances.values()].some((id) => lacking.has(id));
}

const nouns: Readonly<Record<MadePart['resourceType'], string>> = {
  namespace: 'namespace',
  environment: 'environment',
  tool: 'tool',
  tool_instance: 'tool instance',
  model_entitlement: 'entitlement',
  app: 'app',
};

function partsOf(made: readonly MadePart[]): string {
  const counts = Object.entries(nouns).flatMap(([kind, noun]) => {
    const count = made.filter(({ resourceType }) => resourceType === kind).length;
    return count === 0 ? [] : [counted(count, noun)];
  });
  if (counts.length === 0) return 'nothing';
  return counts.length === 1 ? counts[0]! : `${counts.slice(0, -1).join(', ')} and ${counts.at(-1)}`;
}

const shown = (missing: readonly MissingPart[]): MissingPart[] =>
  missing
    .slice(0, missingLimits.missing)
    .map((part) => ({ ...part, usedBy: part.usedBy.slice(0, missingLimits.users) }));
