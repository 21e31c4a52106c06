import type { Role } from '../core/roles.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { emailBounds } from '../users/user.graph.ts';
import type { Invitation as InvitationRow } from './invitation.service.ts';
import { Organization } from './organization.graph.ts';

export const Invitation = builder.objectRef<InvitationRow>('Invitation').implement({
  description: 'An invitation by e-mail to join an organization, and perhaps one of its workspaces.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `inv_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    email: t.exposeString('email', {
      description: 'The invited address; only the account with this address can accept.',
    }),
    role: t.exposeString('role', { description: 'The role in the organization after accepting.' }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'A workspace that is joined too.' }),
    workspaceRole: t.exposeString('workspaceRole', { nullable: true, description: 'The role in that workspace.' }),
    status: t.exposeString('status', { description: '`pending`, `accepted`, `revoked` or `expired`.' }),
    invitedBy: t.exposeID('invitedBy', { nullable: true, description: 'Who invited.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'Until when it can be accepted.' }),
    acceptedAt: t.expose('acceptedAt', { type: 'DateTime', nullable: true, description: 'When it was accepted.' }),
    acceptedBy: t.exposeID('acceptedBy', { nullable: true, description: 'Who accepted.' }),
  }),
});

export const InvitationConnection = pageType('Invitation', Invitation);

registerNode('invitation', Invitation, ({ actor, services }, id) => services.invitations.find(actor, id));

const listArgs = () => ({
  ...builder.args((t) => ({
    status: t.string({
      constraints: { oneOf: ['pending', 'accepted', 'revoked', 'expired'] },
      description: 'Only those with this status.',
    }),
  })),
  ...pageArgs(),
});

builder.prismaObjectField(Organization, 'invitations', (t) =>
  t.field({
    type: InvitationConnection,
    nullable: true,
    description: 'The invitations, newest first; null, with an error, for those who may not read them.',
    authorize: { organization: 'invitation:read' },
    args: listArgs(),
    resolve: ({ id }, args, context) => context.services.invitations.nested(context.actor, context, id, args),
  }),
);

builder.queryFields((t) => ({
  invitation: t.field({
    type: Invitation,
    description: 'An invitation by its identifier.',
    authorize: { organization: 'invitation:read' },
    args: {
      orgId: t.arg.id({ required: true, description: 'Its organization.' }),
      id: t.arg.id({ required: true, description: 'The invitation.' }),
    },
    resolve: (_root, { orgId, id }, { actor, services }) => services.invitations.get(actor, orgId, id),
  }),
  invitations: t.field({
    type: InvitationConnection,
    description: 'The invitations of an organization, newest first.',
    authorize: { organization: 'invitation:read' },
    args: { orgId: t.arg.id({ required: true, description: 'The organization.' }), ...listArgs() },
    resolve: (_root, args, { actor, services }) => services.invitations.list(actor, args),
  }),
}));

const CreateInvitationInput = builder.inputType('CreateInvitationInput', {
  description: 'Whom to invite, and as what.',
  fields: (t) => ({
    email: t.string({
      required: true,
      constraints: emailBounds,
      description: 'The address that the link is mailed to.',
    }),
    role: t.string({
      constraints: bounds.role,
      description: 'The role in the organization; `member` unless told, never above the own.',
    }),
    workspaceId: t.id({ constraints: bounds.id, description: 'A workspace to join too.' }),
    workspaceRole: t.string({
      constraints: bounds.role,
      description: 'The role in that workspace; `member` unless told, never above the own.',
    }),
  }),
});

const AcceptInvitationInput = builder.inputType('AcceptInvitationInput', {
  description: 'The token of the mailed link.',
  fields: (t) => ({
    token: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The token; it works once.',
    }),
  }),
});

builder.mutationFields((t) => {
  const orgId = t.arg.id({ required: true, description: 'The organization.' });
  const target = { orgId, id: t.arg.id({ required: true, description: 'The invitation.' }) };
  return {
    createInvitation: t.field({
      type: Invitation,
      description: 'Invites an address: mails a link that works once, for seven days.',
      authorize: { organization: 'invitation:create' },
      args: { orgId, input: t.arg({ type: CreateInvitationInput, required: true, description: 'The invitation.' }) },
      resolve: (_root, args, { actor, services }) => {
        const { role, workspaceRole, ...input } = args.input;
        return services.invitations.create(actor, args.orgId, {
          ...input,
          role: role as Role | null,
          workspaceRole: workspaceRole as Role | null,
        });
      },
    }),
    resendInvitation: t.field({
      type: Invitation,
      description: 'Mails a new link for a pending invitation, which works for seven days; the old link is dead.',
      authorize: { organization: 'invitation:update' },
      args: { ...target, ...versionArg() },
      resolve: (_root, args, { actor, services }) => services.invitations.resend(actor, args.orgId, args.id),
    }),
    revokeInvitation: t.boolean({
      description: 'Makes the link of a pending invitation useless.',
      authorize: { organization: 'invitation:delete' },
      activity: { action: 'revoke', resourceType: 'invitation' },
      args: { ...target, ...versionArg() },
      resolve: async (_root, args, { actor, services }) => {
        await services.invitations.revoke(actor, args.orgId, args.id);
        return true;
      },
    }),
    acceptInvitation: t.field({
      type: Organization,
      description:
        'Joins the organization that a mailed link is from. The address of the account must be the invited one.',
      authorize: { session: 'organization:access' },
      activity: { action: 'update', resourceType: 'invitation' },
      isCredential: true,
      args: { input: t.arg({ type: AcceptInvitationInput, required: true, description: 'The token.' }) },
      resolve: async (_root, { input }, context) => {
        const orgId = await context.services.invitations.accept(context.actor, input.token);
        return context.services.organizations.get(context, orgId);
      },
    }),
  };
});
