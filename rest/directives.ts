import type { ASTNode, DirectiveNode } from 'graphql';
import {
  DirectiveLocation,
  GraphQLBoolean,
  GraphQLDirective,
  GraphQLEnumType,
  GraphQLFloat,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLSchema,
  GraphQLString,
  getDirectiveValues,
} from 'graphql';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const errorSets = ['A', 'A0', 'B', 'C', 'S', 'S0'] as const;

/** The HTTP methods a route may have. */
export type RestMethod = (typeof methods)[number];
/** The error sets of the spec's Errors part. */
export type ErrorSet = (typeof errorSets)[number];

const enumOf = (name: string, values: readonly string[]) =>
  new GraphQLEnumType({ name, values: Object.fromEntries(values.map((value) => [value, {}])) });
const { QUERY, MUTATION, SUBSCRIPTION, FIELD, FRAGMENT_DEFINITION, VARIABLE_DEFINITION } = DirectiveLocation;
const text = { type: new GraphQLNonNull(GraphQLString) };

const rest = new GraphQLDirective({
  name: 'rest',
  description: 'The route of this operation.',
  locations: [QUERY, MUTATION, SUBSCRIPTION],
  args: {
    method: { type: new GraphQLNonNull(enumOf('RestMethod', methods)) },
    path: { ...text, description: 'Path template: `/v1/orgs/{org_id}`. Each `{name}` is a variable of the operation.' },
    errors: { type: enumOf('RestErrorSet', errorSets), defaultValue: 'B', description: 'Error set of the spec.' },
    status: { type: GraphQLInt, description: 'Status of success. 204 answers without a body. Default 200.' },
    maxValues: {
      type: GraphQLInt,
      description: 'How many JSON values the body may have, if those are more than of other routes.',
    },
    replayed: {
      type: new GraphQLNonNull(GraphQLBoolean),
      defaultValue: true,
      description:
        'Whether the same `Idempotency-Key` gets the first answer of a `POST` again. Not where each answer is ' +
        'checked, counted and recorded, because it is a credential.',
    },
  },
});
const body = new GraphQLDirective({
  name: 'body',
  description: 'On a variable: the JSON body as one input object. On a field: its value is the response body.',
  locations: [VARIABLE_DEFINITION, FIELD],
});
const upload = new GraphQLDirective({
  name: 'upload',
  description:
    'On a variable: the body is a form (`multipart/form-data`) with one file, as one input object. The file is ' +
    'stored while it arrives, and this field gets the id of the stored file.',
  locations: [VARIABLE_DEFINITION],
  args: { file: { ...text, description: 'The field of the form that is the file.' } },
});
const form = new GraphQLDirective({
  name: 'form',
  description:
    'Beside `@body`: the body may also be a form without files (`application/x-www-form-urlencoded`). Its fields are ' +
    'the fields of the input object, in any spelling: `SAMLResponse` is `saml_response`.',
  locations: [VARIABLE_DEFINITION],
});
const range = new GraphQLDirective({
  name: 'range',
  description: 'Inclusive bounds of a number.',
  locations: [VARIABLE_DEFINITION],
  args: { min: { type: GraphQLFloat }, max: { type: GraphQLFloat } },
});
const oneOf = new GraphQLDirective({
  name: 'oneOf',
  description: 'Closed set of strings.',
  locations: [VARIABLE_DEFINITION],
  args: { values: { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(GraphQLString))) } },
});
const header = new GraphQLDirective({
  name: 'header',
  description: 'The value of the variable comes from this request header.',
  locations: [VARIABLE_DEFINITION],
  args: { name: text },
});
const commaList = new GraphQLDirective({
  name: 'commaList',
  description: 'The list is one query parameter, separated by commas, instead of a repeated parameter.',
  locations: [VARIABLE_DEFINITION],
});
const flatten = new GraphQLDirective({
  name: 'flatten',
  description: 'Lifts the fields of the nested object into its parent. A null object gives null fields.',
  locations: [FIELD],
});
const empty = new GraphQLDirective({
  name: 'empty',
  description: 'On the `@body` field: success is 204 without a body.',
  locations: [FIELD],
});
const nothing = new GraphQLDirective({
  name: 'nothing',
  description: 'On the `@body` field: the response body is always the JSON text `null`.',
  locations: [FIELD],
});
const redirect = new GraphQLDirective({
  name: 'redirect',
  description:
    'On a plain field of the `@body` object: if it has a value, the answer is 303 to this address, without body. It ' +
    'is not part of the body.',
  locations: [FIELD],
});
const eventId = new GraphQLDirective({
  name: 'eventId',
  description:
    'On a field of the `@body` of a subscription: its value becomes the `id` of the frame and is not part of `data`. ' +
    'A client that reconnects sends it in the variable with `@lastEventId`.',
  locations: [FIELD],
});
const lastEventId = new GraphQLDirective({
  name: 'lastEventId',
  description: 'The value of the variable is the `id` of the last frame that the client saw (`Last-Event-ID`).',
  locations: [VARIABLE_DEFINITION],
});

