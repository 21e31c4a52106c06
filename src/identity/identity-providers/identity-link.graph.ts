import type { IdentityLink as LinkRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { linkReasons } from './sign-in-admission.words.ts';
import type { ResumedTokens } from './token-resumption.ts';

const IdentityLinkReason = wordEnum('IdentityLinkReason', 'Why an identity is linked to an account.', {
  created: 'The sign-in made the account.',
  ...linkReasons,
  administrator: 'An administrator linked them.',
});

const IdentityLink = builder.objectRef<LinkRow>('IdentityLink').implement({
  description: 'Links an identity at a provider to an account.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier of the link.' }),
    subject: t.exposeString('subject', { description: 'The identifier of the user at the provider.' }),
    userId: t.exposeID('userId', { description: 'The account.' }),
    reason: t.expose('reason', { type: IdentityLinkReason, description: 'Why they are linked.' }),
    linkedBy: t.exposeID('linkedBy', { nullable: true, description: 'The administrator who made the link.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the link was made.' }),
    lastSignInAt: t.expose('lastSignInAt', optionalTime('When the user last signed in at the provider.')),
  }),
});
refersTo(IdentityLink, { userId: 'user', linkedBy: 'user' });

const LinkIdentityInput = builder.inputType('LinkIdentityInput', {
  description: 'The account for an identity at the provider.',
  fields: (t) => ({
    userId: t.id({ required: true, constraints: bounds.id, description: 'A member of the organization.' }),
    subject: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1_024 },
      description:
        'The identifier of the user at the provider: `sub`, or the name identifier of SAML. A test of the ' +
        'provider shows it.',
    }),
  }),
});

const ResumedTokensType = builder.objectRef<ResumedTokens>('ResumedTokens').implement({
  description: 'API tokens that were suspended, and work again.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The user whose tokens they are.' }),
    resumed: t.exposeInt('resumed', { description: 'How many were suspended.' }),
  }),
});
refersTo(ResumedTokensType, { orgId: 'organization', userId: 'user' });

const target = () => ({ ...organizationArgs(), ...idArg('The provider.') });

builder.queryField('identityLink', (t) =>
  t.field({
    type: IdentityLink,
    nullable: true,
    description: 'The link of a user to a provider. `null` if the user is not linked.',
    // those who link may look: a token that is restricted to some places sees nothing of providers
    authorize: { organization: 'identity_provider:update' },
    activity: { resourceType: 'identity_provider', action: 'read' },
    args: { ...target(), userId: t.arg.id({ required: true, description: 'The user.' }) },
    resolve: ({ organization }, { id, userId }, { services }) => services.identityLinks.find(organization, id, userId),
  }),
);

const UnlinkIdentityPayload = deletePayload('UnlinkIdentity', {
  noun: 'link',
  in: ['orgId', 'identityProviderId', 'userId'],
});

builder.mutationFields((t) => ({
  linkIdentity: t.field({
    type: IdentityLink,
    description:
      "Links a member to an identity at the provider, whatever the member's address is. The identity then signs " +
      "in to the account. Refused for accounts with a role above the caller's, for administrators of the " +
      'platform, and for members of other organizations whose domain is not proven. The user gets a notification.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    args: { ...target(), ...inputArg(LinkIdentityInput, 'The link.') },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.identityLinks.link(caller, organization, id, input),
  }),
  unlinkIdentity: t.field({
    type: UnlinkIdentityPayload,
    description: 'Removes the link of a user, and ends the sessions that the provider made for them.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    args: { ...target(), userId: t.arg.id({ required: true, description: 'The user.' }) },
    resolve: ({ organization }, { id, userId }, { caller, services }) =>
      services.identityLinks.unlink(caller, organization, id, userId),
  }),
  resumeApiTokens: t.field({
    type: ResumedTokensType,
    description:
      'Lets the API tokens of a member work again that were suspended with an identity provider or a link. Refused ' +
      'to API tokens, for members with a role above the caller, and while the member can sign in at a provider of ' +
      'the organization, or has to: that resumes them.',
    authorize: { organization: 'api_token:manage', stepUp: 'sign_in_settings' },
    activity: { action: 'update', resourceType: 'organization_member' },
    args: { ...organizationArgs(), userId: t.arg.id({ required: true, description: 'The user.' }) },
    resolve: ({ organization }, { userId }, { caller, services }) =>
      services.tokenResumption.resume(caller, organization, userId),
  }),
}));
