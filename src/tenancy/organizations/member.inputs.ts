import type { ObjectRef } from '@pothos/core';
import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { refersTo } from '../../graphql/references.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { visibleEmail } from '../users/user.graph.ts';
import type { ShownUser } from './memberships.ts';

interface MemberRow extends ShownUser {
  id: string;
  orgId: string;
  userId: string;
  role: string;
  addedBy: string | null;
  createdAt: Date;
  updatedAt: Date;
}

/** The fields that memberships of organizations and of workspaces share. */
export function memberFields(type: ObjectRef<typeof builder.$inferSchemaTypes, MemberRow>): void {
  builder.objectFields(type, (t) => ({
    id: t.exposeID('id', { description: 'Identifier of the membership.' }),
    userId: t.exposeID('userId', { description: 'The user.' }),
    role: t.expose('role', { type: RoleEnum, description: 'The role.' }),
    username: t.exposeString('username', { description: "The user's name." }),
    email: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        "The user's e-mail address. `null` for guests of the organization, and while the user has not used the " +
        'organization yet, unless the organization created the account or has proven the domain of the address.',
      resolve: ({ userId: id, email, isAddressShown, orgId }, _args, context) =>
        visibleEmail(context, { id, email, isAddressShown }, orgId),
    }),
    fullName: t.exposeString('fullName', { nullable: true, description: "The user's full name." }),
    avatarUrl: t.exposeString('avatarUrl', { nullable: true, description: "URL of the user's picture." }),
    addedBy: t.exposeID('addedBy', { nullable: true, description: 'The user who added this member.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the user was added.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the membership last changed.' }),
  }));
  refersTo(type, { orgId: 'organization', userId: 'user', addedBy: 'user' });
}

/** The input that adds a member, such as `AddWorkspaceMemberInput`. */
export const addMemberInput = (name: string, userDescription: string) =>
  builder.inputType(name, {
    description: 'The user to add, and the role.',
    fields: (t) => ({
      userId: t.id({ required: true, constraints: bounds.id, description: userDescription }),
      role: t.field({ type: RoleEnum, description: "The role. Default `member`. Never above the caller's own role." }),
    }),
  });

/** The input that changes a member's role, such as `UpdateWorkspaceMemberInput`. */
export const updateMemberInput = (name: string) =>
  builder.inputType(name, {
    description: 'The new role.',
    fields: (t) => ({
      role: t.field({
        type: RoleEnum,
        required: true,
        description: "The new role. Never above the caller's own role.",
      }),
    }),
  });

/** The argument that names a member; the place has arguments of its own. */
export const memberArg = () =>
  builder.args((t) => ({ userId: t.id({ required: true, description: 'The user who is the member.' }) }));
