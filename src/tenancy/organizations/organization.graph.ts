import { emptyPage } from '../../data/page.ts';
import { builder } from '../../graphql/builder.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { anywhere, inside } from '../../graphql/row-places.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { forbidden } from '../../kernel/errors.ts';
import { isSelf, rolesOf, User } from '../users/user.graph.ts';
import { WorkspaceConnection } from '../workspaces/workspace.graph.ts';

export const Organization = builder.prismaObject('Organization', {
  description: 'A tenant, in which people work together. Nothing in it is visible from outside.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `org_…`.' }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    role: t.field({
      type: RoleEnum,
      authorize: 'inherited',
      description: "The caller's role in the organization.",
      resolve: async ({ id }, _args, context) => {
        const { anyCaller } = context;
        const userId = anyCaller.principal?.userId ?? anyCaller.signedInAs?.userId;
        const role = userId ? await rolesOf(context).load({ userId, orgId: id }) : null;
        if (!role) throw forbidden('organization:access'); // removed while the request was running
        return role;
      },
    }),
    requiresRevealReason: t.exposeBoolean('revealReasonRequired', {
      description:
        'Whether secrets and credentials of connections are revealed only with a `reason`: see `signInPolicy`.',
    }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'The user who created the organization.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the organization was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the organization last changed.' }),
    workspaces: t.field({
      type: WorkspaceConnection,
      description: 'The workspaces that the caller may read, newest first.',
      authorize: { organization: 'organization:access', service: 'workspace:read' },
      args: pageArgs(),
      resolve: async (row, args, context) => {
        const { access, workspaces } = context.services;
        const role = await access.organizationRole(context.caller, row.id);
        return workspaces.list(context, inside.organization(row), role, args);
      },
    }),
  }),
});

refersTo(Organization, { createdBy: 'user' });

export const OrganizationConnection = pageType('Organization', Organization);

registerNode('organization', Organization, async (context, id) => {
  await context.services.access.requireOrganization(context.caller, id, 'organization:access');
  return context.services.organizations.reads.findUnscoped(context, id);
});

builder.objectField(User, 'organizations', (t) =>
  t.field({
    type: OrganizationConnection,
    description: "The user's organizations, oldest first. Empty unless the user is the caller.",
    authorize: 'inherited',
    args: pageArgs(),
    resolve: (user, args, context) =>
      isSelf(user, context) ? context.services.organizations.own.list(context, anywhere, args) : emptyPage,
  }),
);

builder.queryFields((t) => ({
  organization: t.field({
    type: Organization,
    description: 'An organization by its identifier.',
    authorize: { organization: 'organization:access', by: 'id' },
    args: idArg('The organization.'),
    resolve: ({ organization }, { id }, context) => context.services.organizations.reads.get(context, organization, id),
  }),
  organizations: t.field({
    type: OrganizationConnection,
    description: 'The organizations that the caller is a member of, oldest first.',
    authorize: 'signedIn',
    activity: { action: 'list', resourceType: 'organization' },
    args: pageArgs(),
    resolve: (_root, args, context) => context.services.organizations.own.list(context, anywhere, args),
  }),
}));

const CreateOrganizationInput = builder.inputType('CreateOrganizationInput', {
  description: 'A new organization.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const UpdateOrganizationInput = builder.inputType('UpdateOrganizationInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const DeleteOrganizationPayload = deletePayload('DeleteOrganization', { noun: 'organization' });

builder.mutationFields((t) => ({
  createOrganization: t.field({
    type: Organization,
    description: 'Creates an organization with a default workspace. The caller becomes the owner of both.',
    authorize: { session: 'organization:access' },
    activity: { action: 'create', resourceType: 'organization' },
    emits: ['organization.created', 'organization_member.created', 'workspace.created'],
    args: inputArg(CreateOrganizationInput, 'The organization.'),
    resolve: (_root, { input }, { caller, services }) => services.organizations.create(caller, input),
  }),
  updateOrganization: t.field({
    type: Organization,
    description: 'Changes an organization.',
    authorize: { organization: 'organization:update', by: 'id' },
    emits: ['organization.updated'],
    args: { ...idArg('The organization.'), ...inputArg(UpdateOrganizationInput), ...versionArg() },
    resolve: (_root, { id, input }, { caller, services }) => services.organizations.update(caller, id, input),
  }),
  deleteOrganization: t.field({
    type: DeleteOrganizationPayload,
    description:
      'Deletes an organization. Its workspaces and everything in them become unreachable at once. Its members keep ' +
      'their accounts.',
    authorize: { organization: 'organization:delete', by: 'id' },
    emits: ['organization.deleted'],
    args: { ...idArg('The organization.'), ...versionArg() },
    resolve: (_root, { id }, { caller, services }) => services.organizations.delete(caller, id),
  }),
}));
