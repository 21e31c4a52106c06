import type {
  ASTNode,
  DirectiveNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLCompositeType,
  GraphQLField,
  GraphQLOutputType,
  GraphQLSchema,
  SelectionSetNode,
} from 'graphql';
import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  typeFromAST,
  visit,
} from 'graphql';
import { snakeCase } from '../src/kernel/snake-case.ts';
import { has, isFacadeDirective } from './directives.ts';
import { problemAt } from './documents.ts';

/** A field of a response as REST shows it. */
export interface FieldShape {
  /** Key in the execution result. The key of a flattened field never reaches the client. */
  key: string;
  node: FieldNode;
  /** `null` for `__typename`. */
  field: GraphQLField<unknown, unknown> | null;
  type: GraphQLOutputType | null;
  /** Shape of the (innermost) object, `null` for leaves. */
  object: ObjectShape | null;
  isFlattened: boolean;
  /** May be missing: it is under a narrower type condition, `@include` or `@skip`. */
  isOptional: boolean;
}

export interface ObjectShape {
  type: GraphQLCompositeType;
  fields: FieldShape[];
  /** The fragment, if the selection is exactly one fragment. */
  fragment: string | null;
}

/** Key in the execution result of the version that becomes the `ETag`. */
export const ETAG_KEY = '_etag';

/** Whether a field is the version of its object, which is not part of a body. */
export const isVersion = (node: FieldNode): boolean => has(node, 'etag') && !node.selectionSet;

/** Key of a field in the execution result, after {@link rewrite}. */
export function resultKey(node: FieldNode): string {
  if (isVersion(node)) return ETAG_KEY;
  const key = node.alias?.value ?? snakeCase(node.name.value);
  return has(node, 'flatten') ? `_flat_${key}` : key;
}

const kept = (directives: readonly DirectiveNode[] | undefined) =>
  directives?.filter((directive) => !isFacadeDirective(directive));

/**
 * The executable form: every field has its REST name as alias, façade directives are removed. Source locations stay.
 * Versions are selected only where they become the `ETag`.
 */
export function rewrite<Node extends ASTNode>(node: Node, hasETag: boolean): Node {
  return visit(node, {
    Field: {
      enter(field) {
        if (isVersion(field) && !hasETag) return null;
        const key = resultKey(field);
        const alias = key === field.name.value ? undefined : { kind: Kind.NAME as const, value: key, loc: field.loc };
        return { ...field, alias, directives: kept(field.directives) };
      },
    },
    VariableDefinition: (definition) => ({ ...definition, directives: kept(definition.directives) }),
    FragmentDefinition: { enter: (fragment) => ({ ...fragment, directives: kept(fragment.directives) }) },
    OperationDefinition: { enter: (operation) => ({ ...operation, directives: kept(operation.directives) }) },
  }) as Node;
}

interface Collected {
  nodes: [FieldNode, ...FieldNode[]];
  parent: GraphQLCompositeType;
  isOptional: boolean;
}

/** Reads selections against the schema. Mistakes specific to the façade are added to `problems`. */
export class SelectionReader {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #problems: string[];

  constructor(schema: GraphQLSchema, fragments: ReadonlyMap<string, FragmentDefinitionNode>, problems: string[]) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#problems = problems;
  }

  /** The REST shape of the (valid) selections of one object. */
  shapeOf(type: GraphQLCompositeType, sets: readonly SelectionSetNode[]): ObjectShape {
    const collected = new Map<string, Collected>();
    for (const set of sets) this.#collect(type, type, set, false, collected);
    const fields = [...collected].map(([key, found]) => this.#field(key, found));
    const [only, ...more] = sets.flatMap((set) => set.selections);
    const fragment = only?.kind === Kind.FRAGMENT_SPREAD && more.length === 0 ? only.name.value : null;
    this.#refuseDuplicates(fields);
    return { type, fields, fragment };
  }

  #collect(
    owner: GraphQLCompositeType,
    type: GraphQLCompositeType,
    set: SelectionSetNode,
    isOptional: boolean,
    into: Map<string, Collected>,
  ): void {
    for (const node of set.selections) {
      const optional =
        isOptional || (node.directives?.some(({ name }) => name.value === 'include' || name.value === 'skip') ?? false);
      if (node.kind === Kind.FIELD) {
        if (isVersion(node)) continue;
        const found = into.get(resultKey(node));
        if (found) {
          found.nodes.push(node);
          found.isOptional &&= optional;
        } else into.set(resultKey(node), { nodes: [node], parent: type, isOptional: optional });
        continue;
      }
      const fragment = node.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(node.name.value) : node;
      if (!fragment) continue; // reported by graphql-js
      const condition = fragment.typeCondition ? typeFromAST(this.#schema, fragment.typeCondition) : type;
      if (!isCompositeType(condition)) continue; // likewise
      // documents are valid, so a condition on an object type is this type or an abstract type of it
      const alwaysHolds =
        condition === owner ||
        isObjectType(owner) ||
        (isInterfaceType(owner) && isAbstractType(condition) && this.#schema.isSubType(condition, owner));
      this.#collect(owner, condition, fragment.selectionSet, optional || !alwaysHolds, into);
    }
  }

  #field(key: string, { nodes, parent, isOptional }: Collected): FieldShape {
    const [node] = nodes;
    const field = ('getFields' in parent && parent.getFields()[node.name.value]) || null;
    const named = field && getNamedType(field.type);
    const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const object = isCompositeType(named) && sets.length > 0 ? this.shapeOf(named, sets) : null;
    const isFlattened = has(node, 'flatten');
    if (isFlattened && (!object || isListType(field && (isNonNullType(field.type) ? field.type.ofType : field.type)))) {
      this.#problems.push(problemAt(node, `@flatten needs a field that is one object, '${node.name.value}' is not.`));
    }
    return {
      key,
      node,
      field,
      type: field?.type ?? null,
      object,
      isFlattened: isFlattened && object !== null,
      isOptional,
    };
  }

  #refuseDuplicates(fields: readonly FieldShape[]): void {
    const seen = new Map<string, FieldNode>();
    for (const { key, node } of lift(fields)) {
      const other = seen.get(key);
      if (other)
        this.#problems.push(
          problemAt(node, `The response key '${key}' is also given at ${problemAt(other, '').trim()}.`),
        );
      seen.set(key, node);
    }
  }
}

/** The fields as the client sees them: those of a flattened object replace the object. */
export function lift(fields: readonly FieldShape[]): FieldShape[] {
  return fields.flatMap((field) => (field.isFlattened && field.object ? lift(field.object.fields) : field));
}
