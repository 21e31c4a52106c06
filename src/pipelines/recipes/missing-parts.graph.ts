import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { appArgs } from '../../graphql/place-args.ts';
import { limits, type MissingParts as MissingPartsRow } from './missing-parts.ts';
import { mappingOf } from './recipe-mapping.inputs.ts';
import type { MissingPart as MissingRow } from './recipe-surroundings.ts';

export const MissingPart = builder.objectRef<MissingRow>('MissingPart').implement({
  description: 'Something that a recipe or an app uses and the workspace does not have.',
  fields: (t) => ({
    kind: t.exposeString('kind', {
      description:
        '`tool`: the catalogue has no such tool; `tool_instance`: the workspace has no instance of the tool, or the ' +
        'step of an app has none; `model`; `embedding_model`: the organization has none; `secret`; or `credential`: ' +
        'a value that an imported tool instance keeps secret, and must be given.',
    }),
    name: t.exposeString('name', {
      nullable: true,
      description:
        'The slug of the tool, the identifier of the model, or the name of the secret or value. `null` for any ' +
        'embedding model, and for a deleted instance of a tool that the step does not name.',
    }),
    usedBy: t.exposeStringList('usedBy', {
      description:
        'The parts that use it, such as `step.AUGMENTATION.KEY`, as the recipe calls them, or the export of the app.',
    }),
  }),
});

const MissingParts = builder.objectRef<MissingPartsRow>('MissingParts').implement({
  description: 'What an app lacks now.',
  fields: (t) => ({
    missing: t.field({
      type: [MissingPart],
      authorize: 'inherited',
      description:
        `Tools, tool instances, models and secrets, at most ${limits.missing}, each with at most ${limits.users} of ` +
        'the parts that use it.',
      resolve: ({ missing }) => [...missing],
    }),
    total: t.exposeInt('total', { description: 'The number of all that it lacks.' }),
  }),
});

builder.queryField('missingParts', (t) =>
  t.field({
    type: MissingParts,
    description:
      'What the steps and texts of an app name and the workspace does not have, or the step was not given: the same ' +
      'for all who may read the app.',
    authorize: { workspace: 'augmentation:read', in: 'app' },
    args: appArgs(),
    extensions: { cost: 100 }, // all texts of an app
    resolve: ({ app }, _args, { services }) => services.missingParts.of(app),
  }),
);

const MapMissingPartsInput = builder.inputType('MapMissingPartsInput', {
  description: 'What the workspace has now in place of what an app lacks.',
  fields: (t) => ({
    tools: mappingOf(
      t,
      'Tool instances of the workspace, by the slug of the tool. They may be instances of another tool.',
    ),
    models: mappingOf(t, 'Models of the organization, by the model that is missing.'),
    secrets: mappingOf(
      t,
      'Names or identifiers of secrets that apps of the workspace can name, by the NAME of `{{secret.NAME}}` that is ' +
        'missing: all texts of the app name them then. It takes the permission to update each kind of part of an app.',
    ),
  }),
});

builder.mutationField('mapMissingParts', (t) =>
  t.field({
    type: MissingParts,
    description:
      'Gives the steps and texts of an app what they lack, and answers what is still missing. What lacks nothing ' +
      'stays as it is.',
    authorize: { workspace: 'augmentation:update', in: 'app' },
    mayEmit: ['app.updated', 'augmentation.updated', 'endpoint.updated', 'action.updated'],
    args: { ...appArgs(), ...inputArg(MapMissingPartsInput, 'What takes the place of what.') },
    resolve: ({ app }, { input }, { caller, services }) => services.missingParts.map(caller, app, input),
  }),
);
