import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Actor } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { isRefusal } from '../../kernel/errors.ts';
import { modelsOf } from '../../models/views.ts';
import { servingInstance } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import type { RecipeDefinition, RecipeStep } from './recipe-document.ts';
import { requirementsOf } from './recipe-requirements.ts';

/** What a workspace has of what a recipe uses. */
export interface Surroundings {
  /** The tool instance that a step uses; `null` for none. */
  instanceOf(step: RecipeStep): string | null;
  /** What is missing, in words: `the tool 'slack'`. */
  missing: string[];
}

interface FoundParts {
  models: string[];
  instances: { slug: string; name: string | null; id: string }[];
  secrets: string[];
  hasEmbedding: boolean;
}

const FIND = `select
  array(select m.id from (${modelsOf('$1')}) m where m.id = any($3::text[])) as models,
  (select coalesce(json_agg(json_build_object('slug', w.slug, 'name', w.name, 'id', i.id)), '[]')
    from unnest($4::text[], $5::text[]) w(slug, name)
    cross join lateral (${servingInstance('$1', '$2', 'w.slug', 'w.name')}) i) as instances,
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
export async function surroundingsOf(
  { sql, access }: { sql: Sql; access: Access },
  actor: Actor,
  { orgId, workspaceId }: WorkspacePlace,
  definition: RecipeDefinition,
  needsEmbedding: boolean,
): Promise<Surroundings> {
  const wanted = requirementsOf(definition);
  const pairs = new Map(
    definition.steps.flatMap(({ tool, tool_instance }) =>
      tool ? [[keyOf(tool, tool_instance), { slug: tool, name: tool_instance ?? null }]] : [],
    ),
  );
  const [models, instances, sharedSecrets, secrets] = await Promise.all([
    isAllowed(() => access.requireOrganization(actor, orgId, 'model:read')),
    isAllowed(() => access.requireWorkspace(actor, orgId, workspaceId, 'tool_instance:read')),
    isAllowed(() => access.requireOrganization(actor, orgId, 'secret:read')),
    isAllowed(() => access.requireWorkspace(actor, orgId, workspaceId, 'secret:read')),
  ]);
  const tools = instances ? [...pairs.values()] : [];
  const [found] = await sql.read<FoundParts>(FIND, [
    orgId,
    workspaceId,
    models ? wanted.models : [],
    tools.map(({ slug }) => slug),
    tools.map(({ name }) => name),
    wanted.secrets,
    sharedSecrets,
    secrets,
  ]);
  const ids = new Map(found!.instances.map(({ slug, name, id }) => [keyOf(slug, name), id]));
  const hasTools = new Set(found!.instances.map(({ slug }) => slug));
  const without = (names: readonly string[], has: Iterable<string>, word: string) => {
    const known = new Set(has);
    return names.filter((name) => !known.has(name)).map((name) => `the ${word} '${name}'`);
  };
  return {
    instanceOf: ({ tool, tool_instance }) => (tool ? (ids.get(keyOf(tool, tool_instance)) ?? null) : null),
    missing: [
      ...without(wanted.tools, hasTools, 'tool'),
      ...without(wanted.models, found!.models, 'model'),
      ...(needsEmbedding && !(models && found!.hasEmbedding) ? ['an embedding model'] : []),
      ...without(wanted.secrets, found!.secrets, 'secret'),
    ],
  };
}
