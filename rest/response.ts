import type { FragmentDefinitionNode, GraphQLError, GraphQLOutputType, GraphQLSchema } from 'graphql';
import { getNamedType, getNullableType, isCompositeType, isListType } from 'graphql';
import { typeNotFound } from '../src/kernel/errors.ts';
import { snakeCase } from '../src/kernel/snake-case.ts';
import type { BodyField } from './body-field.ts';
import { has } from './directives.ts';
import { problemAt } from './documents.ts';
import type { RequestParts } from './input.ts';
import type { CompiledOperation, ResponseBody } from './operation.ts';
import { reshapeOf } from './output.ts';
import type { Parameter } from './parameters.ts';
import { type ObjectShape, SelectionReader } from './selection.ts';

/** The response of the operation. Mistakes are added to `problems`. */
export function responseOf(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  field: BodyField,
  type: string,
  status: number | null | undefined,
  problems: string[],
): ResponseBody {
  const { node } = field;
  const named = getNamedType(field.type);
  const shape =
    isCompositeType(named) && node.selectionSet
      ? new SelectionReader(schema, fragments, problems).shapeOf(named, [node.selectionSet])
      : null;
  const isEmpty = has(node, 'empty') || status === 204;
  const isNothing = has(node, 'nothing');
  if (isNothing && isEmpty) problems.push(problemAt(node, '@nothing sends a body: it excludes 204 and @empty.'));
  if (has(node, 'empty') && status && status !== 204)
    problems.push(problemAt(node, `@empty answers 204, not ${status}.`));
  if (status && (status < 200 || status > 299)) problems.push(problemAt(node, `${status} is no status of success.`));
  const kind = type === 'subscription' ? 'events' : isEmpty ? 'empty' : isNothing ? 'nothing' : 'value';
  return { kind, type: field.type, shape, eventId: plainKey(shape, 'eventId'), redirect: plainKey(shape, 'redirect') };
}

const plainKey = (shape: ObjectShape | null, directive: 'eventId' | 'redirect'): string | null =>
  shape?.fields.find(({ node, object }) => has(node, directive) && !object)?.key ?? null;

/** Compiles the function from an execution result to the response body; see {@link CompiledOperation.bodyOf}. */
export function bodyReader(
  field: BodyField,
  response: ResponseBody,
  type: string,
  parameters: readonly Parameter[],
  fail: (errors: readonly GraphQLError[], request: RequestParts) => unknown,
): CompiledOperation['bodyOf'] {
  const reshape = reshapeOf(response.type, response.shape);
  const inPath = parameters.filter((parameter) => parameter.in === 'path');
  const lastInPath = inPath.at(-1)?.name;
  return ({ data, errors }, request) => {
    if (errors && errors.length > 0) throw fail(errors, request);
    let value: unknown = data;
    for (const step of field.path) {
      value = (value as Record<string, unknown>)[step.key];
      if (value === null || value === undefined) {
        const id = lastInPath === undefined ? '' : String((request.params as Record<string, unknown>)[lastInPath]);
        if (type === 'query' && isObjectLike(step.type))
          throw typeNotFound(snakeCase(getNamedType(step.type).name), id);
        return null;
      }
    }
    return reshape ? reshape(value) : value;
  };
}

const isObjectLike = (type: GraphQLOutputType): boolean =>
  isCompositeType(getNamedType(type)) && !isListType(getNullableType(type));
