import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  GraphQLSkipDirective,
  getDirectiveValues,
  isAbstractType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  typeFromAST,
} from 'graphql';
import { PlannedField } from './field.ts';
import type { Field, Operation, Selection, Values } from './types.ts';

/** The selections of an operation for one combination of condition values, collected once per type on first use. */
export class Selections {
  /** Number of fields created so far. */
  size = 0;
  readonly #operation: Operation;
  readonly #conditions: Values;

  constructor(operation: Operation, conditions: Values) {
    this.#operation = operation;
    this.#conditions = conditions;
  }

  /** The selection of an object type for nodes that share one response name. */
  of(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): Selection {
    const nodes = new Map<string, FieldNode[]>();
    const seen = new Set<string>();
    for (const set of sets) this.#collect(type, set, nodes, seen);
    const fields: Field[] = [];
    for (const [key, [first, ...others]] of nodes) {
      const definition = first && this.#definition(type, first.name.value);
      if (definition)
        fields.push(
          new PlannedField((inner, below) => this.of(inner, below), type, definition, key, [first, ...others]),
        );
    }
    this.size += fields.length;
    return { fields, blank: blankOf(fields) };
  }

  #collect(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    nodes: Map<string, FieldNode[]>,
    seen: Set<string>,
  ): void {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) {
        if (!this.#isIncluded(node)) continue;
        const key = (node.alias ?? node.name).value;
        const known = nodes.get(key);
        if (known) known.push(node);
        else nodes.set(key, [node]);
      } else if (node.kind === Kind.INLINE_FRAGMENT) {
        if (this.#isIncluded(node) && this.#isFor(node.typeCondition, type))
          this.#collect(type, node.selectionSet, nodes, seen);
      } else {
        const name = node.name.value;
        if (seen.has(name) || !this.#isIncluded(node)) continue;
        seen.add(name);
        const fragment = this.#operation.fragments[name];
        if (fragment && this.#isFor(fragment.typeCondition, type))
          this.#collect(type, fragment.selectionSet, nodes, seen);
      }
    }
  }

  #isIncluded(node: SelectionNode): boolean {
    if (!node.directives?.length) return true;
    if (getDirectiveValues(GraphQLSkipDirective, node, this.#conditions)?.if === true) return false;
    return getDirectiveValues(GraphQLIncludeDirective, node, this.#conditions)?.if !== false;
  }

  #isFor(condition: FragmentDefinitionNode['typeCondition'] | undefined, type: GraphQLObjectType): boolean {
    if (!condition) return true;
    const conditional = typeFromAST(this.#operation.schema, condition);
    return conditional === type || (isAbstractType(conditional) && this.#operation.schema.isSubType(conditional, type));
  }

  #definition(type: GraphQLObjectType, name: string) {
    const isQuery = this.#operation.schema.getQueryType() === type;
    if (isQuery && name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (isQuery && name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    return name === TypeNameMetaFieldDef.name ? TypeNameMetaFieldDef : type.getFields()[name];
  }
}

/** Objects created with all their keys at once share one hidden class and take less memory than objects that grow. */
function blankOf(fields: readonly Field[]): () => Values {
  if (fields.some(({ key }) => key === '__proto__')) return () => Object.create(null) as Values;
  const template = Object.fromEntries(fields.map(({ key }) => [key, null]));
  return () => ({ ...template });
}
