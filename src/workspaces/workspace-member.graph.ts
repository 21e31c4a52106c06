import type { Role } from '../core/roles.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Workspace } from './workspace.graph.ts';
import type { WorkspaceMember as WorkspaceMemberRow } from './workspace-member.service.ts';

export const WorkspaceMember = builder.objectRef<WorkspaceMemberRow>('WorkspaceMember').implement({
  description: 'A user as a member of a workspace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier of the membership.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    userId: t.exposeID('userId', { description: 'The user.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
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

export const WorkspaceMemberConnection = pageType('WorkspaceMember', WorkspaceMember);

registerNode('workspace_member', WorkspaceMember, async (context, id) =>
  readableInWorkspace(context, 'workspace_member:read', await context.services.workspaceMembers.findAnywhere(id)),
);

builder.prismaObjectField(Workspace, 'members', (t) =>
  t.field({
    type: WorkspaceMemberConnection,
    description: 'The members, oldest first.',
    authorize: { workspace: 'workspace_member:read' },
    args: pageArgs(),
    resolve: (workspace, args, context) => context.services.workspaceMembers.nested(context, workspace, args),
  }),
);

builder.queryFields((t) => ({
  workspaceMembers: t.field({
    type: WorkspaceMemberConnection,
    description: 'The members of a workspace, oldest first.',
    authorize: { workspace: 'workspace_member:read' },
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization of the workspace.' }),
      workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
      ...pageArgs({ min: 1, max: 10_000 }),
    },
    resolve: (_root, args, { services }) => services.workspaceMembers.list(args),
  }),
}));

const AddWorkspaceMemberInput = builder.inputType('AddWorkspaceMemberInput', {
  description: 'Who to add.',
  fields: (t) => ({
    userId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'The user; one from outside also becomes a member of the organization.',
    }),
    role: t.string({ constraints: bounds.role, description: 'The role; `member` unless told, never above the own.' }),
  }),
});

const UpdateWorkspaceMemberInput = builder.inputType('UpdateWorkspaceMemberInput', {
  description: 'The new role.',
  fields: (t) => ({
    role: t.string({ required: true, constraints: bounds.role, description: 'The role; never above the own.' }),
  }),
});

builder.mutationFields((t) => {
  const place = {
    orgId: t.arg.id({ required: true, description: 'The organization of the workspace.' }),
    workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
  };
  const target = { ...place, userId: t.arg.id({ required: true, description: 'The member.' }) };
  return {
    addWorkspaceMember: t.field({
      type: WorkspaceMember,
      description: 'Adds a user to a workspace.',
      authorize: { workspace: 'workspace_member:create' },
      args: { ...place, input: t.arg({ type: AddWorkspaceMemberInput, required: true, description: 'Who to add.' }) },
      resolve: (_root, { orgId, workspaceId, input }, { actor, services }) =>
        services.workspaceMembers.add(
          actor,
          { orgId, workspaceId, userId: input.userId },
          (input.role as Role | null | undefined) ?? 'member',
        ),
    }),
    updateWorkspaceMember: t.field({
      type: WorkspaceMember,
      description: "Changes a member's role. The last owner cannot be demoted.",
      authorize: { workspace: 'workspace_member:update' },
      args: {
        ...target,
        input: t.arg({ type: UpdateWorkspaceMemberInput, required: true, description: 'The new role.' }),
        ...versionArg(),
      },
      resolve: (_root, { input, ...ids }, { actor, services }) =>
        services.workspaceMembers.changeRole(actor, ids, input.role as Role),
    }),
    removeWorkspaceMember: t.boolean({
      description: 'Removes a member; everyone may remove themselves. The last owner cannot leave.',
      authorize: { workspace: 'workspace:read', service: 'workspace_member:delete' },
      args: { ...target, ...versionArg() },
      resolve: async (_root, ids, { actor, services }) => {
        await services.workspaceMembers.remove(actor, ids);
        return true;
      },
    }),
  };
});
