import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { modelsOf } from '../../models/views.ts';
import { instancesByTool } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import type { RecipeDefinition, RecipeStep } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';
import { isAllowed, type MappedDefinition } from './recipe-surroundings.ts';
import { SECRET, usesOf } from './recipe-uses.ts';

/** What stands for what a recipe names: what the workspace has in place of it, by the name in the recipe. */
export interface RecipeMapping {
  /** A tool instance, by the slug of the tool, or by `SLUG/NAME` of an instance that the recipe names. */
  tools?: Record<string, unknown> | null;
  /** A logical model, by that of the recipe. */
  models?: Record<string, unknown> | null;
  /** The name or the identifier of a secret, by the name of the placeholder. */
  secrets?: Record<string, unknown> | null;
}

type NameMap = ReadonlyMap<string, string>;

interface Targets {
  instances: Record<string, string>;
  models: string[];
  secrets: { id: string; name: string }[];
}

const TARGETS = `select
  (select coalesce(json_object_agg(i.id, i.slug), '{}') from (${instancesByTool('$1', '$2')}) i
    where i.id = any($3::text[])) as instances,
  array(select m.id from (${modelsOf('$1')}) m where m.id = any($4::text[])) as models,
  (select coalesce(json_agg(json_build_object('id', s.id, 'name', s.name)), '[]')
    from (${nameableSecrets('$1', '$2', '$6', '$7')}) s
    where s.status = 'active' and (s.id = any($5::text[]) or s.name = any($5::text[]))) as secrets`;

/** The texts of a map; their form was checked with the input. */
export const mappedTexts = (map: Record<string, unknown> | null | undefined): NameMap =>
  new Map(Object.entries(map ?? {}) as [string, string][]);

/** The names by which a mapping may call the tool of a step: the more exact one first. */
export const toolNames = ({ tool, tool_instance }: Pick<RecipeStep, 'tool' | 'tool_instance'>): string[] => {
  if (!tool) return [];
  return tool_instance ? [`${tool}/${tool_instance}`, tool] : [tool];
};

/** What a mapping may be about: what is named, and may be replaced. */
export interface Replaceable {
  /** Names of tools: see {@link toolNames}. */
  tools: { has(name: string): boolean };
  models: { has(name: string): boolean };
  secrets: { has(name: string): boolean };
}

/** What takes the place of what, once it is known to be there. */
export interface CheckedMapping {
  /** The tool instance in place of what a step uses, with the slug of its tool. */
  instanceOf(step: Pick<RecipeStep, 'tool' | 'tool_instance'>): { id: string; slug: string } | null;
  model(name: string): string;
  /** A value with other names in `{{secret.NAME}}`. */
  withSecrets<Value>(value: Value): Value;
}

const NOTHING: CheckedMapping = { instanceOf: () => null, model: (name) => name, withSecrets: (value) => value };

/**
 * Looks up what a mapping names.
 * @param what is mapped, in words: `the recipe`
 * @throws InputError at each name that is not used, and at each target that the caller does not see in the workspace
 */
