import type { IdentityProviderTest as TestRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { Evaluation } from './federated-sign-in.ts';
import type { ProviderTestResult } from './identity-provider-tests.ts';
import { refusalReasons } from './refusals.ts';
import type { RoleChange } from './role-changes.ts';
import { linkReasons } from './sign-in-admission.words.ts';

const resultOf = ({ result }: TestRow): ProviderTestResult | null => result as unknown as ProviderTestResult | null;

const KeptRoleReason = wordEnum<NonNullable<RoleChange['kept']>>(
  'KeptRoleReason',
  'Why a role stays although no group grants it.',
  { last_owner: 'Somebody has to be owner.' },
);

const TestStatus = wordEnum('IdentityProviderTestStatus', 'Status of a test.', {
  pending: 'The provider has not answered yet.',
  succeeded: 'The provider said who somebody is.',
  failed: 'The sign-in failed.',
});

const TestOutcome = wordEnum<Evaluation['outcome']>('IdentityProviderTestOutcome', 'What a sign-in would do.', {
  sign_in: 'Sign in to an account that is linked.',
  link: 'Link an account that is there.',
  create: 'Make an account.',
  refused: 'Nothing: it would be refused.',
});

const SignInReason = wordEnum('SignInReason', 'Why an account would be linked, or a sign-in is refused.', {
  ...linkReasons,
  ...refusalReasons,
});

const IdentityRoleChange = builder.objectRef<RoleChange & { orgId: string }>('IdentityRoleChange').implement({
  description: 'What a sign-in does to a role.',
  fields: (t) => ({
    workspaceId: t.id({
      authorize: 'inherited',
      nullable: true,
      description: 'The workspace; `null` for the organization.',
      resolve: (change) => change.workspace_id,
    }),
    before: t.expose('before', {
      type: RoleEnum,
      nullable: true,
      description: 'The role before the sign-in; `null` if not a member.',
    }),
    after: t.expose('after', {
      type: RoleEnum,
      nullable: true,
      description: 'The role after the sign-in; `null` if not a member.',
    }),
    kept: t.field({
      type: KeptRoleReason,
      authorize: 'inherited',
      nullable: true,
      description: 'Why the role stays although no group grants it; `null` if it does not.',
      resolve: ({ kept }) => kept ?? null,
    }),
  }),
});

export const IdentityProviderTest = builder.objectRef<TestRow>('IdentityProviderTest').implement({
  description:
    "A test sign-in of an administrator: the provider's answer, and what a real sign-in would do. Kept for a day.",
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `idt_…`.' }),
    status: t.expose('status', { type: TestStatus, description: 'Its status.' }),
    failure: t.exposeString('failure', { nullable: true, description: 'Why it failed.' }),
    startedBy: t.exposeID('startedBy', { description: 'The administrator.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was started.' }),
    finishedAt: t.expose('finishedAt', optionalTime('When the provider answered.')),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'When the result is removed.' }),
    subject: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'The identifier of the user at the provider.',
      resolve: (row) => resultOf(row)?.identity.subject ?? null,
    }),
    email: t.string({
      authorize: 'inherited',
      nullable: true,
      description: 'The e-mail address that the provider gave.',
      resolve: (row) => resultOf(row)?.identity.email ?? null,
    }),
    emailVerified: t.boolean({
      authorize: 'inherited',
      description: 'Whether the provider says that the address is verified.',
      resolve: (row) => resultOf(row)?.identity.emailVerified ?? false,
    }),
    groups: t.stringList({
      authorize: 'inherited',
      description: 'The groups of the user.',
      resolve: (row) => resultOf(row)?.identity.groups ?? [],
    }),
    claims: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'All claims or attributes from the provider.',
      resolve: (row) => resultOf(row)?.claims ?? {},
    }),
    outcome: t.field({
      type: TestOutcome,
      authorize: 'inherited',
      nullable: true,
      description: 'What would happen.',
      resolve: (row) => resultOf(row)?.evaluation.outcome ?? null,
    }),
    reason: t.field({
      type: SignInReason,
      authorize: 'inherited',
      nullable: true,
      description: 'Why the account would be linked, or the sign-in is refused.',
      resolve: (row) => resultOf(row)?.evaluation.reason ?? null,
    }),
    userId: t.id({
      authorize: 'inherited',
      nullable: true,
      description: 'The account, if it belongs to the organization.',
      resolve: (row) => resultOf(row)?.evaluation.userId ?? null,
    }),
    profile: t.stringList({
      authorize: 'inherited',
      description: 'The fields of the profile that would change.',
      resolve: (row) => resultOf(row)?.evaluation.profile ?? [],
    }),
    roles: t.field({
      type: [IdentityRoleChange],
      authorize: 'inherited',
      description: 'The roles that would change by the groups.',
      resolve: (row) => (resultOf(row)?.evaluation.roles ?? []).map((change) => ({ ...change, orgId: row.orgId })),
    }),
  }),
});
refersTo(IdentityProviderTest, { startedBy: 'user' });

builder.queryField('identityProviderTest', (t) =>
  t.field({
    type: IdentityProviderTest,
    description: 'The result of a test of a provider.',
    authorize: { organization: 'identity_provider:update' },
    activity: { resourceType: 'identity_provider', action: 'read' },
    args: {
      ...organizationArgs(),
      ...idArg('The provider.'),
      testId: t.arg.id({ required: true, description: 'The test.' }),
    },
    resolve: ({ organization }, { id, testId }, { services }) =>
      services.identityProviderTests.get(organization, id, testId),
  }),
);

/** A test that was started, and where it goes on. */
interface StartedTest {
  test: TestRow;
  redirectUrl: string;
}

const StartedIdentityProviderTest = builder.objectRef<StartedTest>('StartedIdentityProviderTest').implement({
  description: 'A test that was started.',
  fields: (t) => ({
    test: t.expose('test', {
      type: IdentityProviderTest,
      authorize: 'inherited',
      description: 'The test; `identityProviderTest` shows its result once the provider has answered.',
    }),
    redirectUrl: t.exposeString('redirectUrl', {
      description: 'The page of the provider, to open in a browser within ten minutes.',
    }),
  }),
});

builder.mutationField('testIdentityProvider', (t) =>
  t.field({
    type: StartedIdentityProviderTest,
    description:
      "Starts a test sign-in: it shows the provider's answer and what a real sign-in would do. It changes nothing " +
      'and signs nobody in.',
    authorize: { organization: 'identity_provider:update' },
    activity: { resourceType: 'identity_provider', action: 'execute' },
    mayFail: ['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'],
    args: { ...organizationArgs(), ...idArg('The provider.') },
    resolve: async ({ organization }, { id }, { caller, services }) => {
      const { identityProviderTests: tests, sso } = services;
      const provider = await tests.provider(organization, id);
      const { redirectUrl, testId } = await sso.beginTest(caller, provider, (tx) => tests.begin(tx, caller, provider));
      return { redirectUrl, test: await tests.get(organization, id, testId) };
    },
  }),
);
