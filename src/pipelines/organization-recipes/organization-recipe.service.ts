import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { loaderOf, Reads } from '../../data/reads.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { RequestCache } from '../../data/request-cache.ts';
import type { NewRow } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import {
  type OrganizationRecipe,
  Prisma,
  type OrganizationRecipeVersion as VersionRow,
} from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { RecipeService } from '../recipes/recipe.service.ts';
import { limits } from '../recipes/recipe.words.ts';
import type { RecipeDocument, RecipeRequirements } from '../recipes/recipe-document.ts';
import { ownLimits } from './organization-recipe.words.ts';
import { bytesOf, checkDocument, requirementsIn, storedDocument } from './stored-document.ts';

/** A version as lists show it: without its document. */
export type OrganizationRecipeVersion = Omit<VersionRow, 'document'>;

/** The place of the versions of a recipe. */
export type RecipePlace = OrganizationPlace & { organizationRecipeId: string };

/** A version that was read with its document. */
export interface RecipeContent {
  recipe: RecipeDocument;
  requirements: RecipeRequirements;
}

/** What of an app's export is said otherwise. */
export interface RecipeOfApp {
  slug?: string | null;
  name?: string | null;
  description?: string | null;
  category?: string | null;
  icon?: string | null;
  tags?: string[] | null;
}

/** A recipe that was made of an app, and what of the app could not be kept. */
export interface RecipeMadeOfApp {
  organizationRecipe: OrganizationRecipe;
  warnings: string[];
}

interface OwnRecipeDeps extends ServiceDeps {
  recipes: Pick<RecipeService, 'list' | 'export'>;
}

const organizationRecipes = {
  kind: 'organization_recipe',
  from: 'organization_recipes',
  columns: columnsOf(Object.values(Prisma.OrganizationRecipeScalarFieldEnum)),
  below: ['orgId'],
} as const;

const versions = {
  kind: 'organization_recipe_version',
  from: 'organization_recipe_versions',
  columns: columnsOf(words('id orgId organizationRecipeId number sizeBytes createdBy createdAt')),
  below: ['orgId', 'organizationRecipeId'],
} as const;

const DOCUMENTS = `select v.document
  from unnest($1::text[], $2::text[], $3::int[]) with ordinality k(org, recipe, number, at)
  left join organization_recipe_versions v
    on v.org_id = k.org and v.organization_recipe_id = k.recipe and v.number = k.number
  order by k.at`;

/** Recipes of an organization's own, in versions. A change is the next version; those before stay as they are. */
export class OrganizationRecipeService {
  readonly reads: Reads<OrganizationRecipe, OrganizationPlace>;
  readonly versions: Reads<OrganizationRecipeVersion, RecipePlace>;
  readonly #deps: OwnRecipeDeps;

