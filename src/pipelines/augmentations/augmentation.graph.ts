import { builder } from '../../graphql/builder.ts';
import { inApp, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appArgs, idArg } from '../../graphql/place-args.ts';
import { MASKED, maySeeSecrets } from '../../graphql/plain-secrets.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { masked } from '../../kernel/plain-secrets.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import type { Augmentation as AugmentationRow, Stage, Step } from './augmentation.reads.ts';
import { executionModes, KEY, MAX_ACTION_LENGTH, MAX_KEY_LENGTH, statuses } from './augmentation.words.ts';
import { limits } from './augmentation-stages.ts';

const KEY_DESCRIPTION =
  'The name by which other steps of the augmentation refer to this step, unique in the augmentation. In a config, ' +
  "`{{steps.KEY.field}}` is a field of the step's result, and `{{step.KEY}}` the step itself. References to an " +
  'unknown step are refused.';

const ExecutionMode = wordEnum(
  'ExecutionMode',
  'How the steps of a stage run.',
  { sequential: 'One after the other.', parallel: 'At the same time.' },
  executionModes,
);

const AugmentationStatus = wordEnum(
  'AugmentationStatus',
  'Status of an augmentation.',
  { draft: 'It is being made.', active: 'It is in use.', archived: 'It is no longer in use.' },
  statuses,
);

const AugmentationStep = builder.objectRef<Step>('AugmentationStep').implement({
  description: 'A step of a stage.',
  fields: (t) => ({
    stepId: t.exposeID('id', { description: 'Identifier, `stp_…`.' }),
    key: t.exposeString('key', { description: KEY_DESCRIPTION }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    position: t.exposeInt('position', { description: 'Place in the stage, from 1.' }),
    stepType: t.exposeString('stepType', {
      description: '`llm`, `tool`, `retrieval`, `transform`, `condition`, `output`, or another word.',
    }),
    config: t.expose('config', { type: 'JSONObject', description: `Settings of the step, free-form. ${MASKED}` }),
    logicalModelId: t.exposeID('logicalModelId', {
      nullable: true,
      description:
        'The model that the step uses. The step keeps the identifier when the model is deleted, and ' +
        '`missingParts` lists it.',
    }),
    toolInstanceId: t.exposeID('toolInstanceId', {
      nullable: true,
      description:
        'The tool instance that the step uses. An instance that steps use is deleted only with `force`, and the ' +
        'steps then have none.',
    }),
    toolSlug: t.exposeString('toolSlug', {
      nullable: true,
      description: 'The slug of the tool that the step uses, even while the workspace has no instance of it.',
    }),
    action: t.exposeString('action', { nullable: true, description: 'The action of the tool that the step calls.' }),
  }),
});
refersTo(AugmentationStep, { logicalModelId: 'model', toolInstanceId: 'tool_instance' });

const maskedStage = (stage: Stage): Stage => ({
  ...stage,
  steps: stage.steps.map((step) => ({ ...step, config: masked(step.config) })),
});

const AugmentationStage = builder.objectRef<Stage>('AugmentationStage').implement({
  description: 'A stage of an augmentation. Stages run one after the other.',
  fields: (t) => ({
    stageId: t.exposeID('id', { description: 'Identifier, `stg_…`.' }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    position: t.exposeInt('position', { description: 'Place in the augmentation, from 1.' }),
    executionMode: t.expose('executionMode', { type: ExecutionMode, description: 'How the steps run.' }),
    steps: t.expose('steps', {
      type: [AugmentationStep],
      authorize: 'inherited',
      description: 'The steps, in their order.',
    }),
  }),
});

export const Augmentation = builder.objectRef<AugmentationRow>('Augmentation').implement({
  description:
    'A pipeline of stages with steps: what an app does with a request. The service stores it; a runner outside of ' +
    'the service runs it and reports each run.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    status: t.expose('status', { type: AugmentationStatus, description: 'Its status.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    stages: t.field({
      type: [AugmentationStage],
      authorize: 'inherited',
      description: 'The stages, in their order.',
      resolve: async ({ stages, ...place }, _args, context) =>
        (await maySeeSecrets(context, place)) ? stages : stages.map(maskedStage),
    }),
  }),
});
inApp(Augmentation, 'augmentation');
tracked(Augmentation);
refersTo(Augmentation, { appId: { kind: 'app', required: true } });
readable(Augmentation, { kind: 'augmentation', below: App, reads: ({ augmentations }) => augmentations.reads });

