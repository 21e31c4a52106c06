import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { addMemberInput, memberArg, memberFields, updateMemberInput } from './member.inputs.ts';
import { Organization } from './organization.graph.ts';
import type { OrganizationMember as OrganizationMemberRow } from './organization-member.service.ts';

export const OrganizationMember = builder.objectRef<OrganizationMemberRow>('OrganizationMember').implement({
  description: 'A user who is a member of an organization.',
  interfaces: [Node, Versioned],
  fields: (t) => ({ orgId: t.exposeID('orgId', { description: 'The organization.' }) }),
});
memberFields(OrganizationMember);
readable(OrganizationMember, {
  kind: 'organization_member',
  below: Organization,
  reads: ({ organizationMembers }) => organizationMembers.reads,
  one: false,
  list: { description: 'The members of an organization, oldest first.' },
  nested: { name: 'members', description: 'The members, oldest first.' },
});

const AddOrganizationMemberInput = addMemberInput(
  'AddOrganizationMemberInput',
  'A user who already has an account. Invite others by e-mail.',
);
const UpdateOrganizationMemberInput = updateMemberInput('UpdateOrganizationMemberInput');

const target = () => ({ ...organizationArgs(), ...memberArg() });

const RemoveOrganizationMemberPayload = deletePayload('RemoveOrganizationMember', {
  noun: 'membership',
  in: ['orgId', 'userId'],
});

builder.mutationFields((t) => ({
  addOrganizationMember: t.field({
    type: OrganizationMember,
    description: 'Adds a user to an organization, but to none of its workspaces.',
    authorize: { organization: 'organization_member:create' },
    emits: ['organization_member.created'],
    args: { ...organizationArgs(), ...inputArg(AddOrganizationMemberInput, 'The member to add.') },
    resolve: ({ organization }, { input: { userId, role } }, { caller, services }) =>
      services.organizationMembers.add(caller, organization, userId, role ?? undefined),
  }),
  updateOrganizationMember: t.field({
    type: OrganizationMember,
    description: "Changes a member's role. The last owner cannot be demoted.",
    authorize: { organization: 'organization_member:update' },
    emits: ['organization_member.updated'],
    args: { ...target(), ...inputArg(UpdateOrganizationMemberInput, 'The new role.'), ...versionArg() },
    resolve: ({ organization }, { userId, input }, { caller, services }) =>
      services.organizationMembers.changeRole(caller, organization, userId, input.role),
  }),
  removeOrganizationMember: t.field({
    type: RemoveOrganizationMemberPayload,
    description:
      'Removes a member from an organization and from all its workspaces. All members may remove themselves. ' +
      'The last owner cannot leave.',
    authorize: { organization: 'organization:access', service: 'organization_member:delete' },
    emits: ['organization_member.deleted'],
    mayEmit: ['workspace_member.deleted', 'api_token.revoked', 'app_token.revoked'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { userId }, { caller, services }) =>
      services.organizationMembers.remove(caller, organization, userId),
  }),
}));
