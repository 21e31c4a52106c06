import {
  type ArgumentNode,
  type ConstDirectiveNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { tooLarge } from './refusals.ts';

/** Nested selections, including those of fragments: no legitimate operation comes near. */
const MAX_NESTING = 32;
const MAX_DIRECTIVES = 50;
/** One introspection is legitimate, several at once are not; single types are small. */
const MAX_SCHEMAS = 1;
const MAX_TYPES = 10;
/** Maximum number of nodes with fragments expanded at each spread: an upper bound for every walk over the document. */
const MAX_NODES = 10_000;
/**
 * Maximum number of pairs of selections with the same response name in the document: each may be compared with each.
 */
const MAX_PAIRS = 30_000;
/** The cost of comparing two argument values relative to two names: the values are printed for it. */
const VALUE_WEIGHT = 4;

/** The operator's limits. */
export interface DocumentLimits {
  maxDepth: number;
  maxAliases: number;
}

/** The size of an operation or a fragment, with its fragments expanded. */
interface Extent {
  nodes: number;
  /** Nested fields. */
  depth: number;
  nesting: number;
  aliases: number;
  directives: number;
  /** Number of fields `__schema` and `__type`. */
  schemas: number;
  types: number;
}

const empty = (): Extent => ({ nodes: 0, depth: 0, nesting: 0, aliases: 0, directives: 0, schemas: 0, types: 0 });

/** Counts the visited selections and values, for tests of the measurement itself. */
export interface Visits {
  count: number;
}

/** Number of selections with one response name, and number of values in their arguments. */
interface Answers {
  count: number;
  values: number;
}

/**
 * Measures a document once, before anything else walks over it. Each fragment is visited once, however often it is
 * spread.
 * @throws GraphQLError when it is too large, or when a fragment spreads itself
 */
export function measureDocument(
  document: DocumentNode,
  { maxDepth, maxAliases }: DocumentLimits,
  visits: Visits = { count: 0 },
): void {
  const measure = new Measure(document, visits);
  let nodes = 0;
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
    const isFragment = definition.kind === Kind.FRAGMENT_DEFINITION;
    const extent = isFragment ? measure.fragment(definition.name.value) : measure.definition(definition);
    nodes += extent.nodes;
    if (nodes > MAX_NODES)
      throw tooLarge(`The document has more than ${MAX_NODES} nodes, with its fragments expanded.`);
    if (extent.nesting > MAX_NESTING) throw tooLarge(`The operation is nested deeper than ${MAX_NESTING} levels.`);
    if (isFragment) continue; // the other limits apply to the operation that spreads it
    if (extent.depth > maxDepth) throw tooLarge(`The operation has fields nested deeper than ${maxDepth} levels.`);
    if (extent.aliases > maxAliases) throw tooLarge(`The operation has more than ${maxAliases} aliases.`);
    if (extent.directives > MAX_DIRECTIVES) throw tooLarge(`The operation has more than ${MAX_DIRECTIVES} directives.`);
    if (extent.schemas > MAX_SCHEMAS || extent.types > MAX_TYPES)
      throw tooLarge(`An operation may ask for __schema once and for __type ${MAX_TYPES} times.`);
  }
  if (measure.pairs() > MAX_PAIRS) throw tooLarge('The document selects the same names too often.');
}

interface Measured {
  selectionSet: SelectionSetNode;
  directives?: readonly DirectiveNode[];
  variableDefinitions?: readonly VariableDefinitionNode[];
}

class Measure {
  readonly #visits: Visits;
  readonly #definitions: Map<string, FragmentDefinitionNode>;
  /** `null` while a fragment is being measured: if it occurs again then, it spreads itself. */
  readonly #fragments = new Map<string, Extent | null>();
  readonly #answers = new Map<string, Answers>();

