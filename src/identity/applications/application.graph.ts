import { builder } from '../../graphql/builder.ts';
import { inOrganization, tracked } from '../../graphql/common-fields.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import type { Application as ApplicationRow, IssuedApplication } from './application.service.ts';

const ApplicationType = wordEnum('ApplicationType', 'Whether an application can keep a secret.', {
  public: 'It runs at its users: in a browser, as an app or on a command line. It has no secret.',
  confidential: 'It runs on a server, and authenticates with a secret.',
});

const IdTokenAlgorithm = wordEnum('IdTokenAlgorithm', 'What signs the ID tokens of an application.', {
  ES256: 'ECDSA with P-256: short and fast.',
  RS256: 'RSA with 2,048 bits, for libraries that know nothing else.',
});

const Application = builder.objectRef<ApplicationRow>('Application').implement({
  description: 'A program of an organization that signs people in and acts for them, within what they grant.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'What users are shown.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    applicationType: t.expose('applicationType', {
      type: ApplicationType,
      description: 'Whether it can keep a secret. It never changes.',
    }),
    redirectUris: t.exposeStringList('redirectUris', {
      description: 'Where answers may go. Compared exactly; only the port of an address of the own machine is free.',
    }),
    isFirstParty: t.exposeBoolean('isFirstParty', {
      description: 'Whether members may go without being asked what it may do, for little.',
    }),
    idTokenSignedResponseAlg: t.expose('idTokenSignedResponseAlg', {
      type: IdTokenAlgorithm,
      description: 'What signs its ID tokens.',
    }),
    metadataUrl: t.exposeString('metadataUrl', {
      nullable: true,
      description:
        'The `client_id` of a program of all organizations: the address of the document that describes it, or ' +
        '`urn:platform-management:command-line`. Members let such a program in themselves. `null` for an application ' +
        'that the organization has registered.',
    }),
    secretChangedAt: t.expose('secretChangedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it got its secret. `null` for a public application.',
    }),
  }),
});
inOrganization(Application, 'application');
tracked(Application);
readable(Application, {
  kind: 'application',
  below: Organization,
  reads: ({ applications }) => applications.reads,
});

const IssuedApplicationObject = builder.objectRef<IssuedApplication>('IssuedApplication').implement({
  description:
    'An application and its secret. The secret is not shown again, except when the same request is repeated with ' +
    'its Idempotency-Key.',
  fields: (t) => ({
    application: t.expose('application', {
      type: Application,
      authorize: 'inherited',
      description: 'The application. Its identifier is its `client_id`.',
    }),
    secret: t.exposeString('secret', {
      nullable: true,
      description: 'The `client_secret`. `null` for a public application.',
    }),
  }),
});

const MAX_URIS = 20;
const uris = { maxItems: MAX_URIS, item: { minLength: 1, maxLength: 2048 } } as const;

const URIS =
  'Where answers may go: https, http on the own machine, or a scheme of its own like `com.example.app:/done`. ' +
  'In ASCII, as a browser writes it. ' +
  'None for an application that only devices use.';

/** The fields that clients may leave out, when they create an application and when they change one. */
const optional = (t: InputFields) => ({
  description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  isFirstParty: t.boolean({
    constraints: { notNull: true },
    description: 'Whether members may go without being asked what it may do, for little. Default `false`.',
  }),
  idTokenSignedResponseAlg: t.field({
    type: IdTokenAlgorithm,
    constraints: { notNull: true },
    description: 'What signs its ID tokens. Default `ES256`.',
  }),
});

const CreateApplicationInput = builder.inputType('CreateApplicationInput', {
  description: 'A new application.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'What users are shown.' }),
    applicationType: t.field({
      type: ApplicationType,
      required: true,
      description: 'Whether it can keep a secret.',
    }),
    redirectUris: t.stringList({ required: true, constraints: uris, description: URIS }),
    ...optional(t),
  }),
});

const UpdateApplicationInput = builder.inputType('UpdateApplicationInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'What users are shown.' }),
    redirectUris: t.stringList({ constraints: { ...uris, notNull: true }, description: URIS }),
    ...optional(t),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The application.') });

const DeleteApplicationPayload = deletePayload('DeleteApplication', { noun: 'application', in: ['orgId'] });

builder.mutationFields((t) => ({
  createApplication: t.field({
    type: IssuedApplicationObject,
    description: 'Creates an application. What users grant to it is for this organization.',
    authorize: { organization: 'application:create' },
    emits: ['application.created'],
    args: { ...organizationArgs(), ...inputArg(CreateApplicationInput, 'The application.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.applications.create(caller, organization, input),
  }),
  updateApplication: t.field({
    type: Application,
    description: 'Changes an application.',
    authorize: { organization: 'application:update' },
    emits: ['application.updated'],
    args: { ...target(), ...inputArg(UpdateApplicationInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.applications.update(caller, organization, id, input),
  }),
  rotateApplicationSecret: t.field({
    type: IssuedApplicationObject,
    description: 'Gives a confidential application a new secret. The old one ends at once.',
    authorize: { organization: 'application:update' },
    emits: ['application.updated'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.applications.rotateSecret(caller, organization, id),
  }),
  deleteApplication: t.field({
    type: DeleteApplicationPayload,
    description: 'Deletes an application, and ends all that was granted to it.',
    authorize: { organization: 'application:delete' },
    emits: ['application.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.applications.delete(caller, organization, id),
  }),
}));
