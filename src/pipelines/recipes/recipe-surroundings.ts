import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { isRefusal } from '../../kernel/errors.ts';
import { modelsOf } from '../../models/views.ts';
import { servingInstance, visibleTools } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import type { RecipeDefinition, RecipeStep } from './recipe-document.ts';
import { type Users, type Uses, usesOf } from './recipe-uses.ts';

/** A definition with what the workspace has, and the tool instance of each step that was given one. */
export interface MappedDefinition {
  definition: RecipeDefinition;
  instances: ReadonlyMap<RecipeStep, string>;
}

/** What a workspace has of what a recipe uses. */
export interface Surroundings {
  /** The tool instance that a step uses; `null` for none. */
  instanceOf: (step: RecipeStep) => string | null;
  /** What is missing: tools, models, secrets. */
  missing: MissingPart[];
}

/** Kinds of what an app may lack. */
export const missingKinds = ['tool', 'tool_instance', 'model', 'embedding_model', 'secret', 'credential'] as const;

/** Something that a recipe uses and the workspace does not have, as far as the caller may see. */
export interface MissingPart {
  kind: (typeof missingKinds)[number];
  /** The slug of the tool, the identifier of the model, the name of the secret; `null` for any embedding model. */
  name: string | null;
  /** The local names of the parts that use it, such as `step.AUGMENTATION.KEY`. */
  usedBy: readonly string[];
}

const nouns: Readonly<Record<MissingPart['kind'], string>> = {
  tool: 'the tool',
  tool_instance: 'an instance of the tool',
  model: 'the model',
  embedding_model: 'an embedding model',
  secret: 'the secret',
  credential: 'the credential',
};

/** What is missing, in words: `the tool 'slack'`. */
export const wordsOf = ({ kind, name }: MissingPart): string =>
  name === null ? nouns[kind] : `${nouns[kind]} '${name}'`;

interface FoundParts {
  models: string[];
  instances: { slug: string; name: string | null; id: string }[];
  tools: string[];
  secrets: string[];
  hasEmbedding: boolean;
}

const FIND = `select
  array(select m.id from (${modelsOf('$1')}) m where m.id = any($3::text[])) as models,
  (select coalesce(json_agg(json_build_object('slug', w.slug, 'name', w.name, 'id', i.id)), '[]')
    from unnest($4::text[], $5::text[]) w(slug, name)
    cross join lateral (${servingInstance('$1', '$2', 'w.slug', 'w.name')}) i) as instances,
  array(select distinct t.slug from (${visibleTools('$1')}) t where t.slug = any($9::text[])) as tools,
  array(select distinct s.name from (${nameableSecrets('$1', '$2', '$7', '$8')}) s
    where s.name = any($6::text[]) and s.status = 'active') as secrets,
  exists (select 1 from (${modelsOf('$1')}) m where m.model_type = 'embedding' and m.enabled) as "hasEmbedding"`;

const keyOf = (slug: string, name: string | null | undefined) => JSON.stringify([slug, name ?? null]);

/** Whether a check passes. */
export async function isAllowed(check: () => unknown): Promise<boolean> {
  try {
    await check();
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

/** Finds what a definition uses. What the caller may not read counts as missing. */
export function surroundingsOf(
  deps: { sql: Sql; access: Access },
  caller: Caller,
  place: WorkspacePlace,
  { definition, instances }: MappedDefinition,
  needsEmbedding: boolean,
): Promise<Surroundings> {
  const { steps } = definition;
  return findUsed(deps, caller, place, { uses: usesOf(definition), steps, instances, needsEmbedding });
}

/** What is looked for in a workspace. */
export interface WantedParts {
  uses: Uses;
  /** The steps that use tools. */
  steps: readonly RecipeStep[];
  /** The tool instances of steps that have theirs already. */
  instances: ReadonlyMap<RecipeStep, string>;
  needsEmbedding: boolean;
}

/** Finds what one or several definitions use. What the caller may not read counts as missing. */
export async function findUsed(
  { sql, access }: { sql: Sql; access: Access },
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  { uses: wanted, steps, instances: mapped, needsEmbedding }: WantedParts,
): Promise<Surroundings> {
  const pairs = new Map(
    steps.flatMap(({ tool, tool_instance }) =>
      tool ? [[keyOf(tool, tool_instance), { slug: tool, name: tool_instance ?? null }]] : [],
    ),
  );
  const [models, instances, sharedSecrets, secrets] = await Promise.all([
    isAllowed(() => access.requireOrganization(caller, orgId, 'model:read')),
    isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'tool_instance:read')),
    isAllowed(() => access.requireOrganization(caller, orgId, 'secret:read')),
    isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'secret:read')),
  ]);
  const asked = instances ? [...pairs.values()] : [];
  const [found] = await sql.read<FoundParts>(FIND, [
    orgId,
    workspaceId,
    models ? [...wanted.models.keys()] : [],
    asked.map(({ slug }) => slug),
    asked.map(({ name }) => name),
    [...wanted.secrets.keys()],
    sharedSecrets,
    secrets,
    [...wanted.tools.keys()],
  ]);
  const ids = new Map(found!.instances.map(({ slug, name, id }) => [keyOf(slug, name), id]));
  const without = (users: Users, has: Iterable<string>, kind: MissingPart['kind']): MissingPart[] => {
    const known = new Set(has);
    const names = [...users.keys()].filter((name) => !known.has(name)).sort();
    return names.map((name) => ({ kind, name, usedBy: users.get(name)! }));
  };
  const inCatalogue = new Set(found!.tools);
  const tools = without(
    wanted.tools,
    found!.instances.map(({ slug }) => slug),
    'tool_instance',
  ).map((part): MissingPart => (inCatalogue.has(part.name!) ? part : { ...part, kind: 'tool' }));
  return {
    instanceOf: (step) => {
      const { tool, tool_instance } = step;
      return mapped.get(step) ?? (tool ? (ids.get(keyOf(tool, tool_instance)) ?? null) : null);
    },
    missing: [
      ...tools,
      ...without(wanted.models, found!.models, 'model'),
      ...(needsEmbedding && !(models && found!.hasEmbedding)
        ? [{ kind: 'embedding_model' as const, name: null, usedBy: [] }]
        : []),
      ...without(wanted.secrets, found!.secrets, 'secret'),
    ],
  };
}
