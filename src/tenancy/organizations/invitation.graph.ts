import { builder } from '../../graphql/builder.ts';
import { inOrganization } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { emailBounds } from '../users/user.graph.ts';
import type { Invitation as InvitationRow } from './invitation.service.ts';
import { Organization } from './organization.graph.ts';

const InvitationStatus = wordEnum('InvitationStatus', 'Status of an invitation.', {
  pending: 'It can be accepted.',
  accepted: 'It was accepted.',
  revoked: 'It was revoked, and can no longer be accepted.',
  expired: 'Nobody accepted it in time.',
});

export const Invitation = builder.objectRef<InvitationRow>('Invitation').implement({
  description: 'An e-mail invitation to join an organization and, optionally, one of its workspaces.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    email: t.exposeString('email', {
      description: 'The invited address. Only the account with this address can accept.',
    }),
    role: t.expose('role', { type: RoleEnum, description: 'The role in the organization after accepting.' }),
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'A workspace that the invited user joins too.',
    }),
    workspaceRole: t.expose('workspaceRole', {
      type: RoleEnum,
      nullable: true,
      description: 'The role in that workspace.',
    }),
    status: t.expose('status', { type: InvitationStatus, description: 'Its status.' }),
    invitedBy: t.exposeID('invitedBy', { nullable: true, description: 'The user who sent the invitation.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the invitation was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the invitation last changed.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'Expiry time. The invitation can be accepted until then.',
    }),
    acceptedAt: t.expose('acceptedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the invitation was accepted.',
    }),
    acceptedBy: t.exposeID('acceptedBy', { nullable: true, description: 'The user who accepted the invitation.' }),
  }),
});

inOrganization(Invitation, 'invitation');
refersTo(Invitation, { workspaceId: 'workspace', invitedBy: 'user', acceptedBy: 'user' });
readable(Invitation, {
  kind: 'invitation',
  below: Organization,
  reads: ({ invitations }) => invitations.reads,
  filters: () =>
    builder.args((t) => ({
      status: t.field({
        type: InvitationStatus,
        description: 'Returns only invitations with this status.',
      }),
    })),
  one: { organization: 'The organization.' },
  nested: {
    description: 'The invitations, newest first. `null`, with an error, for callers who may not read them.',
    nullable: true,
  },
});

const CreateInvitationInput = builder.inputType('CreateInvitationInput', {
  description: 'Who to invite, and with which roles.',
  fields: (t) => ({
    email: t.string({
      required: true,
      constraints: emailBounds,
      description: 'The address that the link is mailed to.',
    }),
    role: t.field({
      type: RoleEnum,
      description: "The role in the organization. Default `member`. Never above the caller's own role.",
    }),
    workspaceId: t.id({ constraints: bounds.id, description: 'A workspace that the invited user joins too.' }),
    workspaceRole: t.field({
      type: RoleEnum,
      description: "The role in that workspace. Default `member`. Never above the caller's own role.",
    }),
  }),
});

const AcceptInvitationInput = builder.inputType('AcceptInvitationInput', {
  description: 'The token from the mailed link.',
  fields: (t) => ({
    token: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The token. It works once.',
    }),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The invitation.') });

builder.mutationFields((t) => ({
  createInvitation: t.field({
    type: Invitation,
    description: 'Invites an e-mail address. Mails it a link that works once, for seven days.',
    authorize: { organization: 'invitation:create' },
    emits: ['invitation.created'],
    args: { ...organizationArgs(), ...inputArg(CreateInvitationInput, 'The invitation.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.invitations.create(caller, organization, {
        ...input,
        role: input.role,
        workspaceRole: input.workspaceRole,
      }),
  }),
  resendInvitation: t.field({
    type: Invitation,
    description: 'Mails a new link for a pending invitation. It works for seven days; the old link stops working.',
    authorize: { organization: 'invitation:update' },
    emits: ['invitation.updated'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.invitations.resend(caller, organization, id),
  }),
  revokeInvitation: t.field({
    type: Invitation,
    description: 'Revokes a pending invitation. Its link stops working.',
    authorize: { organization: 'invitation:delete' },
    activity: { action: 'revoke', resourceType: 'invitation' },
    emits: ['invitation.revoked'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.invitations.revoke(caller, organization, id),
  }),
  acceptInvitation: t.field({
    type: Organization,
    description:
      "Joins the organization that sent the invitation. The account's e-mail address must be the invited one.",
    authorize: { session: 'organization:access' },
    activity: { action: 'update', resourceType: 'invitation' },
    emits: ['invitation.accepted'],
    mayEmit: ['organization_member.created', 'workspace_member.created'],
    isCredential: true,
    args: inputArg(AcceptInvitationInput, 'The token.'),
    resolve: async (_root, { input }, context) => {
      const id = await context.services.invitations.accept(context.caller, input.token);
      return context.services.organizations.reads.get(context, inside.organization({ id }), id);
    },
  }),
}));
