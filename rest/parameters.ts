import type {
  DocumentNode,
  GraphQLInputObjectType,
  GraphQLInputType,
  GraphQLSchema,
  OperationDefinitionNode,
  VariableDefinitionNode,
} from 'graphql';
import {
  GraphQLID,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  typeFromAST,
} from 'graphql';
import type { Constraints } from '../src/kernel/constraints.ts';
import { snakeCase } from '../src/kernel/snake-case.ts';
import type { Report } from './bounds.ts';
import { checkDefault, ownConstraints, tightest } from './bounds.ts';
import { has, headerOf, uploadOf } from './directives.ts';
import { problemAt } from './documents.ts';
import { restFields } from './names.ts';
import type { VariableTarget } from './targets.ts';
import { plain, targetsOf } from './targets.ts';

/** A variable that the client sends in the path, the query string or a header. */
export interface Parameter {
  /** The variable. */
  name: string;
  in: 'path' | 'query' | 'header';
  /** Name in the request. Headers are in lower case. */
  wireName: string;
  type: GraphQLInputType;
  isRequired: boolean;
  isCommaList: boolean;
  /** The default in REST form: that of the variable, else of the argument it feeds. `undefined` without one. */
  defaultValue: unknown;
  constraints: Constraints;
  description: string;
}

export interface BodyParameter {
  name: string;
  type: GraphQLInputObjectType;
  isRequired: boolean;
  description: string;
  /** The body is a form, and this field of it a file; `null`: the body is JSON. */
  fileField: string | null;
  /** The body may also be a form without files. */
  takesForm: boolean;
}

export interface Parameters {
  /** In the order in which failures are reported: path, query, header. */
  parameters: Parameter[];
  body: BodyParameter | null;
}

const order = { path: 0, query: 1, header: 2 };

/** Names of the `{variables}` of a path template, in order. */
export const templateVariables = (path: string): string[] =>
  [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name);

/** What an operation takes as its body. `fields`: JSON, or a form without files. */
export type BodyKind = 'json' | 'fields' | 'form' | 'none';

export function bodyKindOf({ variableDefinitions = [] }: OperationDefinitionNode): BodyKind {
  const body = variableDefinitions.find(isBody);
  if (!body) return 'none';
  return has(body, 'form') ? 'fields' : uploadOf(body) ? 'form' : 'json';
}

const isBody = (node: VariableDefinitionNode): boolean => has(node, 'body') || uploadOf(node) !== undefined;

/** Where each variable of an operation is sent. */
export function placesOf(
  { variableDefinitions = [] }: OperationDefinitionNode,
  path: string,
): Map<string, Parameter['in'] | 'body'> {
  const inPath = templateVariables(path);
  return new Map(
    variableDefinitions.map((node) => {
      const name = node.variable.name.value;
      return [name, isBody(node) ? 'body' : placeOf(node, inPath)];
    }),
  );
}

const placeOf = (node: VariableDefinitionNode, inPath: readonly string[]): Parameter['in'] =>
  inPath.includes(node.variable.name.value) ? 'path' : headerOf(node) ? 'header' : 'query';

/**
 * The source and the bounds of each variable of an operation. `document` is the operation with its fragments, valid
 * against `schema`. Mistakes are added to `problems`.
 */
export function parametersOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  path: string,
  problems: string[],
): Parameters {
  const inPath = templateVariables(path);
  const targets = targetsOf(schema, document);
  const result: Parameters = { parameters: [], body: null };
  for (const node of operation.variableDefinitions ?? []) {
    const name = node.variable.name.value;
    const type = typeFromAST(schema, node.type as never) as GraphQLInputType | undefined;
    if (!type) continue; // reported by graphql-js
    const problem = (message: string) => problems.push(problemAt(node, `Variable '$${name}': ${message}`));
    if (isBody(node)) {
      const body = bodyOf(node, name, type, targets.get(name) ?? [], problem);
      if (body && result.body) problem('there can be only one variable with @body or @upload.');
      if (inPath.includes(name)) problem('the body cannot be part of the path.');
      result.body ??= body;
      continue;
    }
    result.parameters.push(parameterOf(node, name, type, targets.get(name) ?? [], inPath, problem));
  }
  const position = (parameter: Parameter) => (parameter.in === 'path' ? inPath.indexOf(parameter.name) : 0);
  result.parameters.sort((a, b) => order[a.in] - order[b.in] || position(a) - position(b));
  return result;
}

