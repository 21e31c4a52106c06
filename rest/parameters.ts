import {
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  Kind,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type {
  DocumentNode,
  GraphQLInputObjectType,
  GraphQLInputType,
  GraphQLSchema,
  OperationDefinitionNode,
  ValueNode,
  VariableDefinitionNode,
} from 'graphql';
import type { Constraints } from '../src/graphql/constraints.ts';
import { has, headerOf, oneOfOf, rangeOf } from './directives.ts';
import { problemAt } from './documents.ts';
import { restName } from './names.ts';

/** A variable that the client sends in the path, the query string or a header. */
export interface Parameter {
  /** The variable. */
  name: string;
  in: 'path' | 'query' | 'header';
  /** Name in the request; a header's in lower case. */
  wireName: string;
  type: GraphQLInputType;
  isRequired: boolean;
  isCommaList: boolean;
  /** External form of the default: the variable's, else the argument's it feeds. `undefined` without one. */
  defaultValue: unknown;
  constraints: Constraints;
  description: string;
}

export interface BodyParameter {
  name: string;
  type: GraphQLInputObjectType;
  isRequired: boolean;
  description: string;
}

export interface Parameters {
  /** In the order in which failures are reported: path, query, header. */
  parameters: Parameter[];
  body: BodyParameter | null;
}

/** What the schema says of the argument or input field that a variable feeds. */
interface Target {
  constraints: Constraints;
  description: string;
  defaultValue: unknown;
}

const order = { path: 0, query: 1, header: 2 };

/** Names of the `{variables}` of a path template, in order. */
export const templateVariables = (path: string): string[] => [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name);

/**
 * Where each variable of an operation comes from and what bounds it. `document` is the operation with its fragments,
 * valid against `schema`. Mistakes are added to `problems`.
 */
export function parametersOf(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, path: string, problems: string[]): Parameters {
  const inPath = templateVariables(path);
  const targets = targetsOf(schema, document);
  const result: Parameters = { parameters: [], body: null };
  for (const node of operation.variableDefinitions ?? []) {
    const name = node.variable.name.value;
    const type = typeFromAST(schema, node.type as never) as GraphQLInputType | undefined;
    if (!type) continue; // reported by graphql-js
    const problem = (message: string) => problems.push(problemAt(node, `Variable '$${name}': ${message}`));
    if (has(node, 'body')) {
      const body = bodyOf(node, name, type, targets.get(name) ?? [], problem);
      if (body && result.body) problem('there can be only one @body variable.');
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

function bodyOf(node: VariableDefinitionNode, name: string, type: GraphQLInputType, targets: Target[], problem: (message: string) => void): BodyParameter | null {
  const object = getNullableType(type);
  if (!isInputObjectType(object)) {
    problem('@body needs an input object type.');
    return null;
  }
  checkInputObject(object, [], problem);
  for (const other of ['range', 'oneOf', 'header', 'commaList']) {
    if (node.directives?.some((directive) => directive.name.value === other)) problem(`@${other} and @body exclude each other.`);
  }
  return { name, type: object, isRequired: isNonNullType(type) && !node.defaultValue, description: object.description ?? targets[0]?.description ?? '' };
}

/** Input types must not contain themselves (graphql-jit would not end) and their fields must have distinct REST names. */
function checkInputObject(type: GraphQLInputObjectType, above: GraphQLInputObjectType[], problem: (message: string) => void): void {
  if (above.includes(type)) {
    problem(`the input type '${type.name}' contains itself.`);
    return;
  }
  const fields = Object.values(type.getFields());
  if (new Set(fields.map((field) => restName(field.name))).size < fields.length) problem(`two fields of '${type.name}' have the same name in REST.`);
  for (const field of fields) {
    const named = getNamedType(field.type);
    if (isInputObjectType(named)) checkInputObject(named, [...above, type], problem);
  }
}

function parameterOf(node: VariableDefinitionNode, name: string, type: GraphQLInputType, targets: Target[], inPath: string[], problem: (message: string) => void): Parameter {
  const header = headerOf(node);
  const place = inPath.includes(name) ? 'path' : header ? 'header' : 'query';
  const nullable = getNullableType(type);
  const isList = isListType(nullable);
  const item = isList ? getNullableType(nullable.ofType as GraphQLInputType) : nullable;
  if (!isScalarType(item) && !isEnumType(item)) problem(`the type ${type.toString()} needs @body; a parameter is a scalar, an enum or a list of them.`);
  if (place === 'path' && (isList || !isNonNullType(type) || node.defaultValue)) problem('a variable of the path is a non-null scalar without a default.');
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
    defaultValue: node.defaultValue ? variableDefault : targets.find((target) => target.defaultValue !== undefined)?.defaultValue,
    constraints,
    description: targets.find((target) => target.description)?.description ?? '',
  };
}

function ownConstraints(node: VariableDefinitionNode, item: GraphQLInputType, problem: (message: string) => void): Constraints {
  const range = rangeOf(node);
  const oneOf = oneOfOf(node);
  const scalar = isScalarType(item) ? item.name : '';
  const own: Constraints = {};
  if (range) {
    if (scalar !== 'Int' && scalar !== 'Float') problem('@range needs an Int or a Float.');
    if (range.min !== null && range.min !== undefined) own.min = range.min;
    if (range.max !== null && range.max !== undefined) own.max = range.max;
    if (own.min === undefined && own.max === undefined) problem('@range needs min, max or both.');
    if ((own.min ?? -Infinity) > (own.max ?? Infinity)) problem('@range has a min above its max.');
  }
  if (oneOf) {
    if (scalar !== 'String' && scalar !== 'ID') problem('@oneOf needs a String or an ID.');
    if (oneOf.values.length === 0 || new Set(oneOf.values).size < oneOf.values.length) problem('@oneOf needs distinct values, at least one.');
    own.oneOf = oneOf.values;
  }
  return own;
}

function checkDefault(value: unknown, own: Constraints, problem: (message: string) => void): void {
  if (typeof value === 'number' && (value < (own.min ?? -Infinity) || value > (own.max ?? Infinity))) problem('the default is outside of @range.');
  for (const text of [value].flat()) {
    if (typeof text === 'string' && own.oneOf && !own.oneOf.includes(text)) problem(`the default '${text}' is not in @oneOf.`);
  }
}

/** Both sets of bounds at once. */
function tightest(a: Constraints, b: Constraints): Constraints {
  const both: Constraints = { ...a, ...b };
  const lower = (key: 'min' | 'minLength' | 'minItems') => bound(both, key, Math.max(a[key] ?? -Infinity, b[key] ?? -Infinity));
  const upper = (key: 'max' | 'maxLength' | 'maxItems' | 'maxBytes') => bound(both, key, Math.min(a[key] ?? Infinity, b[key] ?? Infinity));
  lower('min');
  lower('minLength');
  lower('minItems');
  upper('max');
  upper('maxLength');
  upper('maxItems');
  upper('maxBytes');
  const [x, y] = [a.oneOf, b.oneOf];
  if (x && y) both.oneOf = y.filter((value) => x.includes(value));
  if (a.item && b.item) both.item = tightest(a.item, b.item);
  if (a.sensitive) both.sensitive = true;
  return both;
}

function bound(constraints: Constraints, key: 'min' | 'minLength' | 'minItems' | 'max' | 'maxLength' | 'maxItems' | 'maxBytes', value: number): void {
  if (Number.isFinite(value)) constraints[key] = value;
}

/** What each variable feeds, through arguments, object literals and list literals. */
function targetsOf(schema: GraphQLSchema, document: DocumentNode): Map<string, Target[]> {
  const targets = new Map<string, Target[]>();
  const info = new TypeInfo(schema);
  const walk = (value: ValueNode, type: GraphQLInputType, target: Target): void => {
    const nullable = getNullableType(type);
    if (value.kind === Kind.VARIABLE) {
      const known = targets.get(value.name.value) ?? [];
      targets.set(value.name.value, [...known, target]);
    } else if (value.kind === Kind.LIST && isListType(nullable)) {
      for (const item of value.values) walk(item, nullable.ofType as GraphQLInputType, { ...target, constraints: target.constraints.item ?? {}, defaultValue: undefined });
    } else if (value.kind === Kind.OBJECT && isInputObjectType(nullable)) {
      for (const { name, value: child } of value.fields) {
        const field = nullable.getFields()[name.value];
        if (field) walk(child, field.type, targetOf(field));
      }
    }
  };
  visit(
    document,
    visitWithTypeInfo(info, {
      Argument(node) {
        const argument = info.getDirective() ? null : info.getArgument();
        if (argument) walk(node.value, argument.type, targetOf(argument));
      },
    }),
  );
  return targets;
}

/** The constraints that the schema states on an argument or input field. */
export const constraintsOf = (element: { extensions: Readonly<Record<string, unknown>> }): Constraints => (element.extensions.constraints as Constraints | undefined) ?? {};

interface Element {
  type: GraphQLInputType;
  extensions: Readonly<Record<string, unknown>>;
  description?: string | null;
  defaultValue?: unknown;
}

function targetOf(element: Element): Target {
  return { constraints: constraintsOf(element), description: element.description ?? '', defaultValue: externalDefault(element) };
}

/** A schema element's default in the form in which a client would send it; `undefined` without one. */
export function externalDefault({ type, defaultValue }: Element): unknown {
  return defaultValue === undefined ? undefined : external(defaultValue, type);
}

function external(value: unknown, type: GraphQLInputType): unknown {
  const nullable = getNullableType(type);
  if (value === null || value === undefined) return null;
  if (isListType(nullable)) return [value].flat().map((item) => external(item, nullable.ofType as GraphQLInputType));
  if (!isInputObjectType(nullable)) return isEnumType(nullable) || isScalarType(nullable) ? nullable.serialize(value) : value;
  const given = value as Record<string, unknown>;
  const fields = Object.values(nullable.getFields()).filter((field) => given[field.name] !== undefined);
  return Object.fromEntries(fields.map((field) => [restName(field.name), external(given[field.name], field.type)]));
}

/** The JSON value of a literal. */
function plain(node: ValueNode): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return node.value;
    case Kind.LIST:
      return node.values.map(plain);
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map((field) => [field.name.value, plain(field.value)]));
    default:
      return null;
  }
}
