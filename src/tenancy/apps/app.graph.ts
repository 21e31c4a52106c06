import { builder } from '../../graphql/builder.ts';
import { inWorkspace, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';

export const App = builder.prismaObject('App', {
  description: 'An application in a workspace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
  }),
});
inWorkspace(App, 'app');
tracked(App);
refersTo(App, { workspaceId: { kind: 'workspace', required: true } });
readable(App, { kind: 'app', below: Workspace, reads: ({ apps }) => apps.reads });

const target = () => ({ ...workspaceArgs(), ...idArg('The app.') });

const CreateAppInput = builder.inputType('CreateAppInput', {
  description: 'A new app.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    metadata: t.field({
      type: 'JSONObject',
      description: 'Free-form data.',
    }),
  }),
});

const UpdateAppInput = builder.inputType('UpdateAppInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { notNull: true },
      description: 'Replaces the free-form data.',
    }),
  }),
});

const DeleteAppPayload = deletePayload('DeleteApp', { noun: 'app', in: ['orgId', 'workspaceId'] });

builder.mutationFields((t) => ({
  createApp: t.field({
    type: App,
    description: 'Creates an app.',
    authorize: { workspace: 'app:create' },
    emits: ['app.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateAppInput, 'The app.') },
    resolve: ({ workspace }, { input }, { caller, services }) => services.apps.create(caller, workspace, input),
  }),
  updateApp: t.field({
    type: App,
    description: 'Changes an app.',
    authorize: { workspace: 'app:update' },
    emits: ['app.updated'],
    args: { ...target(), ...inputArg(UpdateAppInput), ...versionArg() },
    resolve: ({ workspace }, { id, input }, { caller, services }) => services.apps.update(caller, workspace, id, input),
  }),
  deleteApp: t.field({
    type: DeleteAppPayload,
    description: 'Deletes an app and its releases.',
    authorize: { workspace: 'app:delete' },
    emits: ['app.deleted'],
    mayEmit: ['deployment.removed'],
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { id }, { caller, services }) => services.apps.delete(caller, workspace, id),
  }),
}));
