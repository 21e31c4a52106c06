import { GROUP_SCHEMA, USER_SCHEMA } from './scim-resources.ts';

/** What the service says of itself (RFC 7643, 5 to 7). */

const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
export const MOST_RESULTS = 100;

/** A list of resources. */
export const listResponse = (resources: readonly object[], total = resources.length, startIndex = 1) => ({
  schemas: [LIST],
  totalResults: total,
  startIndex,
  itemsPerPage: resources.length,
  Resources: resources,
});

export const providerConfig = (base: string) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: MOST_RESULTS },
  changePassword: { supported: false },
  sort: { supported: true },
  etag: { supported: true },
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'Bearer token',
      description: 'A token that an administrator of the organization made for the directory.',
      primary: true,
    },
  ],
  meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
});

export const resourceTypes = (base: string) => [
  resourceType(base, 'User', USER_SCHEMA, 'A member of the organization.'),
  resourceType(base, 'Group', GROUP_SCHEMA, 'A group, which group mappings of identity providers name.'),
];

const resourceType = (base: string, name: string, schema: string, description: string) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
  id: name,
  name,
  description,
  endpoint: `/${name}s`,
  schema,
  meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
});

interface AttributeOptions {
  type?: string;
  required?: boolean;
  caseExact?: boolean;
  mutability?: string;
  returned?: string;
  uniqueness?: string;
  multiValued?: boolean;
  subAttributes?: readonly object[];
}

const attribute = (name: string, description: string, options: AttributeOptions = {}) => ({
  name,
  type: 'string',
  multiValued: false,
  description,
  required: false,
  caseExact: false,
  mutability: 'readWrite',
  returned: 'default',
  uniqueness: 'none',
  ...options,
});

const id = attribute('id', 'The identifier of the service.', {
  caseExact: true,
  mutability: 'readOnly',
  returned: 'always',
  uniqueness: 'server',
});
const externalId = attribute('externalId', 'The identifier of the directory.', { caseExact: true });

const named = (what: string) => [
  attribute('value', `The identifier of the ${what}.`, { caseExact: true, mutability: 'immutable' }),
  attribute('display', `The name of the ${what}.`, { mutability: 'readOnly' }),
  attribute('$ref', `The address of the ${what}.`, { type: 'reference', caseExact: true, mutability: 'readOnly' }),
];

const userAttributes = [
  id,
  externalId,
  attribute('userName', 'The name that the directory knows the user by.', { required: true, uniqueness: 'server' }),
  attribute('displayName', 'The name that is shown.'),
  attribute('name', 'The parts of the name.', {
    type: 'complex',
    subAttributes: [
      attribute('formatted', 'The whole name.'),
      attribute('givenName', 'The given name.'),
      attribute('familyName', 'The family name.'),
    ],
  }),
  attribute('emails', 'The address of the user. The service keeps one.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'The address.'),
      attribute('type', 'Always work.', { mutability: 'readOnly' }),
      attribute('primary', 'Always true.', { type: 'boolean', mutability: 'readOnly' }),
    ],
  }),
  attribute('active', 'Whether the user is a member of the organization.', { type: 'boolean' }),
  attribute('groups', 'The groups of the user.', {
    type: 'complex',
    multiValued: true,
    mutability: 'readOnly',
    returned: 'request',
    subAttributes: named('group'),
  }),
];

const groupAttributes = [
  id,
  externalId,
  attribute('displayName', 'The name of the group.', { required: true, uniqueness: 'server' }),
  attribute('members', 'The users in the group.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [...named('user'), attribute('type', 'Always User.', { mutability: 'readOnly' })],
  }),
];

const schemaOf = (base: string, of: string, name: string, attributes: readonly object[]) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
  id: of,
  name,
  description: `What the service keeps of a ${name.toLowerCase()}.`,
  attributes,
  meta: { resourceType: 'Schema', location: `${base}/Schemas/${of}` },
});

export const schemas = (base: string) => [
  schemaOf(base, USER_SCHEMA, 'User', userAttributes),
  schemaOf(base, GROUP_SCHEMA, 'Group', groupAttributes),
];
