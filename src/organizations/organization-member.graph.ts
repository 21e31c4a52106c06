import type { Role } from '../core/roles.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInOrganization, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Organization } from './organization.graph.ts';
import type { OrganizationMember as OrganizationMemberRow } from './organization-member.service.ts';

export const OrganizationMember = builder.objectRef<OrganizationMemberRow>('OrganizationMember').implement({
  description: 'A user as a member of an organization.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier of the membership.' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The user.' }),
    role: t.exposeString('role', { description: '`owner`, `admin`, `editor`, `member` or `viewer`.' }),
    username: t.exposeString('username', { description: "The user's name." }),
    email: t.exposeString('email', { description: "The user's e-mail address." }),
    fullName: t.exposeString('fullName', { nullable: true, description: "The user's full name." }),
    avatarUrl: t.exposeString('avatarUrl', { nullable: true, description: "The user's picture." }),
    addedBy: t.exposeID('addedBy', { nullable: true, description: 'Who added the user.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the user was added.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the membership last changed.' }),
  }),
});

export const OrganizationMemberConnection = pageType('OrganizationMember', OrganizationMember);

registerNode('organization_member', OrganizationMember, async (context, id) =>
  readableInOrganization(
    context,
    'organization_member:read',
    await context.services.organizationMembers.findAnywhere(id),
  ),
);

builder.prismaObjectField(Organization, 'members', (t) =>
  t.field({
    type: OrganizationMemberConnection,
    description: 'The members, oldest first.',
    authorize: { organization: 'organization_member:read' },
    args: pageArgs(),
    resolve: ({ id }, args, context) => context.services.organizationMembers.nested(context, id, args),
  }),
);

builder.queryFields((t) => ({
  organizationMembers: t.field({
    type: OrganizationMemberConnection,
    description: 'The members of an organization, oldest first.',
    authorize: { organization: 'organization_member:read' },
    args: { orgId: t.arg.id({ required: true, description: 'The organization.' }), ...pageArgs() },
    resolve: (_root, args, { services }) => services.organizationMembers.list(args),
  }),
}));

const AddOrganizationMemberInput = builder.inputType('AddOrganizationMemberInput', {
  description: 'Who to add.',
  fields: (t) => ({
    userId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'A user who has an account; invite others by e-mail.',
    }),
    role: t.string({ constraints: bounds.role, description: 'The role; `member` unless told, never above the own.' }),
  }),
});

const UpdateOrganizationMemberInput = builder.inputType('UpdateOrganizationMemberInput', {
  description: 'The new role.',
  fields: (t) => ({
    role: t.string({ required: true, constraints: bounds.role, description: 'The role; never above the own.' }),
  }),
});

builder.mutationFields((t) => {
  const orgId = t.arg.id({ required: true, description: 'The organization.' });
  const target = { orgId, userId: t.arg.id({ required: true, description: 'The member.' }) };
  return {
    addOrganizationMember: t.field({
      type: OrganizationMember,
      description: 'Adds a user to an organization, to none of its workspaces.',
      authorize: { organization: 'organization_member:create' },
      args: { orgId, input: t.arg({ type: AddOrganizationMemberInput, required: true, description: 'Who to add.' }) },
      resolve: (_root, args, { actor, services }) =>
        services.organizationMembers.add(
          actor,
          { orgId: args.orgId, userId: args.input.userId },
          (args.input.role as Role | null | undefined) ?? 'member',
        ),
    }),
    updateOrganizationMember: t.field({
      type: OrganizationMember,
      description: "Changes a member's role. The last owner cannot be demoted.",
      authorize: { organization: 'organization_member:update' },
      args: {
        ...target,
        input: t.arg({ type: UpdateOrganizationMemberInput, required: true, description: 'The new role.' }),
        ...versionArg(),
      },
      resolve: (_root, { input, ...ids }, { actor, services }) =>
        services.organizationMembers.changeRole(actor, ids, input.role as Role),
    }),
    removeOrganizationMember: t.boolean({
      description:
        'Removes a member from an organization and from all its workspaces; everyone may remove themselves. The last owner cannot leave.',
      authorize: { organization: 'organization:access', service: 'organization_member:delete' },
      args: { ...target, ...versionArg() },
      resolve: async (_root, ids, { actor, services }) => {
        await services.organizationMembers.remove(actor, ids);
        return true;
      },
    }),
  };
});