const StepInput = builder.inputType('AugmentationStepInput', {
  description: 'A step of a stage.',
  fields: (t) => ({
    stepId: t.id({
      constraints: bounds.id,
      description: 'Keeps a step of the augmentation. Without it the step is new.',
    }),
    key: t.string({
      constraints: { pattern: KEY, maxLength: MAX_KEY_LENGTH },
      description: `${KEY_DESCRIPTION} Default: that of the kept step, or made from the name.`,
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    stepType: t.string({
      required: true,
      constraints: bounds.open,
      description:
        '`llm`, `tool`, `retrieval`, `transform`, `condition`, `output`, or another word. Model entitlements may ' +
        'limit it by `allowedStepTypes`.',
    }),
    config: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: limits.stepConfigBytes },
      description: 'Settings of the step, free-form. All steps together have at most 256 KiB.',
    }),
    logicalModelId: t.id({
      constraints: bounds.id,
      description:
        'The model that the step uses. A model that does not exist yet is listed as missing until it is created.',
    }),
    toolInstanceId: t.id({
      constraints: bounds.id,
      description: 'The tool instance that the step uses: one of the workspace.',
    }),
    toolSlug: t.string({
      constraints: { minLength: 1, maxLength: 64 },
      description: 'The slug of the tool that the step uses. Default: the slug of the tool of `toolInstanceId`.',
    }),
    action: t.string({
      constraints: { minLength: 1, maxLength: MAX_ACTION_LENGTH },
      description: 'The action of the tool that the step calls.',
    }),
  }),
});

const StageInput = builder.inputType('AugmentationStageInput', {
  description: 'A stage of an augmentation. Stages run in the order of the list.',
  fields: (t) => ({
    stageId: t.id({
      constraints: bounds.id,
      description: 'Keeps a stage of the augmentation. Without it the stage is new.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    executionMode: t.field({ type: ExecutionMode, description: 'How the steps run. Default `sequential`.' }),
    steps: t.field({
      type: [StepInput],
      constraints: { maxItems: limits.stepsOfStage },
      description: `The steps, in their order. An augmentation has at most ${limits.steps}.`,
    }),
  }),
});

const CreateAugmentationInput = builder.inputType('CreateAugmentationInput', {
  description: 'A new augmentation.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    status: t.field({ type: AugmentationStatus, description: 'Its status. Default `active`.' }),
    metadata: t.field({ type: 'JSONObject', description: 'Free-form data.' }),
    stages: t.field({
      type: [StageInput],
      constraints: { maxItems: limits.stages },
      description: 'The stages, in their order. Default: none.',
    }),
  }),
});

const UpdateAugmentationInput = builder.inputType('UpdateAugmentationInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    status: t.field({ type: AugmentationStatus, constraints: { notNull: true }, description: 'Its status.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { notNull: true },
      description: 'Replaces the free-form data.',
    }),
    stages: t.field({
      type: [StageInput],
      constraints: { maxItems: limits.stages, notNull: true },
      description: 'Replaces the stages. Stages and steps that are given with their `stageId` and `stepId` are kept.',
    }),
  }),
});

const target = () => ({ ...appArgs(), ...idArg('The augmentation.') });

const DeleteAugmentationPayload = deletePayload('DeleteAugmentation', {
  noun: 'augmentation',
  in: ['orgId', 'workspaceId', 'appId'],
});

builder.mutationFields((t) => ({
  createAugmentation: t.field({
    type: Augmentation,
    description: 'Creates an augmentation with its stages and steps.',
    authorize: { workspace: 'augmentation:create', in: 'app' },
    emits: ['augmentation.created'],
    args: { ...appArgs(), ...inputArg(CreateAugmentationInput, 'The augmentation.') },
    resolve: ({ app }, { input }, { caller, services }) => services.augmentations.create(caller, app, input),
  }),
  updateAugmentation: t.field({
    type: Augmentation,
    description: 'Changes an augmentation. Given stages replace all previous stages.',
    authorize: { workspace: 'augmentation:update', in: 'app' },
    emits: ['augmentation.updated'],
    args: { ...target(), ...inputArg(UpdateAugmentationInput), ...versionArg() },
    resolve: ({ app }, { id, input }, { caller, services }) => services.augmentations.update(caller, app, id, input),
  }),
  deleteAugmentation: t.field({
    type: DeleteAugmentationPayload,
    description: 'Deletes an augmentation that no endpoint and no action runs, with its stages and steps.',
    authorize: { workspace: 'augmentation:delete', in: 'app' },
    emits: ['augmentation.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ app }, { id }, { caller, services }) => services.augmentations.delete(caller, app, id),
  }),
}));