export async function checkMapping(
  deps: { sql: Sql; access: Access },
  caller: Caller,
  place: WorkspacePlace,
  mapping: RecipeMapping,
  uses: Replaceable,
  what = 'the recipe',
): Promise<CheckedMapping> {
  const [tools, models, secrets] = [
    mappedTexts(mapping.tools),
    mappedTexts(mapping.models),
    mappedTexts(mapping.secrets),
  ];
  if (tools.size + models.size + secrets.size === 0) return NOTHING;
  const found = await targetsOf(deps, caller, place, [tools, models, secrets]);
  const secretNames = new Map(found.secrets.flatMap(({ id, name }) => [[id, name] as const, [name, name] as const]));
  const issues = [
    ...issuesOf('tools', tools, uses.tools, {
      has: (id) => Object.hasOwn(found.instances, id),
      unused: `${what} uses no tool`,
      target: (id) => `there is no tool instance '${id}' in the workspace`,
    }),
    ...issuesOf('models', models, uses.models, {
      has: (id) => found.models.includes(id),
      unused: `${what} uses no model`,
      target: (id) => `there is no model '${id}' in the organization`,
    }),
    ...issuesOf('secrets', secrets, uses.secrets, {
      has: (id) => secretNames.has(id),
      unused: `${what} uses no secret`,
      target: (id) => `there is no secret '${id}' that apps of the workspace can name`,
    }),
  ];
  if (issues.length > 0) throw new InputError(issues);
  const names = new Map([...secrets].map(([name, id]) => [name, secretNames.get(id)!]));
  return {
    instanceOf: (step) => {
      const chosen = toolNames(step).find((name) => tools.has(name));
      if (chosen === undefined) return null;
      const id = tools.get(chosen)!;
      return { id, slug: found.instances[id]! };
    },
    model: (name) => models.get(name) ?? name,
    withSecrets: (value) => (names.size === 0 ? value : withSecrets(value, names)),
  };
}

/**
 * Puts what the workspace has in place of what a recipe names.
 * @throws InputError: see {@link checkMapping}
 */
export async function mapDefinition(
  deps: { sql: Sql; access: Access },
  caller: Caller,
  place: WorkspacePlace,
  definition: RecipeDefinition,
  mapping: RecipeMapping,
): Promise<MappedDefinition> {
  const tools = new Set(definition.steps.flatMap(toolNames));
  const checked = await checkMapping(deps, caller, place, mapping, { ...usesOf(definition), tools });
  return withMapping(definition, checked);
}

/** A definition with what takes the place of what it names. */
export function withMapping(definition: RecipeDefinition, mapping: CheckedMapping): MappedDefinition {
  const named = mapping.withSecrets(definition);
  const instances = new Map<RecipeStep, string>();
  const steps = named.steps.map((step) => {
    const instance = mapping.instanceOf(step);
    const mapped = {
      ...step,
      ...(instance !== null && { tool: instance.slug, tool_instance: null }),
      ...(step.model && { model: mapping.model(step.model) }),
    };
    if (instance !== null) instances.set(mapped, instance.id);
    return mapped;
  });
  return { definition: { ...named, steps }, instances };
}

async function targetsOf(
  { sql, access }: { sql: Sql; access: Access },
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  [tools, models, secrets]: readonly [NameMap, NameMap, NameMap],
): Promise<Targets> {
  const [mayInstances, mayModels, mayShared, mayOwn] = await Promise.all([
    isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'tool_instance:read')),
    isAllowed(() => access.requireOrganization(caller, orgId, 'model:read')),
    isAllowed(() => access.requireOrganization(caller, orgId, 'secret:read')),
    isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'secret:read')),
  ]);
  const [found] = await sql.read<Targets>(TARGETS, [
    orgId,
    workspaceId,
    mayInstances ? [...tools.values()] : [],
    mayModels ? [...models.values()] : [],
    [...secrets.values()],
    mayShared,
    mayOwn,
  ]);
  return found!;
}

/** What is wrong with one map: names that nothing uses, and targets that are not there. */
function issuesOf(
  field: keyof RecipeMapping,
  map: NameMap,
  used: { has(name: string): boolean },
  { has, unused, target }: { has: (id: string) => boolean; unused: string; target: (id: string) => string },
): InputIssue[] {
  return [...map].flatMap(([name, id]) => {
    const path = ['input', field, name];
    if (!used.has(name)) return [valueIssue(path, `${unused} '${name}'`)];
    return has(id) ? [] : [valueIssue(path, target(id))];
  });
}

/** A value with other names in `{{secret.NAME}}`. */
export const withSecrets = <Value>(value: Value, names: NameMap): Value =>
  mapTexts(value, (text) =>
    text.replaceAll(SECRET, (match, name: string) => (names.has(name) ? `{{secret.${names.get(name)!}}}` : match)),
  );
