import { builder } from '../../graphql/builder.ts';
import { inOrganization } from '../../graphql/common-fields.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { versionArg } from '../../graphql/versions.ts';
import type { DeletedWorkspace as DeletedWorkspaceRow } from './deleted-workspace.service.ts';
import { Workspace } from './workspace.graph.ts';

const DeletedWorkspace = builder.objectRef<DeletedWorkspaceRow>('DeletedWorkspace').implement({
  description: 'A workspace that was deleted and can be restored.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    ownerId: t.exposeID('ownerId', {
      nullable: true,
      description: 'The user who owns the workspace. `null` once that account is gone.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the workspace was created.' }),
    deletedAt: t.expose('deletedAt', { type: 'DateTime', description: 'When the workspace was deleted.' }),
    deletedBy: t.exposeID('deletedBy', {
      nullable: true,
      description: 'The user who deleted the workspace; `null` if it was deleted before the service recorded this.',
    }),
    restorableUntil: t.expose('restorableUntil', {
      type: 'DateTime',
      description: 'Until when the workspace can be restored: 30 days after its deletion.',
    }),
  }),
});
inOrganization(DeletedWorkspace, 'workspace');
refersTo(DeletedWorkspace, { ownerId: 'user', deletedBy: 'user' });

const DeletedWorkspaceConnection = pageType('DeletedWorkspace', DeletedWorkspace);

builder.queryField('deletedWorkspaces', (t) =>
  t.field({
    type: DeletedWorkspaceConnection,
    description:
      'The deleted workspaces of an organization that the caller may restore, newest first: all for ' +
      'administrators of the organization, for others the workspaces that they own.',
    authorize: { organization: 'organization:access', service: 'workspace:delete' },
    activity: { action: 'list', resourceType: 'workspace' },
    args: { ...organizationArgs(), ...pageArgs() },
    resolve: ({ organization }, args, context) => context.services.deletedWorkspaces.list(context, organization, args),
  }),
);

builder.mutationField('restoreWorkspace', (t) =>
  t.field({
    type: Workspace,
    description:
      'Restores a workspace within 30 days of its deletion, with everything in it: namespaces, apps, members, ' +
      'tokens, secrets, connections, deployments and schedules. A workspace that is not deleted stays as it is.',
    authorize: { organization: 'organization:access', service: 'workspace:delete' },
    activity: { action: 'restore', resourceType: 'workspace' },
    emits: ['workspace.restored'],
    args: { ...organizationArgs(), ...idArg('The deleted workspace.'), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.deletedWorkspaces.restore(caller, organization, id),
  }),
);
