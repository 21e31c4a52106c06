import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { IntrospectionSize, wholeSchemaBytes } from './introspection-size.ts';
import { tooLarge } from './refusals.ts';

/** The cost of a leaf value: ten of them count as one object. */
const SCALAR = 0.1;
/** The page size if none is given. */
const DEFAULT_FIRST = 50;

/** With this, a whole introspection counts as a hundred requests. */
const SCHEMA_BYTES_PER_REQUEST = 4 * 1024;

/** The size of an operation, measured before it runs. */
export interface OperationSize {
  /** Number of objects that it may return, counted over nested lists: `first` times `first`. */
  cost: number;
  rootFields: number;
  /**
   * Number of requests that it counts as in addition to its root fields: its introspection, by the size of the answer.
   */
  schemaRequests: number;
}

/** The size of a selection each time it is executed. */
interface Yield {
  cost: number;
  /** Number of its fields, and number of those that take a password or a mailed token. */
  fields: number;
  credentials: number;
  /** Size of the introspection answers. */
  schemaBytes: number;
}

/**
 * Measures a validated operation (so it has no fragment cycles). A fragment is visited once for each type that it is
 * spread on.
 * @throws GraphQLError when it asks for too many objects, for too much of the schema, or for more than one thing that
 * takes a password or a mailed token: aliases must not guess in bulk
 */
export function measureOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Record<string, unknown>,
  maxCost: number,
): OperationSize {
  const operations = document.definitions.filter(
    (node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION,
  );
  const operation = operationName ? operations.find((node) => node.name?.value === operationName) : operations[0];
  const root = operation && schema.getRootType(operation.operation);
  if (!operation || !root) return { cost: 0, rootFields: 0, schemaRequests: 0 };
  const scan = new Scan(schema, document, declaredOf(operation, variables));
  const { cost, fields, credentials, schemaBytes } = scan.selection(root, operation.selectionSet);
  if (credentials > 1) throw tooLarge('A request may have only one operation that accepts a credential.');
  if (cost > maxCost)
    throw tooLarge(
      `The operation asks for more than ${maxCost} objects. Ask for smaller pages, or for fewer lists at once.`,
    );
  if (schemaBytes > wholeSchemaBytes(schema))
    throw tooLarge('The operation asks for more of the schema than one whole introspection. Ask for it once.');
  return { cost, rootFields: fields, schemaRequests: Math.floor(schemaBytes / SCHEMA_BYTES_PER_REQUEST) };
}

class Scan {
  readonly #schema: GraphQLSchema;
  readonly #fragments: Map<string, FragmentDefinitionNode>;
  readonly #variables: Record<string, unknown>;
  readonly #known = new Map<string, Yield>();
  readonly #introspection: IntrospectionSize;

  constructor(schema: GraphQLSchema, document: DocumentNode, variables: Record<string, unknown>) {
    this.#schema = schema;
    this.#variables = variables;
    this.#fragments = new Map(
      document.definitions
        .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
        .map((node) => [node.name.value, node]),
    );
    this.#introspection = new IntrospectionSize(schema, this.#fragments, variables);
  }

  selection(type: GraphQLCompositeType, { selections }: SelectionSetNode): Yield {
    const sum: Yield = { cost: 0, fields: 0, credentials: 0, schemaBytes: 0 };
    for (const node of selections) {
      if (node.kind === Kind.FIELD) this.#field(sum, type, node);
      else if (node.kind === Kind.FRAGMENT_SPREAD) add(sum, this.#fragment(type, node.name.value));
      else add(sum, this.selection(this.#typeOf(node.typeCondition?.name.value, type), node.selectionSet));
    }
    return sum;
  }

  #fragment(type: GraphQLCompositeType, name: string): Yield {
    const key = `${name} ${type.name}`;
    const known = this.#known.get(key);
    if (known) return known;
    const fragment = this.#fragments.get(name)!; // it was validated
    const found = this.selection(this.#typeOf(fragment.typeCondition.name.value, type), fragment.selectionSet);
    this.#known.set(key, found);
    return found;
  }

  #typeOf(condition: string | undefined, outer: GraphQLCompositeType): GraphQLCompositeType {
    const type = condition === undefined ? outer : this.#schema.getType(condition);
    return isCompositeType(type) ? type : outer;
  }

  #field(sum: Yield, type: GraphQLCompositeType, node: FieldNode): void {
    sum.fields++;
    const name = node.name.value;
    if (name === '__schema' || name === '__type') {
      sum.schemaBytes += this.#introspection.bytesOf(node);
      return;
    }
    const field = 'getFields' in type ? type.getFields()[name] : undefined;
    if (field?.extensions.isCredential) sum.credentials++;
    if (!node.selectionSet) {
      sum.cost += SCALAR;
      return;
    }
    const times = field?.args.some((arg) => arg.name === 'first')
      ? pageSize(node, this.#variables)
      : Number(field?.extensions.atMost ?? 1);
    sum.cost += Number(field?.extensions.cost ?? 0);
    // types that only wrap the rows of a page do not count as objects
    if (!type.extensions.wrapsPage) sum.cost += times;
    const named = field && getNamedType(field.type);
    if (!named || !isCompositeType(named)) return;
    const inner = this.selection(named, node.selectionSet);
    sum.cost += times * inner.cost;
    sum.schemaBytes += inner.schemaBytes;
  }
}

function add(sum: Yield, part: Yield): void {
  sum.cost += part.cost;
  sum.fields += part.fields;
  sum.credentials += part.credentials;
  sum.schemaBytes += part.schemaBytes;
}

/** The variables that an operation declares, given or by default: a request may send thousands of others. */
function declaredOf(
  { variableDefinitions }: OperationDefinitionNode,
  given: Record<string, unknown>,
): Record<string, unknown> {
  return Object.fromEntries(
    (variableDefinitions ?? []).map(({ variable: { name }, defaultValue }) => {
      const isGiven = Object.hasOwn(given, name.value);
      const byDefault = defaultValue?.kind === Kind.INT ? Number(defaultValue.value) : undefined;
      return [name.value, isGiven ? given[name.value] : byDefault];
    }),
  );
}

function pageSize(node: FieldNode, variables: Record<string, unknown>): number {
  const value = node.arguments?.find((argument) => argument.name.value === 'first')?.value;
  const given =
    value?.kind === Kind.INT
      ? Number(value.value)
      : value?.kind === Kind.VARIABLE
        ? variables[value.name.value]
        : undefined;
  // a value that is not a number is refused later; converting it could overflow the stack
  return typeof given === 'number' && Number.isFinite(given) ? Math.max(1, given) : DEFAULT_FIRST;
}