function bodyOf(
  node: VariableDefinitionNode,
  name: string,
  type: GraphQLInputType,
  targets: VariableTarget[],
  problem: Report,
): BodyParameter | null {
  const object = getNullableType(type);
  if (!isInputObjectType(object)) {
    problem(`${uploadOf(node) ? '@upload' : '@body'} needs an input object type.`);
    return null;
  }
  checkInputObject(object, [], problem);
  const fileField = uploadOf(node)?.file ?? null;
  if (fileField !== null && !isFileField(object, fileField))
    problem(`@upload needs a field '${fileField}' of the type ID.`);
  for (const other of ['range', 'oneOf', 'header', 'lastEventId', 'commaList']) {
    if (node.directives?.some((directive) => directive.name.value === other))
      problem(`@${other} and ${fileField === null ? '@body' : '@upload'} exclude each other.`);
  }
  return {
    name,
    type: object,
    isRequired: isNonNullType(type) && !node.defaultValue,
    description: object.description ?? targets[0]?.description ?? '',
    fileField,
    takesForm: has(node, 'form'),
  };
}

const isFileField = (type: GraphQLInputObjectType, name: string): boolean => {
  const field = restFields(type).get(name);
  return field !== undefined && getNullableType(field.type) === GraphQLID;
};

/**
 * Input types must not contain themselves (reading them would not end), and their fields must have distinct REST names.
 */
function checkInputObject(type: GraphQLInputObjectType, above: GraphQLInputObjectType[], problem: Report): void {
  if (above.includes(type)) {
    problem(`the input type '${type.name}' contains itself.`);
    return;
  }
  const fields = Object.values(type.getFields());
  if (new Set(fields.map((field) => snakeCase(field.name))).size < fields.length)
    problem(`two fields of '${type.name}' have the same name in REST.`);
  for (const field of fields) {
    const named = getNamedType(field.type);
    if (isInputObjectType(named)) checkInputObject(named, [...above, type], problem);
  }
}

function parameterOf(
  node: VariableDefinitionNode,
  name: string,
  type: GraphQLInputType,
  targets: VariableTarget[],
  inPath: string[],
  problem: Report,
): Parameter {
  const header = headerOf(node);
  const place = placeOf(node, inPath);
  const nullable = getNullableType(type);
  const isList = isListType(nullable);
  const item = isList ? getNullableType(nullable.ofType as GraphQLInputType) : nullable;
  if (!isScalarType(item) && !isEnumType(item))
    problem(`the type ${type.toString()} needs @body; a parameter is a scalar, an enum or a list of them.`);
  if (place === 'path' && (isList || !isNonNullType(type) || node.defaultValue))
    problem('a variable of the path is a non-null scalar without a default.');
  if (place === 'path' && header) problem('@header on a variable of the path.');
  if (place === 'header' && isList) problem('@header needs a single value.');
  const isCommaList = has(node, 'commaList');
  if (isCommaList && !isList) problem('@commaList needs a list type.');
  const merged = targets.map((target) => target.constraints).reduce(tightest, {});
  const own = ownConstraints(node, item, problem);
  const constraints = isList ? { ...merged, item: tightest(merged.item ?? {}, own) } : tightest(merged, own);
  const variableDefault = node.defaultValue ? plain(node.defaultValue) : undefined;
  checkDefault(variableDefault, own, problem);
  const wireName = header ? header.name.toLowerCase() : name;
  return {
    name,
    in: place,
    wireName,
    type,
    isRequired: isNonNullType(type) && !node.defaultValue,
    isCommaList,
    defaultValue: node.defaultValue
      ? variableDefault
      : targets.find((target) => target.defaultValue !== undefined)?.defaultValue,
    constraints,
    description: targets.find((target) => target.description)?.description ?? '',
  };
}
