import { builder } from '../../graphql/builder.ts';
import { inApp } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appArgs, idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { App } from '../../tenancy/apps/app.graph.ts';

export const Release = builder.prismaObject('Release', {
  description: 'An immutable release of an app.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    number: t.exposeInt('number', { description: 'Number of the release within the app: from 1, without gaps.' }),
    version: t.exposeString('version', { description: 'A label, unique in the app.' }),
    notes: t.exposeString('notes', { nullable: true, description: 'Release notes: what is new.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'The user who created it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
  }),
});
inApp(Release, 'release');
refersTo(Release, { appId: { kind: 'app', required: true }, createdBy: 'user' });
readable(Release, {
  kind: 'release',
  below: App,
  reads: ({ releases }) => releases.reads,
});

const CreateReleaseInput = builder.inputType('CreateReleaseInput', {
  description: 'A new release.',
  fields: (t) => ({
    version: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description: 'A label, unique in the app. Default: the number of the release.',
    }),
    notes: t.string({ constraints: bounds.description, description: 'Release notes: what is new.' }),
    metadata: t.field({
      type: 'JSONObject',
      description: 'Free-form data.',
    }),
  }),
});

const DeleteReleasePayload = deletePayload('DeleteRelease', { noun: 'release', in: ['orgId', 'workspaceId', 'appId'] });

builder.mutationFields((t) => ({
  createRelease: t.field({
    type: Release,
    description: 'Creates the next release of an app.',
    authorize: { workspace: 'release:create' },
    emits: ['release.created'],
    args: { ...appArgs(), ...inputArg(CreateReleaseInput, 'The release.') },
    resolve: ({ workspace }, { appId, input }, { caller, services }) =>
      services.releases.create(caller, { ...workspace, appId }, input),
  }),
  deleteRelease: t.field({
    type: DeleteReleasePayload,
    description: 'Deletes a release.',
    authorize: { workspace: 'release:delete', in: 'app' },
    emits: ['release.deleted'],
    args: { ...appArgs(), ...idArg('The release.'), ...versionArg() },
    resolve: ({ app }, { id }, { caller, services }) => services.releases.delete(caller, app, id),
  }),
}));
