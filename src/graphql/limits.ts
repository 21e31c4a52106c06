import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** Selections within one another, those of fragments too: no honest operation comes near. */
const MAX_NESTING = 32;

const WRAPPER = /(?:Connection|Edge)$/;

interface Scan {
  schema: GraphQLSchema;
  fragments: Map<string, FragmentDefinitionNode>;
  variables: Record<string, unknown>;
  maxCost: number;
  cost: number;
  rootFields: number;
  credentials: number;
}

/** What an operation asks for, before it runs. */
export interface OperationSize {
  /** Objects that it can lead to, counted over nested lists: `first` times `first`. */
  cost: number;
  rootFields: number;
}

/**
 * Measures an operation that was validated (so it has no fragment cycles).
 * @throws GraphQLError when it asks for too many objects, or for more than one thing that takes a password or a mailed token: aliases
 *   must not guess in bulk
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
  if (!operation || !root) return { cost: 0, rootFields: 0 };
  const fragments = new Map(
    document.definitions
      .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
      .map((node) => [node.name.value, node]),
  );
  const scan: Scan = {
    schema,
    fragments,
    variables: { ...defaultsOf(operation), ...variables },
    maxCost,
    cost: 0,
    rootFields: 0,
    credentials: 0,
  };
  visitSelection(scan, root, operation.selectionSet, { factor: 1, nesting: 1, isRoot: true });
  if (scan.credentials > 1) throw refusal('A request may hold only one operation that takes a credential.');
  if (scan.cost > maxCost)
    throw refusal(
      `The operation asks for more than ${maxCost} objects. Ask for smaller pages, or for fewer lists at once.`,
    );
  return { cost: scan.cost, rootFields: scan.rootFields };
}

const refusal = (message: string) => new GraphQLError(message, { extensions: { code: 'OPERATION_TOO_LARGE' } });

/** Where in the operation a selection stands. */
interface Place {
  /** How often it is answered: the product of the page sizes above. */
  factor: number;
  /** Selections around it, those of fragments too. */
  nesting: number;
  isRoot: boolean;
}

function visitSelection(scan: Scan, type: GraphQLObjectType, selections: SelectionSetNode, place: Place): void {
  if (place.nesting > MAX_NESTING) throw refusal(`The operation is nested deeper than ${MAX_NESTING} levels.`);
  for (const node of selections.selections) {
    if (node.kind === Kind.FIELD) visitField(scan, type, node, place);
    else {
      const fragment = node.kind === Kind.FRAGMENT_SPREAD ? scan.fragments.get(node.name.value) : node;
      if (!fragment) continue;
      const on = fragment.typeCondition ? scan.schema.getType(fragment.typeCondition.name.value) : type;
      const inner = { ...place, nesting: place.nesting + 1 };
      visitSelection(scan, isObjectType(on) ? on : type, fragment.selectionSet, inner);
    }
    if (scan.cost > scan.maxCost) return;
  }
}

type FieldNode = Extract<SelectionSetNode['selections'][number], { kind: Kind.FIELD }>;

function visitField(scan: Scan, type: GraphQLObjectType, node: FieldNode, { factor, nesting, isRoot }: Place): void {
  const field = type.getFields()[node.name.value];
  if (isRoot) scan.rootFields++;
  if (isRoot && field?.extensions.isCredential) scan.credentials++;
  if (!field || !node.selectionSet) return;
  const first = field.args.some((arg) => arg.name === 'first') ? pageSize(node, scan.variables) : 0;
  const inner = first > 0 ? factor * first : factor;
  // what only wraps the rows of a page is no object of its own
  if (!WRAPPER.test(type.name)) scan.cost += inner;
  const named = getNamedType(field.type);
  if (isObjectType(named) || isInterfaceType(named))
    visitSelection(scan, named as GraphQLObjectType, node.selectionSet, {
      factor: inner,
      nesting: nesting + 1,
      isRoot: false,
    });
}

/** The sizes that the document itself gives to variables that are left out. */
function defaultsOf({ variableDefinitions }: OperationDefinitionNode): Record<string, unknown> {
  return Object.fromEntries(
    (variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
      defaultValue?.kind === Kind.INT ? [[variable.name.value, Number(defaultValue.value)]] : [],
    ),
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
  // what is no number is refused later; turning it into one could overflow the stack
  return typeof given === 'number' && Number.isFinite(given) ? Math.max(1, given) : 50;
}
