import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds } from '../../graphql/inputs.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { agentOf } from '../pages/agent-name.ts';
import type { EndedMemberSessions, MemberSession } from './member-sessions.ts';

const SessionMethod = wordEnum('SessionMethod', 'How a session was opened.', {
  password: 'With a password, or by a registration.',
  passkey: 'With a passkey.',
  saml: 'At an identity provider, by SAML.',
  oidc: 'At an identity provider, by OpenID Connect.',
});

const MemberSessionType = builder.objectRef<MemberSession>('MemberSession').implement({
  description: 'An open session of a member of an organization.',
  fields: (t) => ({
    sessionId: t.exposeID('id', { description: 'Identifier, `ses_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The member.' }),
    role: t.expose('role', { type: RoleEnum, authorize: 'inherited', description: 'The role in the organization.' }),
    method: t.expose('method', { type: SessionMethod, authorize: 'inherited', description: 'How it was opened.' }),
    identityProviderId: t.exposeID('identityProviderId', {
      nullable: true,
      description: 'The identity provider of the organization that signed the member in, if one did.',
    }),
    address: t.exposeString('address', {
      nullable: true,
      description: 'The address from which it was opened. `null` for sessions that earlier versions opened.',
    }),
    browser: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'The browser, such as `Firefox`. `null` for a program, and for a browser that is not known.',
      resolve: ({ userAgent }) => agentOf(userAgent)?.browser ?? null,
    }),
    system: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'The system of the browser, such as `Linux`.',
      resolve: ({ userAgent }) => agentOf(userAgent)?.system ?? null,
    }),
    isCurrent: t.boolean({
      authorize: 'inherited',
      description: 'Whether it is the session that asks.',
      resolve: ({ id }, _args, { caller: { principal } }) => !principal.token && principal.sessionId === id,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was opened.' }),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When it was last used, to the minute.')),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When it ends by itself.' }),
  }),
});
refersTo(MemberSessionType, { orgId: 'organization', userId: 'user', identityProviderId: 'identity_provider' });
const MemberSessionPage = pageType('MemberSession', MemberSessionType);

const EndMemberSessionsPayload = builder.objectRef<EndedMemberSessions>('EndMemberSessionsPayload').implement({
  description: 'The sessions of a member that have ended.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    userId: t.exposeID('userId', { description: 'The member.' }),
    endedCount: t.exposeInt('endedCount', { description: 'How many sessions have ended.' }),
  }),
});
refersTo(EndMemberSessionsPayload, { orgId: 'organization', userId: 'user' });

const WHICH =
  'All sessions of an account that the organization manages and no other one has as a member; of other accounts ' +
  'those that its own identity providers opened, and those that work in it and no provider opened.';

builder.queryField('memberSessions', (t) =>
  t.field({
    type: MemberSessionPage,
    description: `The open sessions of the members of an organization, newest first. ${WHICH}`,
    // who may remove a member may end what they have open
    authorize: { organization: 'organization_member:delete' },
    activity: { action: 'list', resourceType: 'organization_member' },
    args: {
      ...organizationArgs(),
      userId: t.arg.id({ constraints: bounds.id, description: 'Only sessions of this member.' }),
      ...pageArgs(),
    },
    resolve: ({ organization }, args, context) =>
      context.services.memberSessions.reads.list(context, organization, args),
  }),
);

builder.mutationField('endMemberSessions', (t) =>
  t.field({
    type: EndMemberSessionsPayload,
    description:
      'Ends a session of a member, or all of those that `memberSessions` lists, except for the one that asks. They ' +
      'end within a second. What was granted to applications until a sign-out ends with them; API tokens and other ' +
      'grants stay. Refused for members with a role above the caller.',
    authorize: { organization: 'organization_member:delete' },
    activity: { action: 'update', resourceType: 'organization_member' },
    args: {
      ...organizationArgs(),
      userId: t.arg.id({ required: true, description: 'The member.' }),
      sessionId: t.arg.id({ constraints: bounds.id, description: 'Only this session.' }),
    },
    resolve: ({ organization }, { userId, sessionId }, { caller, services }) =>
      services.memberSessions.end(caller, organization, { userId, sessionId }),
  }),
);
