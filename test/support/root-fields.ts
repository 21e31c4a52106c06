import {
  type GraphQLArgument,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
  parse,
} from 'graphql';
import { measureDocument } from '../../src/engine/path/document-size.ts';
import { schema } from '../../src/wiring/schema.ts';
import { snakeCase } from './names.ts';
import { constraintsOf, type SampleSource, sampleArgument, sampleInput, sharedIds } from './samples.ts';

type Kind = 'query' | 'mutation' | 'subscription';
type Field = GraphQLField<unknown, unknown>;

/** A field of Query, Mutation or Subscription. */
export interface RootField {
  kind: Kind;
  name: string;
  field: Field;
}

const fieldsOf = (kind: Kind, type: GraphQLObjectType | null | undefined): RootField[] =>
  Object.values(type?.getFields() ?? {}).map((field) => ({ kind, name: field.name, field }));

/** Every root field of the schema. */
export const rootFields: readonly RootField[] = [
  ...fieldsOf('query', schema.getQueryType()),
  ...fieldsOf('mutation', schema.getMutationType()),
  ...fieldsOf('subscription', schema.getSubscriptionType()),
];

/** `Query.workspace`, for titles. */
export const titleOf = ({ kind, name }: RootField): string => `${kind[0]!.toUpperCase()}${kind.slice(1)}.${name}`;

/** What `id` means, where neither the answer nor the name of the field tells. THE place to add one. */
const idMeanings: Record<string, string> = {
  secretVersions: 'secret_id',
  setReturnAddresses: 'instance_id',
  createConnectLink: 'instance_id',
  endUserConnection: 'end_user_connection_id',
  deleteEndUserConnection: 'end_user_connection_id',
  previewToolReimport: 'tool_id',
  toolActionPages: 'instance_id',
  namespaceToolActionPages: 'instance_id',
  entityTraversal: 'entity_id',
  entityPath: 'entity_id',
  artifactVersions: 'artifact_id',
  organizationRecipeVersions: 'organization_recipe_id',
  recipe: 'recipe_id',
  rotateApplicationSecret: 'application_id',
  rotateWebhookSecret: 'webhook_id',
  testWebhook: 'webhook_id',
  testAuditStream: 'audit_stream_id',
  auditStreamDeliveries: 'audit_stream_id',
  auditStreamLag: 'audit_stream_id',
  webhookDeliveries: 'webhook_id',
  redeliverWebhookDeliveries: 'webhook_id',
  identityProvider: 'idp_id',
  updateIdentityProvider: 'idp_id',
  deleteIdentityProvider: 'idp_id',
  identityLink: 'idp_id',
  identityProviderTest: 'idp_id',
  testIdentityProvider: 'idp_id',
  startDomainProof: 'idp_id',
  checkDomainProof: 'idp_id',
  linkIdentity: 'idp_id',
  unlinkIdentity: 'idp_id',
};

/** The path-variable name of an argument: `id` of `workspace` and of `deleteWorkspace` is a `workspace_id`. */
export function meaningOf({ name, field }: RootField, argument: string, ids: Readonly<Record<string, string>>): string {
  if (argument !== 'id') return snakeCase(argument);
  if (idMeanings[name]) return idMeanings[name];
  const named = snakeCase(getNamedType(field.type).name);
  const words = snakeCase(name).split('_');
  const candidates = [`${named}_id`, ...words.map((_, index) => `${words.slice(index).join('_')}_id`)];
  const known = candidates
    .map((candidate) => (candidate === 'organization_id' ? 'org_id' : candidate))
    .find((candidate) => candidate in ids);
  return known ?? 'id';
}

/** Valid arguments of a root field, required ones only unless told. */
export function argumentsOf(
  root: RootField,
  source: SampleSource,
  { requiredOnly = true } = {},
): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const argument of root.field.args) {
    if (requiredOnly && (!isNonNullType(argument.type) || argument.defaultValue !== undefined)) continue;
    const value = argumentOf(root, argument, source, requiredOnly);
    if (value !== undefined) given[argument.name] = value;
  }
  return given;
}

