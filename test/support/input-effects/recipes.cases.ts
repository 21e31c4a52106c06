import { expect } from 'vitest';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';

type Json = Record<string, unknown>;

const token = ({ world }: Lab) => world.accounts.owner.accessToken;
const place = ({ world: { ids } }: Lab) => ({ orgId: ids.org_id, workspaceId: ids.workspace_id, appId: ids.app_id });

/** Applies a recipe of one step, which names a tool, a model and a secret of its own. */
async function missingAfter(lab: Lab, mapping: Json): Promise<string[]> {
  const step = { key: 'ask', stage: 'say', name: 'Ask', step_type: 'llm', tool: 'theirs', model: 'theirs' };
  const recipe = {
    id: 'own',
    name: 'Own',
    description: '',
    category: 'starter',
    icon: 'app',
    tags: [],
    needs_embedding: false,
    version: '1',
    parameters: [],
    definition: {
      app: { name: 'Own', metadata: { auth: '{{secret.theirs}}' } },
      namespace: { name: 'Own' },
      augmentations: [{ key: 'answer', name: 'Answer' }],
      stages: [{ key: 'say', augmentation: 'answer', name: 'Say' }],
      steps: [step],
    },
  };
  const { orgId, workspaceId } = place(lab);
  const input = { recipeId: 'own', recipe, dryRun: true, ...mapping };
  const { message } = (await mutateOk(lab.app, 'applyRecipe', { orgId, workspaceId, input }, token(lab))) as {
    message: string;
  };
  return [...message.matchAll(/the (tool|model|secret) 'theirs'/g)].map(([, kind]) => kind!);
}

/** Makes an augmentation whose step lacks all, gives it something, and answers the step. */
async function stepAfter(lab: Lab, mapping: (name: string) => Json, more: Json = {}): Promise<Json> {
  const name = `theirs-${lab.world.next()}`;
  const steps = [{ name: 'Ask', stepType: 'llm', toolSlug: name, logicalModelId: name, ...more }];
  const input = { name: 'Lacks', stages: [{ name: 'Say', steps }] };
  const { id } = (await mutateOk(lab.app, 'createAugmentation', { ...place(lab), input }, token(lab))) as Json;
  await mutateOk(lab.app, 'mapMissingParts', { ...place(lab), input: mapping(name) }, token(lab));
  const kept = { ...place(lab), id, input: { description: 'mapped' } };
  const { stages } = (await mutateOk(lab.app, 'updateAugmentation', kept, token(lab))) as {
    stages: { steps: Json[] }[];
  };
  return stages[0]!.steps[0]!;
}

/** Imports a document of one app, which names a tool, a model and a secret of its own. */
async function importedBy(lab: Lab, more: Json): Promise<{ made: Json[]; missing: Json[] }> {
  const step = { key: 'ask', stage: 'say', name: 'Ask', step_type: 'llm', tool: 'theirs', model: 'theirs' };
  const definition = {
    app: { name: 'Own', metadata: { auth: '{{secret.theirs}}' } },
    augmentations: [{ key: 'answer', name: 'Answer' }],
    stages: [{ key: 'say', augmentation: 'answer', name: 'Say' }],
    steps: [step],
  };
  const workspace = { name: 'Own' };
  const document = { format: 'workspace', version: 1, workspace, apps: [{ key: 'own', definition }] };
  const { orgId, workspaceId } = place(lab);
  const input = { document, ...more };
  return (await mutateOk(lab.app, 'importWorkspace', { orgId, workspaceId, input }, token(lab))) as {
    made: Json[];
    missing: Json[];
  };
}

/** What recipes name and apps lack, and deletions of what steps use. */
export const recipeCases: Readonly<Record<string, InputCase>> = {
  mapMissingParts: {
    effects: {
      'input.tools': async (lab) => {
        const id = lab.world.ids.tool_instance_id!;
        expect(await stepAfter(lab, (name) => ({ tools: { [name]: id } }))).toMatchObject({ toolInstanceId: id });
      },
      'input.models': async (lab) => {
        const id = lab.world.ids.logical_model_id!;
        expect(await stepAfter(lab, (name) => ({ models: { [name]: id } }))).toMatchObject({ logicalModelId: id });
      },
      'input.secrets': async (lab) => {
        const name = `mapped ${lab.world.next()}`;
        const secret = { name, secretType: 'token', value: { a: 'b' } };
        await mutateOk(lab.app, 'createSecret', { orgId: place(lab).orgId, input: secret }, token(lab));
        const mapping = { models: {}, secrets: { theirs: name } };
        const step = await stepAfter(lab, () => mapping, { config: { key: '{{secret.theirs}}' } });
        expect(step.config).toEqual({ key: `{{secret.${name}}}` });
      },
    },
  },
  importWorkspace: {
    effects: {
      'input.document': async (lab) => {
        expect(await importedBy(lab, {})).toMatchObject({ made: [{ key: 'own' }] });
      },
      'input.dryRun': async (lab) => {
        expect(await importedBy(lab, { dryRun: true })).toMatchObject({ made: [{ resourceId: null }] });
      },
      'input.tools': async (lab) => {
        const { missing } = await importedBy(lab, { tools: { theirs: lab.world.ids.tool_instance_id } });
        expect(missing.map(({ kind }) => kind)).toEqual(['model', 'secret']);
      },
      'input.models': async (lab) => {
        const { missing } = await importedBy(lab, { models: { theirs: lab.world.ids.logical_model_id } });
        expect(missing.map(({ kind }) => kind)).toEqual(['tool', 'secret']);
      },
      'input.secrets': async (lab) => {
        const name = `mapped ${lab.world.next()}`;
        const secret = { name, secretType: 'token', value: { a: 'b' } };
        await mutateOk(lab.app, 'createSecret', { orgId: place(lab).orgId, input: secret }, token(lab));
        const { missing } = await importedBy(lab, { secrets: { theirs: name } });
        expect(missing.map(({ kind }) => kind)).toEqual(['tool', 'model']);
      },
    },
  },
};

/** The effects of the mapping of `applyRecipe`. */
export const mappingEffects: NonNullable<InputCase['effects']> = {
  'input.tools': async (lab) => {
    const tools = { theirs: lab.world.ids.tool_instance_id };
    expect(await missingAfter(lab, { tools })).toEqual(['model', 'secret']);
  },
  'input.models': async (lab) => {
    const models = { theirs: lab.world.ids.logical_model_id };
    expect(await missingAfter(lab, { models })).toEqual(['tool', 'secret']);
  },
  'input.secrets': async (lab) => {
    const input = { name: `mapped ${lab.world.next()}`, secretType: 'token', value: { a: 'b' } };
    const { id } = (await mutateOk(lab.app, 'createSecret', { orgId: place(lab).orgId, input }, token(lab))) as Json;
    expect(await missingAfter(lab, { secrets: { theirs: id } })).toEqual(['tool', 'model']);
  },
};

/** Deletes something that a step uses: refused without `force`. */
export const forced =
  (mutation: string, used: (lab: Lab) => Promise<{ given: Json; step: Json }>) => async (lab: Lab) => {
    const { given, step } = await used(lab);
    const input = { name: 'Uses', stages: [{ name: 'Say', steps: [{ name: 'Ask', stepType: 'llm', ...step }] }] };
    await mutateOk(lab.app, 'createAugmentation', { ...place(lab), input }, token(lab));
    await expect(mutateOk(lab.app, mutation, { ...given, force: false }, token(lab))).rejects.toThrow('in_use');
    expect(await mutateOk(lab.app, mutation, { ...given, force: true }, token(lab))).toMatchObject({
      id: expect.any(String),
    });
  };
