import { expect } from 'vitest';
import { operationAt } from '../operations.ts';
import { expectOk } from '../requests.ts';
import { findKey, makeOne } from '../world.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';
import { forced, mappingEffects } from './recipes.cases.ts';

type Json = Record<string, unknown>;

const O = '/v1/orgs/{org_id}';
const W = `${O}/workspaces/{workspace_id}`;
const ENTITIES = `${W}/apps/{app_id}/namespaces/{namespace_id}/entities`;
const token = ({ world }: Lab) => world.accounts.owner.accessToken;

/** Makes one of what a route makes, with the ids of the world. */
const made = ({ app, world }: Lab, path: string): Promise<Json> => makeOne(app, world, operationAt('POST', path));

/** What is stored as the value of a secret. */
async function revealed({ app, world }: Lab, id: unknown): Promise<unknown> {
  const url = `/v1/orgs/${world.ids.org_id}/secrets/${String(id)}?include_value=true`;
  return (await expectOk(app, { url, headers: world.as('owner') })).value;
}

async function newSecret(lab: Lab, more: object = {}): Promise<string> {
  const { org_id: orgId } = lab.world.ids;
  const input = { name: `${lab.world.marker} ${lab.world.next()}`, secretType: 'token', value: { a: 'b' }, ...more };
  const { id } = (await mutateOk(lab.app, 'createSecret', { orgId, input }, token(lab))) as { id: string };
  return id;
}

const actionVariants = () => [
  { 'input.kind': 'scheduled', 'input.cron': '15 7 2 2 *', 'input.timezone': 'Europe/Vienna' },
  {
    'input.kind': 'trigger',
    'input.cron': leftOut,
    'input.timezone': leftOut,
    'input.triggerEvent': 'thread.created',
  },
];

const modelVariants = ({ world }: Lab) => [
  {
    'input.fallbackChain': [world.ids.logical_model_id],
    'input.status': 'deprecated',
    'input.constraints.maxCostPer1kTokens': '0.5',
  },
];

/** A recipe that is nobody else's. */
const ownRecipe = async ({ app, world }: Lab): Promise<Json> => {
  const url = `/v1/orgs/${world.ids.org_id}/recipes/starter-chat`;
  const recipe = await expectOk<Json>(app, { url, headers: world.as('owner') });
  return recipe;
};

const apply = async (lab: Lab, input: object) => {
  const { org_id: orgId, workspace_id: workspaceId } = lab.world.ids;
  return (await mutateOk(lab.app, 'applyRecipe', { orgId, workspaceId, input }, token(lab))) as {
    appId: string | null;
    app: { name: string } | null;
  };
};

const changesEnvironment =
  (input: object) =>
  async (lab: Lab): Promise<void> => {
    const { org_id: orgId, workspace_id: workspaceId } = lab.world.ids;
    const id = findKey(await made(lab, `${W}/environments`), ['environment_id']);
    const answer = await mutateOk(lab.app, 'updateEnvironment', { orgId, workspaceId, id, input }, token(lab));
    expect(answer).toMatchObject({ environment: { id, ...input } });
  };

interface Staged {
  id: string;
  stages: [{ stageId: string; steps: [{ stepId: string; toolSlug: string | null }] }];
}

/** Makes or changes an augmentation of one stage with one step. */
async function staged(lab: Lab, mutation: string, given: object, stage: object = {}, step: object = {}) {
  const { org_id: orgId, workspace_id: workspaceId, app_id: appId } = lab.world.ids;
  const stages = [{ name: 'stage', ...stage, steps: [{ name: 'step', stepType: 'llm', ...step }] }];
  const all = { orgId, workspaceId, appId, ...given, input: { name: 'staged', stages } };
  return (await mutateOk(lab.app, mutation, all, token(lab))) as Staged;
}

