import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { FactorMethodType } from './factor.graph.ts';
import type { MemberWithoutFactor, ResetFactors } from './member-factors.ts';

const MemberWithoutFactorType = builder.objectRef<MemberWithoutFactor>('MemberWithoutFactor').implement({
  description: 'A member of an organization whose account has no second factor.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The member.' }),
    username: t.exposeString('username', { description: 'The user name of the member.' }),
    role: t.expose('role', { type: RoleEnum, authorize: 'inherited', description: 'The role in the organization.' }),
    since: t.expose('since', optionalTime('Since when the organization demands a factor of the member.')),
    until: t.expose('until', optionalTime('Until when the member may be without one.')),
    hasIdentity: t.exposeBoolean('hasIdentity', {
      description:
        'Whether an identity provider of the organization knows the member: who signs in there needs no factor here.',
    }),
  }),
});
refersTo(MemberWithoutFactorType, { orgId: 'organization', userId: 'user' });
const MemberWithoutFactorPage = pageType('MemberWithoutFactor', MemberWithoutFactorType);

const ResetFactorsType = builder.objectRef<ResetFactors>('ResetFactors').implement({
  description: 'The second factors of a member that were removed.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The member.' }),
    methods: t.expose('methods', {
      type: [FactorMethodType],
      authorize: 'inherited',
      description: 'How the member could prove a factor before.',
    }),
  }),
});
refersTo(ResetFactorsType, { orgId: 'organization', userId: 'user' });

builder.queryField('membersWithoutFactor', (t) =>
  t.field({
    type: MemberWithoutFactorPage,
    description: 'The members of an organization whose accounts have no second factor, oldest first.',
    // who may demand one
    authorize: { organization: 'identity_provider:update' },
    activity: { action: 'read', resourceType: 'organization_member' },
    args: { ...organizationArgs(), ...pageArgs() },
    resolve: ({ organization }, args, context) =>
      context.services.memberFactors.missing.list(context, organization, args),
  }),
);

builder.mutationField('resetMemberFactors', (t) =>
  t.field({
    type: ResetFactorsType,
    description:
      'Removes all second factors of a member who has lost them, with the recovery codes, and ends their sessions. ' +
      'It is recorded, and the user gets a mail. Only for an account that belongs to the organization alone. Refused ' +
      'to API tokens, for members with a role above the caller, and to a caller with a second factor that was not ' +
      'proven within the last ten minutes.',
    authorize: { organization: 'identity_provider:update' },
    activity: { action: 'update', resourceType: 'organization_member' },
    args: { ...organizationArgs(), userId: t.arg.id({ required: true, description: 'The member.' }) },
    resolve: ({ organization }, { userId }, { caller, services }) =>
      services.memberFactors.reset(caller, organization, userId),
  }),
);