  constructor(document: DocumentNode, visits: Visits) {
    this.#visits = visits;
    this.#definitions = new Map(
      document.definitions
        .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
        .map((node) => [node.name.value, node]),
    );
  }

  definition({ selectionSet, directives = [], variableDefinitions = [] }: Measured): Extent {
    const extent: Extent = { ...empty(), nodes: 1 };
    this.#directives(extent, directives);
    for (const variable of variableDefinitions) {
      extent.nodes += 1 + (variable.defaultValue ? this.#value(variable.defaultValue) : 0);
      this.#directives(extent, variable.directives ?? []);
    }
    this.#selections(extent, selectionSet);
    return extent;
  }

  /** The extent of a fragment. An unknown fragment is empty: validation reports it. */
  fragment(name: string): Extent {
    const known = this.#fragments.get(name);
    if (known) return known;
    if (known === null) throw new GraphQLError(`Cannot spread fragment "${name}" within itself.`);
    const definition = this.#definitions.get(name);
    this.#fragments.set(name, null);
    const extent = definition ? this.definition(definition) : empty();
    this.#fragments.set(name, extent);
    return extent;
  }

  /** The maximum number of comparisons of the rule for mergeable fields, weighted by the compared arguments. */
  pairs(): number {
    let pairs = 0;
    for (const { count, values } of this.#answers.values()) pairs += (count * (count - 1 + VALUE_WEIGHT * values)) / 2;
    return pairs;
  }

  #selections(extent: Extent, { selections }: SelectionSetNode): void {
    for (const node of selections) {
      this.#visits.count++;
      extent.nodes++;
      this.#directives(extent, node.directives ?? []);
      if (node.kind === Kind.FIELD) this.#field(extent, node);
      else if (node.kind === Kind.INLINE_FRAGMENT) this.#inner(extent, node.selectionSet, 0);
      else {
        this.#answer('...', 0);
        add(extent, this.fragment(node.name.value), 0);
      }
    }
  }

  #field(extent: Extent, { name, alias, arguments: given = [], selectionSet }: FieldNode): void {
    const values = this.#arguments(given);
    extent.nodes += values;
    if (alias) extent.aliases++;
    if (name.value === '__schema') extent.schemas++;
    if (name.value === '__type') extent.types++;
    this.#answer((alias ?? name).value, values);
    // introspection is deep by nature: the size of its answer is counted elsewhere
    const isSchema = name.value === '__schema' || name.value === '__type';
    if (selectionSet) this.#inner(extent, selectionSet, isSchema ? null : 1);
    else extent.depth = Math.max(extent.depth, 1);
  }

  /** Measures the contents of a selection set, nested in `levels` fields; `null` if its depth does not count. */
  #inner(extent: Extent, selectionSet: SelectionSetNode, levels: number | null): void {
    const inner = empty();
    this.#selections(inner, selectionSet);
    add(extent, levels === null ? { ...inner, depth: 0 } : inner, levels ?? 0);
  }

  #directives(extent: Extent, directives: readonly (DirectiveNode | ConstDirectiveNode)[]): void {
    extent.directives += directives.length;
    for (const directive of directives) extent.nodes += 1 + this.#arguments(directive.arguments ?? []);
  }

  #arguments(given: readonly Pick<ArgumentNode, 'value'>[]): number {
    let values = 0;
    for (const argument of given) values += this.#value(argument.value);
    return values;
  }

  #value(value: ValueNode): number {
    this.#visits.count++;
    let values = 1;
    if (value.kind === Kind.LIST) for (const item of value.values) values += this.#value(item);
    if (value.kind === Kind.OBJECT) for (const field of value.fields) values += 1 + this.#value(field.value);
    return values;
  }

  #answer(name: string, values: number): void {
    const answers = this.#answers.get(name);
    if (!answers) this.#answers.set(name, { count: 1, values });
    else {
      answers.count++;
      answers.values += values;
    }
  }
}

function add(extent: Extent, inner: Extent, levels: number): void {
  extent.nodes += inner.nodes;
  extent.aliases += inner.aliases;
  extent.directives += inner.directives;
  extent.schemas += inner.schemas;
  extent.types += inner.types;
  extent.depth = Math.max(extent.depth, inner.depth + levels);
  extent.nesting = Math.max(extent.nesting, inner.nesting + 1);
}
