import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { isUnstorable } from '../../kernel/constraints.ts';
import { notFound } from '../../kernel/errors.ts';
import { kindOfId } from '../../kernel/ids.ts';
import type { RecipeDocument } from '../recipes/recipe-document.ts';
import { isAllowed } from '../recipes/recipe-surroundings.ts';

const LATEST = `select v.document from organization_recipes r
  join organization_recipe_versions v on v.organization_recipe_id = r.id and v.number = r.latest_version
  where r.org_id = $1 and`;

const statements = {
  slug: `${LATEST} r.slug = $2`,
  organization_recipe: `${LATEST} r.id = $2`,
  organization_recipe_version:
    'select v.document from organization_recipe_versions v where v.org_id = $1 and v.id = $2',
} as const;

function statementFor(name: string): string {
  const kind = kindOfId(name);
  return kind === 'organization_recipe' || kind === 'organization_recipe_version' ? statements[kind] : statements.slug;
}

/**
 * A recipe of the organization's own: the latest version by the slug or the identifier of the recipe, any by that of
 * the version. What the caller may not read is not found.
 * @throws RESOURCE_NOT_FOUND `recipe`
 */
export async function ownRecipe(
  { sql, access }: { sql: Sql; access: Access },
  caller: Caller,
  orgId: string,
  name: string,
): Promise<RecipeDocument> {
  const mayRead = () => access.requireOrganization(caller, orgId, 'organization_recipe:read');
  if (isUnstorable(name) || !(await isAllowed(mayRead))) throw notFound('recipe', name);
  const [row] = await sql.read<{ document: RecipeDocument }>(statementFor(name), [orgId, name]);
  if (!row) throw notFound('recipe', name);
  return row.document;
}
