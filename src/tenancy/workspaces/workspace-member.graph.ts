import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { addMemberInput, memberArg, memberFields, updateMemberInput } from '../organizations/member.inputs.ts';
import { Workspace } from './workspace.graph.ts';
import type { WorkspaceMember as WorkspaceMemberRow } from './workspace-member.service.ts';

export const WorkspaceMember = builder.objectRef<WorkspaceMemberRow>('WorkspaceMember').implement({
  description: 'A user who is a member of a workspace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
  }),
});
memberFields(WorkspaceMember);
refersTo(WorkspaceMember, { workspaceId: 'workspace' });
readable(WorkspaceMember, {
  kind: 'workspace_member',
  below: Workspace,
  reads: ({ workspaceMembers }) => workspaceMembers.reads,
  one: false,
  list: { description: 'The members of a workspace, oldest first.', page: () => pageArgs({ min: 1, max: 10_000 }) },
  nested: { name: 'members', description: 'The members, oldest first.' },
});

const AddWorkspaceMemberInput = addMemberInput(
  'AddWorkspaceMemberInput',
  'The user. A user from outside the organization also becomes a member of it.',
);
const UpdateWorkspaceMemberInput = updateMemberInput('UpdateWorkspaceMemberInput');

const target = () => ({ ...workspaceArgs(), ...memberArg() });

const RemoveWorkspaceMemberPayload = deletePayload('RemoveWorkspaceMember', {
  noun: 'membership',
  in: ['orgId', 'workspaceId', 'userId'],
});

builder.mutationFields((t) => ({
  addWorkspaceMember: t.field({
    type: WorkspaceMember,
    description: 'Adds a user to a workspace.',
    authorize: { workspace: 'workspace_member:create' },
    emits: ['workspace_member.created'],
    mayEmit: ['organization_member.created'],
    args: { ...workspaceArgs(), ...inputArg(AddWorkspaceMemberInput, 'The member to add.') },
    resolve: ({ workspace }, { input: { userId, role } }, { caller, services }) =>
      services.workspaceMembers.add(caller, workspace, userId, role ?? undefined),
  }),
  updateWorkspaceMember: t.field({
    type: WorkspaceMember,
    description: "Changes a member's role. The last owner cannot be demoted.",
    authorize: { workspace: 'workspace_member:update' },
    emits: ['workspace_member.updated'],
    args: { ...target(), ...inputArg(UpdateWorkspaceMemberInput, 'The new role.'), ...versionArg() },
    resolve: ({ workspace }, { userId, input }, { caller, services }) =>
      services.workspaceMembers.changeRole(caller, workspace, userId, input.role),
  }),
  removeWorkspaceMember: t.field({
    type: RemoveWorkspaceMemberPayload,
    description: 'Removes a member from a workspace. All members may remove themselves. The last owner cannot leave.',
    authorize: { workspace: 'workspace:read', service: 'workspace_member:delete' },
    emits: ['workspace_member.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { userId }, { caller, services }) =>
      services.workspaceMembers.remove(caller, workspace, userId),
  }),
}));
