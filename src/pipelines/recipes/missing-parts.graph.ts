import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { appArgs } from '../../graphql/place-args.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { limits, type MissingParts as MissingPartsRow } from './missing-parts.ts';
import { mappingOf } from './recipe-mapping.inputs.ts';
import { type MissingPart as MissingRow, missingKinds } from './recipe-surroundings.ts';

const MissingPartKind = wordEnum(
  'MissingPartKind',
  'What kind of thing is missing.',
  {
    tool: 'The catalogue has no such tool.',
    tool_instance: 'The workspace has no instance of the tool, or the step of an app has none.',
    model: 'The organization has no such model, or the workspace may not use it.',
    embedding_model: 'The organization has no embedding model.',
    secret: 'The workspace has no such secret.',
    credential: 'A value that an imported tool instance keeps secret, and must be given.',
  },
  missingKinds,
);

export const MissingPart = builder.objectRef<MissingRow>('MissingPart').implement({
  description: 'A part that a recipe or an app uses and the workspace does not have.',
  fields: (t) => ({
    kind: t.expose('kind', { type: MissingPartKind, description: 'What kind of thing it is.' }),
    name: t.exposeString('name', {
      nullable: true,
      description:
        'The slug of the tool, the identifier of the model, or the name of the secret or value. `null` for any ' +
        'embedding model, and for a deleted instance of a tool that the step does not name.',
    }),
    usedBy: t.exposeStringList('usedBy', {
      description:
        'The parts that use it, such as `step.AUGMENTATION.KEY`, with the names in the recipe or in an export of ' +
        'the app.',
    }),
  }),
});

const MissingParts = builder.objectRef<MissingPartsRow>('MissingParts').implement({
  description: 'The parts that an app is missing now.',
  fields: (t) => ({
    missing: t.field({
      type: [MissingPart],
      authorize: 'inherited',
      description:
        `Tools, tool instances, models and secrets, at most ${limits.missing}, each with at most ${limits.users} of ` +
        'the parts that use it.',
      resolve: ({ missing }) => [...missing],
    }),
    total: t.exposeInt('total', { description: 'The number of missing parts.' }),
  }),
});

builder.queryField('missingParts', (t) =>
  t.field({
    type: MissingParts,
    description:
      'The parts that the steps and texts of an app use and the workspace does not have. It is the same for ' +
      'everybody who may read the app.',
    authorize: { workspace: 'augmentation:read', in: 'app' },
    args: appArgs(),
    extensions: { cost: 100 }, // all texts of an app
    resolve: ({ app }, _args, { services }) => services.missingParts.of(app),
  }),
);

const MapMissingPartsInput = builder.inputType('MapMissingPartsInput', {
  description: 'What to use for the missing parts of an app.',
  fields: (t) => ({
    tools: mappingOf(
      t,
      'Replaces tools: from the slug of the tool to a tool instance of the workspace, which may be an instance of ' +
        'another tool.',
    ),
    models: mappingOf(t, 'Replaces models: from the missing identifier to a model of the organization.'),
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
    args: { ...appArgs(), ...inputArg(MapMissingPartsInput, 'What to use for the missing parts.') },
    resolve: ({ app }, { input }, { caller, services }) => services.missingParts.map(caller, app, input),
  }),
);
