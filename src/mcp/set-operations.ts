import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLSchema,
  Kind,
  print,
  TypeInfo,
  type VariableNode,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { permissionOfField } from '../graphql/plugins/access-plugin.ts';
import type { Permission } from '../kernel/resources.ts';
import { asksFirst, isSecretLeaf } from './open-operations.ts';

/** What was read of a call. */
interface ReadInput {
  variables: Record<string, unknown>;
  issues: { items: readonly { type: string; loc: readonly (string | number)[]; msg: string }[] };
}

/** An operation of the REST API, as far as a tool needs it. The façade compiles them. */
export interface RestOperation {
  name: string;
  type: 'query' | 'mutation' | 'subscription';
  description: string;
  rootField: string;
  document: DocumentNode;
  parameters: readonly { name: string; in: 'path' | 'query' | 'header'; wireName: string; isRequired: boolean }[];
  body: { name: string; isRequired: boolean } | null;
  read: (request: { params: unknown; query: unknown; headers: Record<string, undefined>; body: unknown }) => ReadInput;
}

type InputPart = Record<string, unknown>;

/** An operation as a tool. */
export interface SetOperation {
  /** `list_secrets` */
  name: string;
  description: string;
  isReading: boolean;
  /** Whether somebody must agree to each call. */
  asks: boolean;
  permission: Permission | null;
  /** The text of its document, without what no model gets. */
  text: string;
  /** Fields with the names of secrets that it has nevertheless. */
  shown: ReadonlySet<string>;
  /** What it takes, by the names of the REST API. */
  properties: Readonly<Record<string, InputPart>>;
  required: readonly string[];
  /** Makes variables of arguments. */
  read: (args: Readonly<Record<string, unknown>>) => ReadInput;
}

const MAX_DESCRIPTION = 300;

/** What answers the value of one secret, and where. */
const REVEALING: ReadonlySet<string> = new Set(['GetSecret', 'GetSecretByName']);
const REVEALED: ReadonlySet<string> = new Set(['Secret.value']);
const NOTHING: ReadonlySet<string> = new Set();

/** The operations of the sets, made of those of the REST API when they are first asked for. */
export class SetOperations {
  readonly #operations: ReadonlyMap<string, RestOperation>;
  readonly #schema: GraphQLSchema;
  readonly #inputOf: (name: string) => Record<string, InputPart>;
  readonly #made = new Map<string, SetOperation>();
  readonly #revealing = new Map<string, SetOperation>();

  /** @param inputOf the inputs of an operation, as JSON Schemas by their names */
  constructor(
    schema: GraphQLSchema,
    operations: ReadonlyMap<string, RestOperation>,
    inputOf: (name: string) => Record<string, InputPart>,
  ) {
    this.#schema = schema;
    this.#operations = operations;
    this.#inputOf = inputOf;
  }

  /** @param reveals whether values of secrets may be asked for, where an operation can answer them */
  get(name: string, reveals = false): SetOperation {
    const known = reveals ? this.#revealing : this.#made;
    const made = known.get(name) ?? this.#make(name, reveals && REVEALING.has(name) ? REVEALED : NOTHING);
    known.set(name, made);
    return made;
  }

  #make(name: string, shown: ReadonlySet<string>): SetOperation {
    const operation = this.#operations.get(name);
    if (!operation) throw new Error(`A set names the operation '${name}', which the REST API does not have.`);
    const { rootField, type, body, description } = operation;
    const isReading = type === 'query';
    const root = isReading ? this.#schema.getQueryType() : this.#schema.getMutationType();
    const field: GraphQLField<unknown, unknown> | undefined = root?.getFields()[rootField];
    const { document, hidden } = withoutSecrets(this.#schema, operation.document, shown);
    const sent = operation.parameters.filter((given) => given.in !== 'header' && !hidden.has(given.name));
    const inputs = this.#inputOf(name);
    const properties = Object.fromEntries(
      [...sent.map(({ wireName }) => wireName), ...(body ? ['body'] : [])].map((key) => [key, inputs[key] ?? {}]),
    );
    const required = sent.filter(({ isRequired }) => isRequired).map(({ wireName }) => wireName);
    return {
      name: name.replace(/(?<=[a-z])([A-Z])/g, '_$1').toLowerCase(),
      description: description.slice(0, MAX_DESCRIPTION),
      isReading,
      asks: !isReading && asksFirst(rootField),
      permission: field ? permissionOfField(field) : null,
      text: print(document),
      shown,
      properties,
      required: [...required, ...(body?.isRequired ? ['body'] : [])],
      read: (args) => {
        const parts = { params: {}, query: {}, headers: {}, body: args.body };
        for (const { in: where, wireName } of sent) {
          const value = args[wireName];
          const to: Record<string, unknown> = where === 'path' ? parts.params : parts.query;
          if (value !== undefined && value !== null) to[wireName] = asText(value);
        }
        return operation.read(parts);
      },
    };
  }
}

/** A value as it stands in an address. */
const asText = (value: unknown): string | string[] => (Array.isArray(value) ? value.map(textOf) : textOf(value));
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * A document without the fields that no model gets.
 * @param shown fields that stay
 * @returns also the variables that were only about them: nobody is asked for these
 */
export function withoutSecrets(
  schema: GraphQLSchema,
  given: DocumentNode,
  shown: ReadonlySet<string> = NOTHING,
): { document: DocumentNode; hidden: ReadonlySet<string> } {
  const hidden = new Set<string>();
  const types = new TypeInfo(schema);
  const enter = (field: FieldNode) => {
    const parent = types.getParentType()?.name ?? '';
    if (shown.has(`${parent}.${field.name.value}`)) return undefined;
    if (!isSecretLeaf(types, parent, field.name.value)) return undefined;
    for (const directive of field.directives ?? [])
      visit(directive, { Variable: ({ name }: VariableNode) => void hidden.add(name.value) });
    return null;
  };
  const document = visit(given, visitWithTypeInfo(types, { Field: enter }));
  const used = new Set<string>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION)
      visit(definition.selectionSet, { Variable: ({ name }: VariableNode) => void used.add(name.value) });
  const isUsed = (name: string) => used.has(name);
  const definitions = document.definitions.map((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION
      ? {
          ...definition,
          variableDefinitions: (definition.variableDefinitions ?? []).filter(({ variable }) =>
            isUsed(variable.name.value),
          ),
        }
      : definition,
  );
  return { document: { ...document, definitions }, hidden };
}