const etag = new GraphQLDirective({
  name: 'etag',
  description:
    'On a plain field: the version of its object, sent as the header `ETag` and not shown in the body. ' +
    'On an object in the `@body` field: the `ETag` is the version of this object.',
  locations: [FIELD],
});

const whole = new GraphQLDirective({
  name: 'whole',
  description:
    'The fragment also selects all other plain fields of its type, in their order: those that are no objects and ' +
    'take no arguments.',
  locations: [FRAGMENT_DEFINITION],
});

/** The directives of the façade's document language (design §1). They are stripped before execution. */
export const facadeDirectives: readonly GraphQLDirective[] = [
  rest,
  body,
  upload,
  form,
  range,
  oneOf,
  header,
  commaList,
  flatten,
  empty,
  nothing,
  etag,
  redirect,
  eventId,
  lastEventId,
  whole,
];
const facadeNames = new Set(facadeDirectives.map((directive) => directive.name));

/** The schema that façade documents are written for: the product's schema plus {@link facadeDirectives}. */
export function facadeSchema(schema: GraphQLSchema): GraphQLSchema {
  // graphql-js has its own `@oneOf`, for input object definitions only; documents cannot use that one
  const others = schema.getDirectives().filter((directive) => !facadeNames.has(directive.name));
  return new GraphQLSchema({ ...schema.toConfig(), directives: [...others, ...facadeDirectives] });
}

export const isFacadeDirective = (node: DirectiveNode): boolean => facadeNames.has(node.name.value);

type Directed = ASTNode & { readonly directives?: readonly DirectiveNode[] };

/** The arguments of `@rest`, or undefined when the operation has none. */
export const restOf = (node: Directed) =>
  getDirectiveValues(rest, node) as
    | {
        method: RestMethod;
        path: string;
        errors: ErrorSet;
        status?: number | null;
        maxValues?: number | null;
        replayed: boolean;
      }
    | undefined;
export const rangeOf = (node: Directed) =>
  getDirectiveValues(range, node) as { min?: number | null; max?: number | null } | undefined;
export const uploadOf = (node: Directed) => getDirectiveValues(upload, node) as { file: string } | undefined;
export const oneOfOf = (node: Directed) => getDirectiveValues(oneOf, node) as { values: string[] } | undefined;
export const headerOf = (node: Directed) =>
  has(node, 'lastEventId')
    ? { name: 'last-event-id' }
    : (getDirectiveValues(header, node) as { name: string } | undefined);

type PlainDirective =
  | 'body'
  | 'form'
  | 'commaList'
  | 'flatten'
  | 'empty'
  | 'nothing'
  | 'etag'
  | 'redirect'
  | 'eventId'
  | 'lastEventId'
  | 'whole';

/** Whether the node has a directive without arguments. */
export const has = (node: Directed, name: PlainDirective): boolean =>
  node.directives?.some((directive) => directive.name.value === name) ?? false;

/** The directive's own node, for error positions. */
export const directiveNode = (node: Directed, name: string): DirectiveNode | undefined =>
  node.directives?.find((directive) => directive.name.value === name);
