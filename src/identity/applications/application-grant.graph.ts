import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime } from '../../graphql/common-fields.ts';
import { bounds } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import type { ApplicationGrant as GrantRow } from '../oauth/application-grants.ts';
import { MOST_SHOWN } from '../pages/most-shown.ts';

const ApplicationGrant = builder.objectRef<GrantRow>('ApplicationGrant').implement({
  description: 'What a user has granted to an application, and not taken back.',
  interfaces: [Node],
  fields: (t) => ({
    applicationId: t.exposeID('applicationId', { description: 'The application that acts for the user.' }),
    userId: t.exposeID('userId', { description: 'Who granted it.' }),
    scopes: t.exposeStringList('scopes', {
      description:
        'Names of permissions, and `read`, `write` or `admin`. Empty if the application only learns who the user is.',
    }),
    workspaceIds: t.exposeStringList('workspaceIds', {
      description: 'The workspaces that it is restricted to. Empty: all workspaces of the user.',
    }),
    endsWithSession: t.boolean({
      authorize: 'inherited',
      description: 'Whether it ends when the user signs out of the browser, and not only when it is taken back.',
      resolve: ({ sessionId }) => sessionId !== null,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the user granted it.' }),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When a token of it was last used.')),
  }),
});
inOrganization(ApplicationGrant, 'application_grant');
refersTo(ApplicationGrant, {
  applicationId: 'application',
  userId: 'user',
  workspaceIds: { kind: 'workspace', atMost: MOST_SHOWN },
});
readable(ApplicationGrant, {
  kind: 'application_grant',
  below: Organization,
  reads: ({ applicationGrants }) => applicationGrants.reads,
  filters: () =>
    builder.args((t) => ({
      applicationId: t.id({ constraints: bounds.id, description: 'Only grants to this application.' }),
      userId: t.id({ constraints: bounds.id, description: 'Only grants of this user.' }),
    })),
});

const RevokeApplicationGrantPayload = deletePayload('RevokeApplicationGrant', {
  noun: 'grant',
  in: ['orgId', 'applicationId'],
});

builder.mutationField('revokeApplicationGrant', (t) =>
  t.field({
    type: RevokeApplicationGrantPayload,
    description: 'Takes back what a user has granted to an application. Its tokens end within a second.',
    authorize: { organization: 'application_grant:revoke' },
    args: { ...organizationArgs(), ...idArg('The grant.') },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.applicationGrants.revokeIn(caller, organization, id),
  }),
);