  constructor(deps: OwnRecipeDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, organizationRecipes);
    this.versions = new Reads(deps, versions);
  }

  /** The document of a version. @throws RESOURCE_NOT_FOUND `organization_recipe` if it was deleted meanwhile */
  async content(context: RequestCache, recipe: RecipePlace & { number: number }): Promise<RecipeContent> {
    const { orgId, organizationRecipeId, number } = recipe;
    const found = await loaderOf<RecipeDocument | null>(context, 'documents of recipes', async (keys) => {
      const columns = [0, 1, 2].map((at) => keys.map((key) => key[at]));
      const rows = await this.#deps.sql.read<{ document: RecipeDocument | null }>(DOCUMENTS, columns);
      return rows.map(({ document }) => document);
    }).load([orgId, organizationRecipeId, String(number)]);
    if (!found) throw notFound('organization_recipe', organizationRecipeId);
    const requirements = requirementsIn(found);
    return { recipe: found, requirements };
  }

  /**
   * @throws InputError for a document that could not be applied; RESOURCE_ALREADY_EXISTS for a slug that is taken, also
   * by a recipe of the catalogue; RESOURCE_CONFLICT `limit_reached`
   */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    input: { recipe: Record<string, unknown> },
  ): Promise<OrganizationRecipe> {
    const document = storedDocument(input.recipe);
    checkDocument(document);
    return this.#create(caller, place, document);
  }

  /**
   * Stores the export of an app. @throws FORBIDDEN for callers who may not export it or may not create recipes;
   * RESOURCE_CONFLICT `too_large`; like {@link create}
   */
  async createOfApp(caller: Caller, place: Checked<AppPlace>, input: RecipeOfApp): Promise<RecipeMadeOfApp> {
    const { orgId, appId } = place;
    await this.#deps.access.requireOrganization(caller, orgId, 'organization_recipe:create');
    const { recipe, warnings } = await this.#deps.recipes.export(caller, place);
    const { slug, ...given } = input;
    const said = Object.entries({ ...given, id: slug }).filter(([, value]) => (value ?? null) !== null);
    const document = storedDocument({ ...recipe, ...Object.fromEntries(said) });
    if (bytesOf(document) > limits.bytes)
      throw conflict(
        'app',
        appId,
        'too_large',
        `A recipe has at most ${limits.bytes} bytes. The recipe of this app would have more.`,
      );
    return { organizationRecipe: await this.#create(caller, { orgId }, document, place), warnings };
  }

  /**
   * Stores the next version; its `id` may be another one. Without a document nothing changes.
   * @throws RESOURCE_NOT_FOUND; InputError, RESOURCE_ALREADY_EXISTS and RESOURCE_CONFLICT like {@link create}
   */
  async update(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    id: string,
    input: { recipe?: Record<string, unknown> | null },
  ): Promise<OrganizationRecipe> {
    const document = input.recipe ? storedDocument(input.recipe) : null;
    if (document) checkDocument(document);
    const absent = () => notFound('organization_recipe', id);
    return this.#deps.changes.run(caller, async (tx) => {
      if (document) await lockRecipes(tx, orgId);
      const before = await tx.lock('organization_recipes', { id, orgId }, 'no key update', absent);
      await tx.expectVersion({ table: 'organization_recipes', key: { id } });
      const version = document ? await this.#nextVersion(tx, caller, before, document) : null;
      const metadata = { fields: Object.keys(input), ...(version && { version: version.latestVersion }) };
      recordChange(tx, 'update', 'organization_recipe', { id, orgId }, metadata);
      return tx.change('organization_recipes', { id, orgId }, version ?? {}, absent);
    });
  }

  /** Deletes a recipe with all its versions. Apps that were made of it stay. @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return deleteRow(this.#deps, caller, organizationRecipes, { id, ...place });
  }

  /** @param app that it was made of */
  async #create(
    caller: Caller,
    { orgId }: OrganizationPlace,
    document: RecipeDocument,
    app?: AppPlace,
  ): Promise<OrganizationRecipe> {
    const row = { id: newId('organization_recipe'), orgId };
    const { id: slug } = document;
    return this.#deps.changes.run(caller, async (tx) => {
      await lockRecipes(tx, orgId);
      const room = await roomOf(tx, orgId, slug);
      this.#demandFree(slug, room);
      refuseFull(orgId, room, { recipes: 1, bytes: bytesOf(document) });
      // made of an app, it is recorded where the app is; it belongs to the organization all the same
      const resource = { resourceType: 'organization_recipe', resourceId: row.id } as const;
      tx.audit({ action: 'create', ...resource, orgId, ...app, metadata: { slug } });
      emitChange(tx, 'created', 'organization_recipe', row);
      const createdBy = caller.principal.userId;
      const created = tx.create('organization_recipes', { ...row, ...shownOf(document), createdBy });
      tx.insert('organization_recipe_versions', newVersion(caller, row, 1, document));
      return created;
    });
  }

  /** Adds a version to a locked recipe. @returns what its row shows of it */
  async #nextVersion(tx: Tx, caller: Caller, before: OrganizationRecipe, document: RecipeDocument) {
    const { id, orgId, slug } = before;
    const number = before.latestVersion + 1;
    tx.write(statement`delete from organization_recipe_versions
      where organization_recipe_id = ${id} and number <= ${number - ownLimits.versions}::int`);
    const room = await roomOf(tx, orgId, document.id);
    if (document.id !== slug) this.#demandFree(document.id, room);
    refuseFull(orgId, room, { recipes: 0, bytes: bytesOf(document) });
    tx.insert('organization_recipe_versions', newVersion(caller, before, number, document));
    return { ...shownOf(document), latestVersion: number };
  }

  /** @throws RESOURCE_ALREADY_EXISTS */
  #demandFree(slug: string, { sameSlug }: Room): void {
    const isBuiltIn = this.#deps.recipes.list().recipes.some(({ id }) => id === slug);
    if (isBuiltIn || sameSlug) throw alreadyExists('organization_recipe', 'slug', slug, sameSlug);
  }
}

/** What the row of a recipe shows of its latest document. */
const shownOf = ({ id, name, description, category, icon, tags, needs_embedding }: RecipeDocument) => ({
  slug: id,
  name,
  description,
  category,
  icon,
  tags,
  needsEmbedding: needs_embedding,
});

const newVersion = (
  caller: Caller,
  { id, orgId }: OrganizationPlace & { id: string },
  number: number,
  document: RecipeDocument,
): NewRow<'organization_recipe_versions'> => ({
  id: newId('organization_recipe_version'),
  orgId,
  organizationRecipeId: id,
  number,
  document: document as unknown as NewRow<'organization_recipe_versions'>['document'],
  sizeBytes: bytesOf(document),
  createdBy: caller.principal.userId,
});

/** Recipes of one organization grow one after the other: slugs and limits are looked up. */
async function lockRecipes(tx: Tx, orgId: string): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`recipes of ${orgId}`}, 0))`);
}

interface Room {
  recipes: number;
  bytes: number;
  /** The recipe that has the slug. */
  sameSlug: string | null;
}

/** What an organization stores. A separate statement: it sees what was committed while the lock was awaited. */
async function roomOf(tx: Tx, orgId: string, slug: string): Promise<Room> {
  const [room] = await tx.query<Room>(statement`select
    (select count(*)::int from organization_recipes r where r.org_id = ${orgId}) as recipes,
    (select coalesce(sum(v.size_bytes), 0)::float8 from organization_recipe_versions v where v.org_id = ${orgId})
      as bytes,
    (select r.id from organization_recipes r where r.org_id = ${orgId} and r.slug = ${slug}) as "sameSlug"`);
  return room!;
}

/** @throws RESOURCE_CONFLICT `limit_reached` */
function refuseFull(orgId: string, { recipes, bytes }: Room, more: Pick<Room, 'recipes' | 'bytes'>): void {
  const full = (message: string, limit: number) => conflict('organization', orgId, 'limit_reached', message, { limit });
  if (recipes + more.recipes > ownLimits.recipes)
    throw full(`An organization has at most ${ownLimits.recipes} recipes: delete some first.`, ownLimits.recipes);
  if (bytes + more.bytes > ownLimits.bytes)
    throw full(
      `The recipes of an organization have at most ${ownLimits.bytes} bytes in all versions: delete some first.`,
      ownLimits.bytes,
    );
}
