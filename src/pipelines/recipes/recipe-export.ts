import type { Access } from '../../access/access.ts';
import { selectList } from '../../data/paging.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { conflict, InputError, notFound } from '../../kernel/errors.ts';
import { ID_FORM, kindOfId } from '../../kernel/ids.ts';
import { withoutPlainSecrets } from '../../kernel/plain-secrets.ts';
import { modelsOf } from '../../models/views.ts';
import { instancesByTool } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import { type Augmentation, augmentations, type Step } from '../augmentations/augmentation.reads.ts';
import { keyOf, mapStepReferences, uniqueKeys } from '../augmentations/step-keys.ts';
import { limits } from './recipe.words.ts';
import type { RecipeDefinition, RecipeDocument, RecipeRequirements } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';
import { planOf } from './recipe-plan.ts';
import { asLiteral, isOwnStep, stepName, withoutReferences } from './recipe-references.ts';
import { requirementsOf } from './recipe-requirements.ts';
import { checkForm } from './recipe-schema.ts';
import { isAllowed } from './recipe-surroundings.ts';
import { SecretHider, secretsNamedIn } from './secret-hider.ts';

/** An app as a recipe, and what could not be kept. */
export interface ExportedRecipe {
  recipe: RecipeDocument & { requirements: RecipeRequirements };
  warnings: string[];
}

type JsonObject = Record<string, unknown>;

interface ExportedPart {
  id: string;
  name: string;
  description: string | null;
}

/** An app with all its parts. */
export interface WholeApp {
  id: string;
  name: string;
  description: string | null;
  metadata: JsonObject;
  augmentations: Augmentation[];
  endpoints: (ExportedPart & {
    augmentationId: string;
    path: string;
    method: string;
    enabled: boolean;
    metadata: JsonObject;
  })[];
  actions: (ExportedPart & {
    augmentationId: string;
    kind: string;
    triggerEvent: string | null;
    cron: string | null;
    timezone: string | null;
    enabled: boolean;
    input: JsonObject;
  })[];
  instances: { id: string; name: string; slug: string }[];
  needsEmbedding: boolean;
}

const parts = (what: string, limit: number) =>
  `(select coalesce(json_agg(x order by x.id), '[]') from (${what} order by t.id limit ${limit + 1}) x)`;
const OF_APP = 't.org_id = $1 and t.workspace_id = $2 and t.app_id = a.id';
const STEPS = `augmentations t join augmentation_stages g on g.augmentation_id = t.id
  join augmentation_steps p on p.stage_id = g.id where ${OF_APP}`;

/** The bytes of what is free-form in each app, before any of it is read. */
export const bytesOfApps = `select octet_length(a.metadata::text)
    + (select coalesce(sum(octet_length(t.metadata::text)), 0) from augmentations t where ${OF_APP})
    + (select coalesce(sum(octet_length(p.config::text)), 0) from ${STEPS})
    + (select coalesce(sum(octet_length(t.metadata::text)), 0) from endpoints t where ${OF_APP})
    + (select coalesce(sum(octet_length(t.input::text)), 0) from actions t where ${OF_APP}) as bytes
  from apps a where a.org_id = $1 and a.workspace_id = $2`;

const PART = 't.id, t.name, t.description, t.augmentation_id as "augmentationId", t.enabled';
/** The apps of a workspace with all their parts. One statement: all parts are of one moment. */
export const wholeApps = `select a.id, a.name, a.description, a.metadata,
    ${parts(`select ${selectList(augmentations.columns)} from augmentations t where ${OF_APP}`, limits.augmentations)}
      as augmentations,
    ${parts(`select ${PART}, t.path, t.method, t.metadata from endpoints t where ${OF_APP}`, limits.endpoints)}
      as endpoints,
    ${parts(
      `select ${PART}, t.kind, t.trigger_event as "triggerEvent", t.cron, t.timezone, t.input
        from actions t where ${OF_APP}`,
      limits.actions,
    )} as actions,
    (select coalesce(json_agg(json_build_object('id', i.id, 'name', i.name, 'slug', i.slug) order by i.id), '[]')
      from (${instancesByTool('$1', '$2')}) i where i.id in (select p.tool_instance_id from ${STEPS})) as instances,
    exists (select 1 from (${modelsOf('$1')}) m where m.model_type = 'embedding'
      and m.id in (select p.logical_model_id from ${STEPS})) as "needsEmbedding"
  from apps a where a.org_id = $1 and a.workspace_id = $2`;