function argumentOf(root: RootField, argument: GraphQLArgument, source: SampleSource, requiredOnly: boolean): unknown {
  const type = getNullableType(argument.type);
  if (isInputObjectType(type)) return sampleInput(type, source, { requiredOnly });
  if (argument.name === 'id') {
    const meaning = meaningOf(root, 'id', source.ids);
    const id =
      meaning === 'id' && root.name === 'node' ? source.ids.workspace_id : (sharedIds[meaning] ?? source.ids[meaning]);
    if (id === undefined)
      throw new Error(
        `The suites do not know what 'id' of ${titleOf(root)} means: ` +
          'add it to idMeanings in test/support/root-fields.ts.',
      );
    return id;
  }
  return sampleArgument(argument.name, argument.type, constraintsOf(argument), source);
}

/** Whether a field answers activity records: each request adds one, so that its answer is never the same again. */
export const showsRecords = (name: string): boolean => /[aA]ctivity(?:Summary)?$/.test(name);

/** Whether a field tells how many of them there are: it changes whenever some are added up. */
export const sumsRecords = (name: string): boolean => name === 'series' || name === 'topResources';

/** Documents by what they are made of: to print and measure a large one takes milliseconds. */
const documents = new Map<string, string>();

/**
 * The operation that asks for one root field, with everything below it that needs no arguments, `depth` objects deep,
 * but no activity, or less deep where the service would refuse the document for its size.
 */
export function documentOf(root: RootField, given: Readonly<Record<string, unknown>>, depth = 4): string {
  const used = root.field.args.filter((argument) => argument.name in given);
  const key = [titleOf(root), depth, ...used.map(({ name }) => name)].join(' ');
  const text = documents.get(key) ?? printed(root, used, depth);
  documents.set(key, text);
  return text;
}

function printed(root: RootField, used: readonly GraphQLArgument[], depth: number): string {
  const { kind, name, field } = root;
  const declared = used.map((argument) => `$${argument.name}: ${argument.type.toString()}`).join(', ');
  const passed = used.map((argument) => `${argument.name}: $${argument.name}`).join(', ');
  const call = `${name}${passed ? `(${passed})` : ''}`;
  const text = `${kind} ${declared ? `(${declared}) ` : ''}{ ${call} ${selectionOf(field.type, depth)} }`;
  return depth <= 2 || isAccepted(text) ? text : printed(root, used, depth - 1);
}

function isAccepted(text: string): boolean {
  try {
    measureDocument(parse(text), { maxDepth: Infinity, maxAliases: Infinity });
    return true;
  } catch (error) {
    if (error instanceof GraphQLError && error.extensions.code === 'OPERATION_TOO_LARGE') return false;
    throw error;
  }
}

/** `{ id name owner { id } }`: all plain fields of a type, and of the objects that it leads to. Empty for scalars. */
export function selectionOf(type: GraphQLOutputType, depth: number, above: readonly string[] = []): string {
  const named = getNamedType(type);
  if (!isObjectType(named) && !isInterfaceType(named)) return '';
  const parts = Object.values(named.getFields()).flatMap((field) => {
    if (field.args.some((argument) => isNonNullType(argument.type) && argument.defaultValue === undefined)) return [];
    if (showsRecords(field.name)) return [];
    const inner = getNamedType(field.type);
    if (!isObjectType(inner) && !isInterfaceType(inner)) return [field.name];
    // connections inside of lists multiply; `edges` says what `nodes` says
    if (
      depth <= 1 ||
      above.includes(inner.name) ||
      field.name === 'edges' ||
      (above.length > 1 && field.args.length > 0)
    )
      return [];
    const selection = selectionOf(field.type, depth - 1, [...above, named.name]);
    return selection
      ? [`${field.name}${field.args.some((argument) => argument.name === 'first') ? '(first: 5)' : ''} ${selection}`]
      : [];
  });
  return parts.length > 0 ? `{ ${parts.join(' ')} }` : '{ __typename }';
}
