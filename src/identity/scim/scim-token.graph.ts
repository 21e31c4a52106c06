import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import type { IssuedScimToken, ScimToken as ScimTokenRow } from './scim-token.service.ts';

const ScimToken = builder.objectRef<ScimTokenRow>('ScimToken').implement({
  description:
    'A token with which a directory keeps the members of an organization by SCIM. It works as long as its maker ' +
    'administers the organization, and grants or ends no role above that of its maker.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name.' }),
    prefix: t.exposeString('prefix', { description: 'The first characters of the token.' }),
    expiresAt: t.expose('expiresAt', optionalTime('When it expires. `null`: never.')),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When it was last used, to the minute.')),
  }),
});
inOrganization(ScimToken, 'scim_token');
tracked(ScimToken);
readable(ScimToken, {
  kind: 'scim_token',
  below: Organization,
  reads: ({ scimTokens }) => scimTokens.reads,
});

const IssuedScimTokenObject = builder.objectRef<IssuedScimToken>('IssuedScimToken').implement({
  description:
    'A token for a directory and its plaintext. It is not shown again, except when the same request is repeated with ' +
    'its Idempotency-Key.',
  fields: (t) => ({
    scimToken: t.expose('scimToken', { type: ScimToken, authorize: 'inherited', description: 'The token.' }),
    plaintextToken: t.exposeString('plaintextToken', { description: 'What the directory sends as its bearer token.' }),
    baseUrl: t.exposeString('baseUrl', { description: 'The address that the directory sends its requests to.' }),
  }),
});

const CreateScimTokenInput = builder.inputType('CreateScimTokenInput', {
  description: 'A new token for a directory.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name.' }),
    expiresInDays: t.int({
      constraints: { min: 1, max: 365 },
      description: 'In how many days it expires. Default 365. `null`: never, if the service allows that.',
    }),
  }),
});

const DeleteScimTokenPayload = deletePayload('DeleteScimToken', { noun: 'token', in: ['orgId'] });

builder.mutationFields((t) => ({
  createScimToken: t.field({
    type: IssuedScimTokenObject,
    description: 'Creates a token with which a directory keeps the members of the organization by SCIM.',
    authorize: { organization: 'scim_token:create' },
    emits: ['scim_token.created'],
    args: { ...organizationArgs(), ...inputArg(CreateScimTokenInput, 'The token.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.scimTokens.create(caller, organization, input),
  }),
  deleteScimToken: t.field({
    type: DeleteScimTokenPayload,
    description: 'Revokes a token of a directory: it is refused from the next request on. The members stay.',
    authorize: { organization: 'scim_token:delete' },
    emits: ['scim_token.deleted'],
    args: { ...organizationArgs(), ...idArg('The token.'), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.scimTokens.delete(caller, organization, id),
  }),
}));