const SECRETS = `select s.id, s.name from (${nameableSecrets('$1', '$2', '$4', '$5')}) s where s.id = any($3::text[])`;

/**
 * An app as a recipe: identifiers become local names, secrets `{{secret.NAME}}`. Members, tokens and history are not
 * part of it.
 * @throws RESOURCE_NOT_FOUND `app`; RESOURCE_CONFLICT `too_large` for an app with more than a recipe may have
 */
export async function exportApp(
  { reads, access }: { reads: ReadRunner; access: Access },
  caller: Caller,
  { orgId, workspaceId, appId }: AppPlace,
): Promise<ExportedRecipe> {
  const where = [orgId, workspaceId, appId];
  const [size] = await reads.read<{ bytes: string }>(`${bytesOfApps} and a.id = $3`, where);
  if (!size) throw notFound('app', appId);
  if (Number(size.bytes) > limits.bytes) throw tooLarge(appId);
  const [whole] = await reads.read<WholeApp>(`${wholeApps} and a.id = $3`, where);
  if (!whole) throw notFound('app', appId);
  if (isTooMuch(whole)) throw tooLarge(appId);
  const secrets = await secretNamesIn({ reads, access }, caller, { orgId, workspaceId }, whole);
  const warnings = new Set<string>();
  const hider = new SecretHider(warnings, [...secrets.values(), ...secretsNamedIn(whole)]);
  const instances = withDistinctNames(whole.instances);
  const { definition } = new AppExport({ ...whole, instances }, { secrets, hider, warnings });
  const recipe = { recipe: recipeOf(whole, definition), warnings: [...warnings] };
  if (Buffer.byteLength(JSON.stringify(recipe.recipe)) > limits.bytes) throw tooLarge(appId);
  const grown = grownText(recipe.recipe);
  if (grown)
    throw conflict(
      'app',
      appId,
      'too_large',
      `With names in place of identifiers, ${grown} is longer than it may be in a recipe: shorten it.`,
    );
  return recipe;
}

/** Whether an app has more of something than a recipe may have. */
export function isTooMuch({ augmentations, endpoints, actions }: WholeApp): boolean {
  const stages = augmentations.flatMap((one) => one.stages);
  const steps = stages.flatMap((stage) => stage.steps);
  const counts = { augmentations, endpoints, actions, stages, steps };
  return Object.entries(counts).some(([name, list]) => list.length > limits[name as keyof typeof counts]);
}

/** The names of the secrets whose identifiers a value has, as far as the caller may read them. */
export async function secretNamesIn(
  { reads, access }: { reads: ReadRunner; access: Access },
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  value: object,
): Promise<ReadonlyMap<string, string>> {
  const found = [...JSON.stringify(value).matchAll(ID)].map(([id]) => id);
  const ids = [...new Set(found)].filter((id) => kindOfId(id) === 'secret');
  if (ids.length === 0) return new Map();
  const [shared, own] = await Promise.all([
    isAllowed(() => access.requireOrganization(caller, orgId, 'secret:read')),
    isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'secret:read')),
  ]);
  const names = await reads.read<{ id: string; name: string }>(SECRETS, [orgId, workspaceId, ids, shared, own]);
  return new Map(names.map(({ id, name }) => [id, name]));
}

const MAX_NAME = 255;

/** Tool instances, of which those of one tool have different names: a mapping tells them apart by these. */
function withDistinctNames(instances: WholeApp['instances']): WholeApp['instances'] {
  const taken = new Set(instances.map(({ slug, name }) => `${slug}/${name}`));
  const seen = new Set<string>();
  return instances.map((instance) => {
    const { slug, name } = instance;
    if (!seen.has(`${slug}/${name}`)) {
      seen.add(`${slug}/${name}`);
      return instance;
    }
    for (let n = 2; ; n++) {
      const other = `${[...name].slice(0, MAX_NAME - ` ${n}`.length).join('')} ${n}`;
      if (taken.has(`${slug}/${other}`)) continue;
      taken.add(`${slug}/${other}`);
      return { ...instance, name: other };
    }
  });
}

const recipeOf = ({ name, needsEmbedding }: WholeApp, definition: RecipeDefinition): ExportedRecipe['recipe'] => ({
  id: keyOf(name, 'app'),
  name: definition.app.name,
  description: definition.app.description ?? '',
  category: 'intermediate',
  icon: 'app',
  tags: [],
  needs_embedding: needsEmbedding,
  version: '1.0.0',
  requirements: requirementsOf(definition),
  parameters: [],
  definition,
});

