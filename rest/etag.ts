import type {
  ExecutionResult,
  FragmentDefinitionNode,
  GraphQLCompositeType,
  GraphQLSchema,
  SelectionSetNode,
} from 'graphql';
import { getNamedType, getNullableType, isCompositeType, isListType, Kind, typeFromAST } from 'graphql';
import type { BodyField } from './body-field.ts';
import { has } from './directives.ts';
import { problemAt } from './documents.ts';
import { etagOf } from './if-match.ts';
import { ETAG_KEY, isVersion, resultKey } from './selection.ts';

type JsonObject = Record<string, unknown>;

/** A version in an answer. `path` leads to its object. */
interface FoundVersion {
  path: string[];
  /** It belongs to the body, or to an object in the body marked with `@etag`. */
  isOwn: boolean;
}

/**
 * Compiles the function that takes the version out of a result: that of the body, or of the object in it marked with
 * `@etag`. `null` when there is none, as in lists.
 */
export function etagReader(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  { node, type, path }: BodyField,
  problems: string[],
): ((result: ExecutionResult) => string | null) | null {
  const named = getNamedType(type);
  const found: FoundVersion[] = [];
  const search = (set: SelectionSetNode, of: GraphQLCompositeType, at: FoundVersion): void => {
    for (const selection of set.selections) {
      if (selection.kind !== Kind.FIELD) {
        const fragment = selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection;
        const condition = fragment?.typeCondition ? typeFromAST(schema, fragment.typeCondition) : of;
        if (fragment && isCompositeType(condition)) search(fragment.selectionSet, condition, at);
        continue;
      }
      if (isVersion(selection)) found.push(at);
      const field = 'getFields' in of ? of.getFields()[selection.name.value] : undefined;
      const inner = getNamedType(field?.type);
      if (!selection.selectionSet || !field || !isCompositeType(inner)) continue;
      const isOwn = at.isOwn && has(selection, 'etag') && !isListType(getNullableType(field.type));
      search(selection.selectionSet, inner, { path: [...at.path, resultKey(selection)], isOwn });
    }
  };
  const isSingle = isCompositeType(named) && !isListType(getNullableType(type));
  if (isSingle && node.selectionSet) search(node.selectionSet, named, { path: [], isOwn: true });
  const own = found.find(({ isOwn }) => isOwn);
  if (!own) return null;
  // a version that is not removed would be shown
  if (found.length > 1) problems.push(problemAt(node, 'An answer can have only one @etag.'));
  const keys = [...path.map(({ key }) => key), ...own.path];
  return ({ data }) => take(data, keys);
}

function take(data: unknown, path: readonly string[]): string | null {
  let object = data as JsonObject | null | undefined;
  for (const key of path) object = object?.[key] as JsonObject | null | undefined;
  const version = object?.[ETAG_KEY];
  if (!object || typeof version !== 'number') return null;
  object[ETAG_KEY] = undefined; // JSON omits it
  return etagOf(version);
}
