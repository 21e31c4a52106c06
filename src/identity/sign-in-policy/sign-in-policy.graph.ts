import { stepUps } from '../../access/step-up.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import type { BrokenGlass } from './break-glass.ts';
import type { SignInPolicy } from './sign-in-policy.service.ts';

const text = {
  ssoRequired:
    'Whether members reach the organization only by a sign-in at one of its identity providers. Sessions of a ' +
    'password, and what was granted to applications in one, are refused there with the reason `sso_required`; API ' +
    'tokens work while a provider that is switched on knows their user.',
  ssoRequiredDomains:
    'The same for members with an address in one of these domains. The organization must have proven them.',
  breakGlass: 'Whether owners may get in with their password nevertheless, for an hour (`breakGlass`).',
  requireFactor:
    'Whether members reach the organization only with a second factor of their account. After the grace, members ' +
    'without one are refused there with the reason `factor_missing`, and sessions that were opened without it with ' +
    '`factor_unproven`. Who signs in at an identity provider of the organization needs none here, so changes of ' +
    'how members sign in take a fresh factor meanwhile, as `sign_in_settings` in `stepUp` says.',
  factorGraceDays: 'How many days members may be without a factor, from when it was demanded or they joined.',
  stepUp:
    'What takes a second factor that was proven within the last ten minutes in the same session. Otherwise it is ' +
    'refused with the reason `fresh_factor`.',
  requireRevealReason:
    'Whether a secret, or the credential of a connection, is revealed only with a `reason`, which its activity ' +
    'record keeps. Without one, a reveal is refused as wrong input. It documents reveals, and stops nobody who may ' +
    'reveal.',
} as const;

const StepUpType = wordEnum('StepUp', 'What an organization may ask a fresh second factor for.', {
  secret_reveal:
    'The values of secrets, credentials of connections, new API tokens that may reveal them, and new secrets of ' +
    'webhooks. API tokens that exist go on; what was granted to applications is refused.',
  sign_in_settings:
    'Changes of how members sign in: this policy, identity providers, directories; and of applications. No token may.',
  organization_deletion: 'The deletion of the organization. No token may.',
  member_changes:
    'To add members, to invite them, and to change their roles, in the organization and its workspaces. No token ' +
    'may; identity providers and directories go on.',
});

const SignInPolicyType = builder.objectRef<SignInPolicy>('SignInPolicy').implement({
  description: 'How members of an organization have to sign in, and what it asks of them there.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    ssoRequired: t.exposeBoolean('ssoRequired', { description: text.ssoRequired }),
    ssoRequiredDomains: t.exposeStringList('ssoRequiredDomains', { description: text.ssoRequiredDomains }),
    breakGlass: t.exposeBoolean('breakGlass', { description: text.breakGlass }),
    membersWithoutIdentity: t.exposeInt('membersWithoutIdentity', {
      description: 'How many members are shut out, because no identity provider of the organization knows them.',
    }),
    requireFactor: t.exposeBoolean('requireFactor', { description: text.requireFactor }),
    factorRequiredAt: t.expose('factorRequiredAt', optionalTime('Since when a factor is demanded.')),
    factorGraceDays: t.exposeInt('factorGraceDays', { description: text.factorGraceDays }),
    stepUp: t.expose('stepUp', { type: [StepUpType], authorize: 'inherited', description: text.stepUp }),
    requireRevealReason: t.exposeBoolean('requireRevealReason', { description: text.requireRevealReason }),
  }),
});

const BrokenGlassType = builder.objectRef<BrokenGlass>('BrokenGlass').implement({
  description: 'An organization that its owner has opened with the password.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    until: t.expose('until', { type: 'DateTime', description: 'When it is closed again.' }),
  }),
});

refersTo(SignInPolicyType, { orgId: 'organization' });

const domains = { maxItems: 100, item: { minLength: 1, maxLength: 253 }, notNull: true } as const satisfies Constraints;
const kept = { notNull: true } as const satisfies Constraints;

const UpdateSignInPolicyInput = builder.inputType('UpdateSignInPolicyInput', {
  description: 'The rules to change. Omitted rules stay as they are.',
  fields: (t) => ({
    ssoRequired: t.boolean({ constraints: kept, description: text.ssoRequired }),
    ssoRequiredDomains: t.stringList({
      constraints: domains,
      description: `${text.ssoRequiredDomains} Replaces all.`,
    }),
    breakGlass: t.boolean({ constraints: kept, description: text.breakGlass }),
    requireFactor: t.boolean({ constraints: kept, description: text.requireFactor }),
    factorGraceDays: t.int({ constraints: { min: 0, max: 30, notNull: true }, description: text.factorGraceDays }),
    stepUp: t.field({
      type: [StepUpType],
      constraints: { maxItems: stepUps.length, notNull: true },
      description: `${text.stepUp} Replaces all.`,
    }),
    requireRevealReason: t.boolean({ constraints: kept, description: text.requireRevealReason }),
  }),
});

const BreakGlassInput = builder.inputType('BreakGlassInput', {
  description: 'Who is there, and why.',
  fields: (t) => ({
    password: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1_024, sensitive: true },
      description: "The caller's password.",
    }),
    reason: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 500 },
      description: 'Why it is needed. It is recorded, and every owner reads it.',
    }),
  }),
});

builder.queryField('signInPolicy', (t) =>
  t.field({
    type: SignInPolicyType,
    description: 'How members of an organization have to sign in.',
    authorize: { organization: 'identity_provider:update' },
    activity: { action: 'read', resourceType: 'organization' },
    args: organizationArgs(),
    resolve: ({ organization }, _args, { services }) => services.signInPolicies.get(organization),
  }),
);

builder.mutationFields((t) => ({
  updateSignInPolicy: t.field({
    type: SignInPolicyType,
    description:
      'Changes how members of an organization have to sign in. It takes effect within a second. Refused to API ' +
      'tokens, and when no owner could still sign in. A change of what is demanded of factors takes one of the ' +
      'caller that was proven within the last ten minutes.',
    authorize: { organization: 'identity_provider:update' },
    activity: { action: 'update', resourceType: 'organization' },
    emits: ['organization.updated'],
    args: { ...organizationArgs(), ...inputArg(UpdateSignInPolicyInput, 'The rules.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.signInPolicies.update(caller, organization, input),
  }),
  breakGlass: t.field({
    type: BrokenGlassType,
    description:
      'Opens an organization that demands single sign-on to the session of its owner, for an hour, by the password. ' +
      'It is recorded, and each owner gets a notification and a mail.',
    authorize: { session: 'organization:access' },
    activity: { action: 'update', resourceType: 'organization' },
    args: { ...organizationArgs(), ...inputArg(BreakGlassInput, 'Who is there, and why.') },
    resolve: (_root, { orgId, input }, { caller, services }) => services.breakGlass.open(caller, { orgId, ...input }),
  }),
}));