/** Names in place of identifiers may be longer: the place of what applying the recipe would refuse as too large. */
function grownText(recipe: RecipeDocument): string | null {
  const [wrong] = checkForm(recipe);
  if (wrong) return wrong.path.join('.');
  try {
    planOf(recipe, { recipeId: recipe.id }, true);
    return null;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const tooLong = error.issues.find(({ type, msg }) => type.endsWith('too_long') || msg.includes('it has at most'));
    // `input`, `recipe`
    return tooLong ? tooLong.path.slice(2).join('.') : null;
  }
}

const tooLarge = (appId: string) =>
  conflict(
    'app',
    appId,
    'too_large',
    `A recipe has at most ${limits.bytes} bytes, ${limits.augmentations} augmentations, ${limits.stages} stages, ` +
      `${limits.steps} steps, ${limits.endpoints} endpoints and ${limits.actions} actions: the app has more.`,
  );

/** Identifiers in texts. */
export const ID = new RegExp(`(?<![A-Za-z0-9])${ID_FORM}(?![0-9A-Za-z])`, 'g');
/** What the export of an app needs to know of what is around it. */
export interface ExportSurroundings {
  /** The names of secrets, by identifier. */
  secrets: ReadonlyMap<string, string>;
  hider: SecretHider;
  warnings: Set<string>;
  /** Local names of what is exported with the app, by identifier: `workspace.namespace.sales`. Absent: nothing is. */
  around?: ReadonlyMap<string, string>;
}

/** Writes an app with local names in place of identifiers. */
export class AppExport {
  readonly definition: RecipeDefinition;
  readonly #whole: WholeApp;
  readonly #secrets: ReadonlyMap<string, string>;
  /** What stands for an identifier in texts. */
  readonly #placeholders = new Map<string, string>();
  /** Names that applying the recipe would take for references. */
  readonly #local = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #warnings: Set<string>;
  readonly #hider: SecretHider;
  /** Whether a namespace is made with the app. */
  readonly #makesNamespace: boolean;
  readonly #keys: Record<'augmentation' | 'stage' | 'endpoint' | 'action', Map<string, string>>;

