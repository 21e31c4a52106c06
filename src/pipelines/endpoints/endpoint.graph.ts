import { builder } from '../../graphql/builder.ts';
import { inApp, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appArgs, idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { MAX_PATH_LENGTH, methods, PATH } from './endpoint.words.ts';

const EndpointMethod = wordEnum(
  'EndpointMethod',
  'The HTTP method of the requests of an endpoint.',
  {
    GET: 'Queries.',
    PUT: 'Replaces what is at its address.',
    PATCH: 'Changes what is at its address.',
    DELETE: 'Removes what is at its address.',
    POST: 'Sends something to be worked on.',
  },
  methods,
);

const Endpoint = builder.prismaObject('Endpoint', {
  description: 'An address at which an app answers: a request to it runs an augmentation.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    path: t.exposeString('path', { description: 'Path of the address, unique in the app: `/chat`.' }),
    method: t.expose('method', { type: EndpointMethod, description: 'HTTP method of requests.' }),
    augmentationId: t.exposeID('augmentationId', { description: 'The augmentation that a request runs.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the endpoint is in use.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
  }),
});
inApp(Endpoint, 'endpoint');
tracked(Endpoint);
refersTo(Endpoint, {
  appId: { kind: 'app', required: true },
  augmentationId: { kind: 'augmentation', required: true },
});
readable(Endpoint, { kind: 'endpoint', below: App, reads: ({ endpoints }) => endpoints.reads });

const path = { pattern: PATH, maxLength: MAX_PATH_LENGTH };

const CreateEndpointInput = builder.inputType('CreateEndpointInput', {
  description: 'A new endpoint.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    path: t.string({
      required: true,
      constraints: path,
      description:
        'Path of the address, unique in the app: lower-case letters, digits and single `.`, `_` or `-`, in parts ' +
        'that begin with `/`.',
    }),
    method: t.field({ type: EndpointMethod, description: 'HTTP method of requests. Default `POST`.' }),
    augmentationId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'The augmentation that a request runs: one of the app.',
    }),
    enabled: t.boolean({ description: 'Whether the endpoint is in use. Default true.' }),
    metadata: t.field({ type: 'JSONObject', description: 'Free-form data.' }),
  }),
});

const UpdateEndpointInput = builder.inputType('UpdateEndpointInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    path: t.string({ constraints: { ...path, notNull: true }, description: 'Path of the address, unique in the app.' }),
    method: t.field({ type: EndpointMethod, constraints: { notNull: true }, description: 'HTTP method of requests.' }),
    augmentationId: t.id({
      constraints: { ...bounds.id, notNull: true },
      description: 'The augmentation that a request runs: one of the app.',
    }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether the endpoint is in use.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { notNull: true },
      description: 'Replaces the free-form data.',
    }),
  }),
});

const target = () => ({ ...appArgs(), ...idArg('The endpoint.') });

const DeleteEndpointPayload = deletePayload('DeleteEndpoint', {
  noun: 'endpoint',
  in: ['orgId', 'workspaceId', 'appId'],
});

builder.mutationFields((t) => ({
  createEndpoint: t.field({
    type: Endpoint,
    description: 'Creates an endpoint.',
    authorize: { workspace: 'endpoint:create', in: 'app' },
    emits: ['endpoint.created'],
    args: { ...appArgs(), ...inputArg(CreateEndpointInput, 'The endpoint.') },
    resolve: ({ app }, { input }, { caller, services }) => services.endpoints.create(caller, app, input),
  }),
  updateEndpoint: t.field({
    type: Endpoint,
    description: 'Changes an endpoint.',
    authorize: { workspace: 'endpoint:update', in: 'app' },
    emits: ['endpoint.updated'],
    args: { ...target(), ...inputArg(UpdateEndpointInput), ...versionArg() },
    resolve: ({ app }, { id, input }, { caller, services }) => services.endpoints.update(caller, app, id, input),
  }),
  deleteEndpoint: t.field({
    type: DeleteEndpointPayload,
    description: 'Deletes an endpoint.',
    authorize: { workspace: 'endpoint:delete', in: 'app' },
    emits: ['endpoint.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ app }, { id }, { caller, services }) => services.endpoints.delete(caller, app, id),
  }),
}));
