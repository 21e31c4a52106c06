import { builder } from '../../graphql/builder.ts';
import { inApp, optionalTime, tracked } from '../../graphql/common-fields.ts';
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
import { CRON, kinds, MAX_CRON_LENGTH, MAX_INPUT_BYTES } from './action.words.ts';

const ActionKind = wordEnum(
  'ActionKind',
  'What starts an action.',
  {
    trigger: 'An event in its workspace: `triggerEvent`.',
    scheduled: 'The clock: `cron` in `timezone`.',
    manual: 'Somebody, with a request.',
  },
  kinds,
);

const Action = builder.prismaObject('Action', {
  description:
    'Starts an augmentation of an app: by hand, at an event or at a time. Endpoints start augmentations by ' +
    'requests.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    kind: t.expose('kind', { type: ActionKind, description: 'What starts it.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the action is in use.' }),
    augmentationId: t.exposeID('augmentationId', { description: 'The augmentation that the action runs.' }),
    triggerEvent: t.exposeString('triggerEvent', {
      nullable: true,
      description: 'Of a `trigger`: the type of the event that starts it, or `<resource>.*`.',
    }),
    cron: t.exposeString('cron', {
      nullable: true,
      description: 'Of a `scheduled` action: minute, hour, day of the month, month, day of the week.',
    }),
    timezone: t.exposeString('timezone', {
      nullable: true,
      description: 'Of a `scheduled` action: the IANA time zone of the cron expression.',
    }),
    input: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: `What the augmentation gets, free-form. ${MASKED}`,
      resolve: async ({ input, ...place }, _args, context) =>
        (await maySeeSecrets(context, place)) ? input : masked(input),
    }),
    nextFireAt: t.expose(
      'nextFireAt',
      optionalTime('When a `scheduled` action fires next: the event `action.fired` is then in the stream.'),
    ),
    lastFiredAt: t.expose('lastFiredAt', optionalTime('When a `scheduled` action last fired.')),
  }),
});
inApp(Action, 'action');
tracked(Action);
refersTo(Action, {
  appId: { kind: 'app', required: true },
  augmentationId: { kind: 'augmentation', required: true },
});
readable(Action, { kind: 'action', below: App, reads: ({ actions }) => actions.reads });

const cron = { pattern: CRON, maxLength: MAX_CRON_LENGTH };
const timezone = { minLength: 1, maxLength: 64 };
const triggerEvent = { minLength: 1, maxLength: 128 };

const CreateActionInput = builder.inputType('CreateActionInput', {
  description: 'A new action.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    kind: t.field({ type: ActionKind, description: 'What starts it. Default `manual`.' }),
    enabled: t.boolean({ description: 'Whether the action is in use. Default true.' }),
    augmentationId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'The augmentation that the action runs: one of the app.',
    }),
    triggerEvent: t.string({
      constraints: triggerEvent,
      description: 'The type of the event that starts it, or `<resource>.*`. Required by a `trigger`.',
    }),
    cron: t.string({
      constraints: cron,
      description:
        'Minute, hour, day of the month, month, day of the week, as `30 8 * * 1-5`. Required by a `scheduled` action.',
    }),
    timezone: t.string({
      constraints: timezone,
      description: 'The IANA time zone of a `scheduled` action. Default `UTC`.',
    }),
    input: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: MAX_INPUT_BYTES },
      description: 'What the augmentation gets, free-form.',
    }),
  }),
});

const UpdateActionInput = builder.inputType('UpdateActionInput', {
  description:
    'The fields to change. Omitted fields stay as they are; `null` clears a field. Another kind clears what belonged ' +
    'to the kind before.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    kind: t.field({
      type: ActionKind,
      constraints: { notNull: true },
      description: 'What starts it.',
    }),
    enabled: t.boolean({
      constraints: { notNull: true },
      description: 'Whether the action is in use. Times that pass while it is not in use are skipped.',
    }),
    augmentationId: t.id({
      constraints: { ...bounds.id, notNull: true },
      description: 'The augmentation that the action runs: one of the app.',
    }),
    triggerEvent: t.string({
      constraints: triggerEvent,
      description: 'The type of the event that starts it, or `<resource>.*`.',
    }),
    cron: t.string({
      constraints: cron,
      description: 'Minute, hour, day of the month, month, day of the week.',
    }),
    timezone: t.string({ constraints: timezone, description: 'The IANA time zone. `null` stands for `UTC`.' }),
    input: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: MAX_INPUT_BYTES, notNull: true },
      description: 'Replaces what the augmentation gets.',
    }),
  }),
});

const target = () => ({ ...appArgs(), ...idArg('The action.') });

const DeleteActionPayload = deletePayload('DeleteAction', { noun: 'action', in: ['orgId', 'workspaceId', 'appId'] });

builder.mutationFields((t) => ({
  createAction: t.field({
    type: Action,
    description: 'Creates an action.',
    authorize: { workspace: 'action:create', in: 'app' },
    emits: ['action.created'],
    args: { ...appArgs(), ...inputArg(CreateActionInput, 'The action.') },
    resolve: ({ app }, { input }, { caller, services }) => services.actions.create(caller, app, input),
  }),
  updateAction: t.field({
    type: Action,
    description: 'Changes an action.',
    authorize: { workspace: 'action:update', in: 'app' },
    emits: ['action.updated'],
    args: { ...target(), ...inputArg(UpdateActionInput), ...versionArg() },
    resolve: ({ app }, { id, input }, { caller, services }) => services.actions.update(caller, app, id, input),
  }),
  deleteAction: t.field({
    type: DeleteActionPayload,
    description: 'Deletes an action.',
    authorize: { workspace: 'action:delete', in: 'app' },
    emits: ['action.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ app }, { id }, { caller, services }) => services.actions.delete(caller, app, id),
  }),
}));