  constructor(whole: WholeApp, { secrets, hider, warnings, around }: ExportSurroundings) {
    this.#whole = whole;
    this.#secrets = secrets;
    this.#hider = hider;
    this.#warnings = warnings;
    this.#makesNamespace = around === undefined;
    if (this.#makesNamespace) this.#local.add('namespace');
    const stages = whole.augmentations.flatMap((one) => one.stages);
    this.#keys = {
      augmentation: keysOf(whole.augmentations, 'augmentation'),
      stage: keysOf(stages, 'stage'),
      endpoint: keysOf(whole.endpoints, 'endpoint'),
      action: keysOf(whole.actions, 'action'),
    };
    for (const [id, name] of around ?? []) this.#placeholders.set(id, `{{${name}}}`);
    this.#placeholders.set(whole.id, '{{app}}');
    for (const [kind, keys] of Object.entries(this.#keys))
      for (const [id, key] of keys) this.#placeholders.set(id, `{{${kind}.${key}}}`);
    for (const one of whole.augmentations)
      for (const { id, key } of one.stages.flatMap(({ steps }) => steps)) {
        this.#placeholders.set(id, `{{${stepName(this.#keys.augmentation.get(one.id), key)}}}`);
        this.#local.add(`step.${key}`);
      }
    for (const placeholder of this.#placeholders.values()) this.#local.add(placeholder.slice(2, -2));
    for (const name of around?.values() ?? []) this.#local.add(name);
    this.definition = this.#definition();
  }

  #definition(): RecipeDefinition {
    const { name, description, metadata, augmentations: all, endpoints, actions } = this.#whole;
    const keys = this.#keys;
    const stages = all.flatMap((augmentation) => {
      const own = new Set(augmentation.stages.flatMap(({ steps }) => steps.map(({ key }) => key)));
      return augmentation.stages.map((stage) => ({ augmentation, stage, own }));
    });
    const [main, ...further] = endpoints.map((endpoint) => ({
      key: keys.endpoint.get(endpoint.id)!,
      augmentation: keys.augmentation.get(endpoint.augmentationId)!,
      ...this.#labels(endpoint),
      path: endpoint.path,
      method: endpoint.method,
      enabled: endpoint.enabled,
      metadata: this.#json(endpoint.metadata),
    }));
    return {
      app: { ...this.#labels({ name, description }), metadata: this.#json(metadata) },
      namespace: { name: this.#text(name) },
      augmentations: all.map((augmentation) => ({
        key: keys.augmentation.get(augmentation.id)!,
        ...this.#labels(augmentation),
        status: augmentation.status,
        metadata: this.#json(augmentation.metadata as JsonObject),
      })),
      stages: stages.map(({ augmentation, stage }) => ({
        key: keys.stage.get(stage.id)!,
        augmentation: keys.augmentation.get(augmentation.id)!,
        name: this.#text(stage.name),
        execution_mode: stage.executionMode,
      })),
      steps: stages.flatMap(({ stage, own }) =>
        stage.steps.map((step) => ({
          key: step.key,
          stage: keys.stage.get(stage.id)!,
          name: this.#text(step.name, own),
          step_type: step.stepType,
          config: this.#json(step.config as JsonObject, own),
          ...(step.logicalModelId !== null && { model: step.logicalModelId }),
          ...this.#tool(step),
          ...(step.action !== null && { action: step.action }),
        })),
      ),
      ...(main && { endpoint: main }),
      ...(further.length > 0 && { endpoints: further }),
      ...(actions.length > 0 && {
        actions: actions.map((action) => ({
          key: keys.action.get(action.id)!,
          augmentation: keys.augmentation.get(action.augmentationId)!,
          ...this.#labels(action),
          kind: action.kind,
          ...(action.triggerEvent !== null && { trigger_event: action.triggerEvent }),
          ...(action.cron !== null && { cron: action.cron }),
          ...(action.timezone !== null && { timezone: action.timezone }),
          enabled: action.enabled,
          input: this.#json(action.input),
        })),
      }),
    };
  }

  #labels({ name, description }: { name: string; description: string | null }) {
    return { name: this.#text(name), ...(description !== null && { description: this.#free(description) }) };
  }

  #tool({ toolInstanceId: id, toolSlug, name }: Step): { tool?: string; tool_instance?: string } {
    const instance = this.#whole.instances.find((one) => one.id === id);
    if (instance) return { tool: instance.slug, tool_instance: instance.name };
    if (id !== null)
      this.#warnings.add(
        `The step '${name}' used a tool instance that no longer exists. In the recipe, the step has no instance.`,
      );
    return toolSlug === null ? {} : { tool: toolSlug };
  }

  /** @param own the keys of the steps that texts may refer to, which they go on doing */
  #json(value: JsonObject, own?: ReadonlySet<string>): JsonObject {
    return mapTexts(withoutPlainSecrets(value, this.#hider), (text) => this.#text(text, own), { keys: true });
  }

  /** A text that people write, such as a description. */
  #free(text: string): string {
    return this.#text(withoutPlainSecrets(text, this.#hider, 'description'));
  }

  #text(text: string, own?: ReadonlySet<string>): string {
    const plain = withoutReferences(text, (name) => this.#local.has(name) && !isOwnStep(name, own));
    const marked = own
      ? mapStepReferences(plain, (match, key) => (own.has(key) ? match : this.#dangling(match)))
      : plain;
    return marked.replaceAll(ID, (id) => this.#placeholderOf(id));
  }

  #dangling(reference: string): string {
    this.#warnings.add(`${reference} refers to no step of its augmentation. It is kept as text.`);
    return asLiteral(reference);
  }

  #placeholderOf(id: string): string {
    const known = this.#placeholders.get(id);
    if (known !== undefined) return known;
    const kind = kindOfId(id);
    if (kind === null) return id;
    const made = this.#newPlaceholder(kind, id);
    this.#placeholders.set(id, made);
    return made;
  }

  #newPlaceholder(kind: string, id: string): string {
    if (kind === 'secret' && this.#secrets.has(id)) return `{{secret.${this.#secrets.get(id)}}}`;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    // what the recipe makes is the place of the app's own data
    if (kind === 'namespace' && count === 1 && this.#makesNamespace) return '{{namespace}}';
    const placeholder = `{{${kind}.${count}}}`;
    const noun = kind.replaceAll('_', ' ');
    this.#warnings.add(
      `The recipe does not make the ${noun} that the app refers to. ${placeholder} replaces the reference.`,
    );
    return placeholder;
  }
}

/** Local names of parts, by identifier: made from their names, and unique. */
export function keysOf(all: readonly { id: string; name: string }[], word: string): Map<string, string> {
  const keys = uniqueKeys(
    all.map(({ name }) => ({ name })),
    word,
  );
  return new Map(all.map(({ id }, at) => [id, keys[at]!]));
}