/** A step names its tool also without an instance of it. */
const namesTool = (mutation: string) => async (lab: Lab) => {
  const given = mutation === 'updateAugmentation' ? { id: (await staged(lab, 'createAugmentation', {})).id } : {};
  const { stages } = await staged(lab, mutation, given, {}, { toolSlug: 'of-nobody' });
  expect(stages[0].steps[0].toolSlug).toBe('of-nobody');
};

/** What lives in a workspace, and what an organization has for all of them. */
export const resourceCases: Readonly<Record<string, InputCase>> = {
  applyRecipe: {
    variants: () => [{ 'input.recipeId': 'starter-summarizer', 'input.parameters': leftOut, 'input.dryRun': leftOut }],
    readAs: { 'input.name': 'app.name' },
    effects: {
      ...mappingEffects,
      'input.dryRun': async (lab) => {
        expect((await apply(lab, { recipeId: 'starter-chat', dryRun: true })).appId).toBe(null);
        expect((await apply(lab, { recipeId: 'starter-chat', dryRun: false })).appId).not.toBe(null);
      },
      'input.parameters': async (lab) => {
        const title = `${lab.world.marker} ${lab.world.next()}`;
        expect((await apply(lab, { recipeId: 'starter-chat', parameters: { title } })).app?.name).toBe(title);
      },
      'input.recipe': async (lab) => {
        const recipe = await ownRecipe(lab);
        const definition = recipe.definition as { app: Json };
        const name = `${lab.world.marker} ${lab.world.next()}`;
        const own = { ...recipe, id: 'our-own', definition: { ...definition, app: { ...definition.app, name } } };
        expect((await apply(lab, { recipeId: 'our-own', recipe: own })).app?.name).toBe(name);
      },
    },
  },
  createAction: { variants: actionVariants },
  updateAction: {
    variants: actionVariants,
    notCleared: { 'input.triggerEvent': 'an action of the kind `trigger` needs it' },
  },
  deleteToolInstance: {
    effects: {
      force: forced('deleteToolInstance', async (lab) => {
        const id = findKey(await made(lab, `${W}/tool-instances`), ['instance_id']);
        const { org_id: orgId, workspace_id: workspaceId } = lab.world.ids;
        return { given: { orgId, workspaceId, id }, step: { toolInstanceId: id } };
      }),
    },
  },
  deleteNamespace: {
    effects: {
      force: forced('deleteNamespace', async (lab) => {
        const { org_id: orgId, workspace_id: workspaceId } = lab.world.ids;
        const id = findKey(await made(lab, `${W}/namespaces`), ['namespace_id']);
        const tool = { toolId: lab.world.ids.tool_id, name: 'Used', namespaceId: id };
        const instance = await mutateOk(lab.app, 'createToolInstance', { orgId, workspaceId, input: tool }, token(lab));
        return { given: { orgId, workspaceId, id }, step: { toolInstanceId: (instance as Json).id } };
      }),
    },
  },
  deleteLogicalModel: {
    effects: {
      force: forced('deleteLogicalModel', async (lab) => {
        const logicalModelId = findKey(await made(lab, `${O}/model-catalog`), ['logical_model_id']);
        return { given: { orgId: lab.world.ids.org_id, logicalModelId }, step: { logicalModelId } };
      }),
    },
  },
  createAugmentation: {
    effects: {
      'input.stages.steps.toolSlug': namesTool('createAugmentation'),
      'input.stages.stageId': async (lab) => {
        await expect(staged(lab, 'createAugmentation', {}, { stageId: 'stg_nobodys' })).rejects.toThrow('stageId');
      },
      'input.stages.steps.stepId': async (lab) => {
        await expect(staged(lab, 'createAugmentation', {}, {}, { stepId: 'stp_nobodys' })).rejects.toThrow('stepId');
      },
    },
  },
  updateAugmentation: {
    effects: {
      'input.stages.steps.toolSlug': namesTool('updateAugmentation'),
      'input.stages.stageId': async (lab) => {
        const { id, stages } = await staged(lab, 'createAugmentation', {});
        const [{ stageId }] = stages;
        expect((await staged(lab, 'updateAugmentation', { id }, { stageId })).stages[0].stageId).toBe(stageId);
        expect((await staged(lab, 'updateAugmentation', { id })).stages[0].stageId).not.toBe(stageId);
      },
      'input.stages.steps.stepId': async (lab) => {
        const { id, stages } = await staged(lab, 'createAugmentation', {});
        const [{ stageId, steps }] = stages;
        const [{ stepId }] = steps;
        const kept = await staged(lab, 'updateAugmentation', { id }, { stageId }, { stepId });
        expect(kept.stages[0].steps[0].stepId).toBe(stepId);
        const anew = await staged(lab, 'updateAugmentation', { id }, { stageId });
        expect(anew.stages[0].steps[0].stepId).not.toBe(stepId);
      },
    },
  },
  updateWorkspace: {
    effects: {
      'input.embeddingModelId': async (lab) => {
        const { org_id: orgId, workspace_id: id } = lab.world.ids;
        const embeds = async (embeddingModelId: string | null) =>
          mutateOk(lab.app, 'updateWorkspace', { orgId, id, input: { embeddingModelId } }, token(lab));
        const given = { orgId, input: { logicalModelId: 'embeds', name: 'Embeds', modelType: 'embedding' } };
        await mutateOk(lab.app, 'createLogicalModel', given, token(lab));
        expect(await embeds('embeds')).toMatchObject({ embeddingModelId: 'embeds' });
        expect(await embeds(null)).toMatchObject({ embeddingModelId: null });
      },
    },
  },
  createEnvironment: { variants: () => [{ 'input.isDefault': true }] },
  updateEnvironment: {
    // the default environment cannot be archived, and an archived one not be changed
    variants: () => [{ 'input.status': leftOut, 'input.isDefault': leftOut }],
    effects: {
      'input.status': changesEnvironment({ status: 'archived' }),
      'input.isDefault': changesEnvironment({ isDefault: true }),
    },
  },
  createLogicalModel: {
    variants: (lab) => modelVariants(lab).map((variant) => ({ ...variant, 'input.status': leftOut })),
  },
  updateLogicalModel: { variants: modelVariants },
  createModelEntitlement: {
    prepare: async (lab) => ({
      given: { input: { logicalModelId: (await made(lab, `${O}/model-catalog`)).logical_model_id } },
    }),
  },
  createSecret: {
    variants: ({ world }) => [
      {},
      { 'input.namespaceId': world.ids.namespace_id },
      { 'input.environmentId': world.ids.environment_id },
    ],
    effects: {
      'input.value': async (lab) => {
        const value = { [lab.world.marker]: lab.world.next() };
        expect(await revealed(lab, await newSecret(lab, { value }))).toEqual(value);
      },
    },
  },
  deleteSecret: {
    effects: {
      permanent: async (lab) => {
        const { org_id: orgId } = lab.world.ids;
        for (const permanent of [false, true]) {
          const id = await newSecret(lab);
          await mutateOk(lab.app, 'deleteSecret', { orgId, id, permanent }, token(lab));
          const restored = mutateOk(lab.app, 'restoreSecret', { orgId, id }, token(lab));
          if (permanent) await expect(restored).rejects.toThrow('RESOURCE_NOT_FOUND');
          else expect(await restored).toMatchObject({ id });
        }
      },
    },
  },
  deployRelease: {
    prepare: async (lab) => ({
      given: { input: { releaseId: (await made(lab, `${W}/apps/{app_id}/releases`)).release_id } },
    }),
    demands: { 'input.appId': 'app_nobodys' },
  },
  promoteRelease: {
    prepare: async (lab) => {
      const { ids } = lab.world;
      const { release_id } = await made(lab, `${W}/apps/{app_id}/releases`);
      const input = { appId: ids.app_id, releaseId: release_id };
      const from = { orgId: ids.org_id, workspaceId: ids.workspace_id, environmentId: ids.from_environment_id };
      await mutateOk(lab.app, 'deployRelease', { ...from, input }, token(lab));
      return {};
    },
    demands: { 'input.appId': 'app_nobodys', 'input.fromEnvironmentId': 'env_nobodys' },
  },
  // the answer names entities, and `entities/import.test.ts` reads every field of them and of relations
  importEntities: {
    without: Object.fromEntries(
      [
        ...['key', 'id', 'name', 'entityType', 'description', 'aliases', 'tags', 'importance', 'metadata'].map(
          (name) => `entities.${name}`,
        ),
        ...['source', 'target'].flatMap((end) =>
          ['key', 'id', 'name', 'entityType'].map((name) => `relations.${end}.${name}`),
        ),
        ...['relationType', 'weight', 'metadata', 'validFrom', 'validTo'].map((name) => `relations.${name}`),
      ].map((path) => [`input.${path}`, 'The answer names the entities; the test of imports reads them.']),
    ),
  },
  mergeEntities: {
    effects: {
      'input.mergedEntityIds': async (lab) => {
        const { ids } = lab.world;
        const { entity_id: merged } = await made(lab, ENTITIES);
        const place = { orgId: ids.org_id, workspaceId: ids.workspace_id, appId: ids.app_id };
        const given = {
          ...place,
          namespaceId: ids.namespace_id,
          id: ids.entity_id,
          input: { mergedEntityIds: [merged] },
        };
        await mutateOk(lab.app, 'mergeEntities', given, token(lab));
        const { rows } = await lab.app.database.pool.query('select entity_id from entity_merges where id = $1', [
          merged,
        ]);
        expect(rows).toEqual([{ entity_id: ids.entity_id }]);
      },
    },
  },
  relateEntities: {
    prepare: async (lab) => {
      const [source, target] = [await made(lab, ENTITIES), await made(lab, ENTITIES)];
      return { given: { input: { sourceEntityId: source.entity_id, targetEntityId: target.entity_id } } };
    },
    effects: {
      'input.sourceEntityId': async (lab) => {
        const { ids } = lab.world;
        const [source, target] = [await made(lab, ENTITIES), await made(lab, ENTITIES)];
        const input = { sourceEntityId: source.entity_id, targetEntityId: target.entity_id, relationType: 'knows' };
        const place = { orgId: ids.org_id, workspaceId: ids.workspace_id, appId: ids.app_id };
        const given = { ...place, namespaceId: ids.namespace_id, input };
        await mutateOk(lab.app, 'relateEntities', given, token(lab));
        const { rows } = await lab.app.database.pool.query(
          'select target_entity_id from entity_relations where source_entity_id = $1',
          [source.entity_id],
        );
        expect(rows).toEqual([{ target_entity_id: target.entity_id }]);
      },
    },
  },
  restoreSecret: {
    prepare: async (lab) => {
      const id = await newSecret(lab);
      const given = { orgId: lab.world.ids.org_id, id, permanent: false };
      await mutateOk(lab.app, 'deleteSecret', given, token(lab));
      return { given: { id } };
    },
  },
  rotateSecret: {
    prepare: async (lab) => ({ given: { id: await newSecret(lab) } }),
    demands: { 'input.expectedVersion': 999_999_999 },
    variants: () => [{ 'input.expectedVersion': leftOut }],
    effects: {
      'input.value': async (lab) => {
        const value = { [lab.world.marker]: lab.world.next() };
        const id = await newSecret(lab);
        await mutateOk(lab.app, 'rotateSecret', { orgId: lab.world.ids.org_id, id, input: { value } }, token(lab));
        expect(await revealed(lab, id)).toEqual(value);
      },
    },
  },
  toggleToolInstance: { variants: () => [{ isActive: false }] },
};
