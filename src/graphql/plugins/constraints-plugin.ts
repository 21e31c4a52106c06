import SchemaBuilder, {
  BasePlugin,
  type PothosInputFieldConfig,
  type PothosOutputFieldConfig,
  type SchemaTypes,
} from '@pothos/core';
import {
  type GraphQLFieldResolver,
  type GraphQLInputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isScalarType,
} from 'graphql';
import {
  type ArgumentIssues,
  type ConstraintIssue,
  type Constraints,
  checkConstraints,
} from '../../kernel/constraints.ts';
import { InputError, type InputIssue, unauthenticated } from '../../kernel/errors.ts';
import { type JsonType, jsonTypeOf } from '../../kernel/json-type.ts';
import { readArguments } from '../../kernel/read-input.ts';
import type { Context } from '../context.ts';
import { addDefaultBounds } from '../default-bounds.ts';
import { argumentIssues, comparesArguments } from './argument-issues.ts';
import { passCursor } from './page-cursor.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      constraints: ConstraintsPlugin<Types>;
    }
    export interface InputFieldOptions {
      /** Bounds of the value, enforced over GraphQL and REST and shown in OpenAPI. */
      constraints?: Constraints;
    }
  }
}

/** For the façade, which reports them together with other issues. */
const rootIssues: ArgumentIssues = (field) =>
  comparesArguments(field)
    ? (args, context) => argumentIssues(field, '', null, args, (context as Context).services.cursors)
    : null;

/**
 * Enforces the `constraints` of arguments and input fields, all failures at once, before access is checked and a
 * resolver runs.
 */
export class ConstraintsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    return { ...fieldConfig, extensions: { ...fieldConfig.extensions, argumentIssues: rootIssues } };
  }

  override onInputFieldConfig(fieldConfig: PothosInputFieldConfig<Types>): PothosInputFieldConfig<Types> {
    const { constraints } = fieldConfig.pothosOptions as { constraints?: Constraints };
    return constraints ? { ...fieldConfig, extensions: { ...fieldConfig.extensions, constraints } } : fieldConfig;
  }

  override afterBuild(schema: GraphQLSchema): GraphQLSchema {
    addDefaultBounds(schema);
    return schema;
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (fieldConfig.parentType === 'Subscription' || Object.keys(fieldConfig.args).length === 0) return resolver;
    const check = argumentCheck(fieldConfig);
    return (parent, args, context, info) => {
      check(parent, args as ArgumentValues, context as unknown as Context, info);
      return resolver(parent, args, context, info);
    };
  }

  override wrapSubscribe(
    subscriber: GraphQLFieldResolver<unknown, Types['Context'], object> | undefined,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> | undefined {
    if (!subscriber) return subscriber;
    const check = argumentCheck(fieldConfig);
    return (parent, args, context, info) => {
      check(parent, args as ArgumentValues, context as unknown as Context, info);
      return subscriber(parent, args, context, info);
    };
  }
}

type ArgumentValues = Record<string, unknown>;

type CheckArguments = (parent: unknown, args: ArgumentValues, context: Context, info: GraphQLResolveInfo) => void;

/**
 * Checks the arguments of a field, unless the façade has read and checked exactly these.
 * @throws AUTHENTICATION_FAILED for an anonymous caller if the field requires authentication: such a caller learns
 * nothing about the input
 */
function argumentCheck<Types extends SchemaTypes>({
  extensions,
  args: declared,
}: PothosOutputFieldConfig<Types>): CheckArguments {
  const asksCaller = Boolean(extensions?.gate);
  const takesCursor = Object.values(declared).some(
    ({ pothosOptions }) => (pothosOptions as { isCursor?: boolean }).isCursor,
  );
  return (parent, args, context, info) => {
    if (asksCaller && !context.anyCaller.principal) throw unauthenticated();
    const read = readArguments(context, info);
    if (!read) return checkArguments(parent, args, context, info);
    if (takesCursor) passCursor(read, args);
  };
}

function checkArguments(
  parent: unknown,
  args: ArgumentValues,
  context: Context,
  { parentType, fieldName }: GraphQLResolveInfo,
): void {
  const field = parentType.getFields()[fieldName]!;
  let issues = NONE;
  for (const argument of field.args) {
    const constraints = argument.extensions.constraints as Constraints | undefined;
    const found = check(args[argument.name], argument.type, constraints, [argument.name]);
    if (found.length > 0) issues = [...issues, ...found];
  }
  const mutual = argumentIssues(field, parentType.name, parent, args, context.services.cursors);
  // one failure per path, as in REST
  if (mutual.length > 0) issues = [...issues, ...mutual.filter(({ path }) => !isAt(path, issues))];
  if (issues.length > 0) throw new InputError(issues);
}

const isAt = (path: InputIssue['path'], issues: readonly InputIssue[]) =>
  issues.some((issue) => issue.path.join('.') === path.join('.'));

const NONE: InputIssue[] = [];

function check(
  value: unknown,
  type: GraphQLInputType,
  constraints: Constraints | undefined,
  path: (string | number)[],
): InputIssue[] {
  if (value === undefined) return NONE;
  if (value === null) return constraints?.notNull ? [nullIssue(type, path)] : NONE;
  const nullable = getNullableType(type);
  const own = constraints || typeof value !== 'number' ? checkOwn(value, nullable, constraints ?? {}, path) : NONE;
  if (isInputObjectType(nullable))
    return [...own, ...checkFields(value as Record<string, unknown>, nullable.getFields(), path)];
  if (isListType(nullable) && isInputObjectType(getNullableType(nullable.ofType))) {
    return [
      ...own,
      ...(value as unknown[]).flatMap((item, index) => check(item, nullable.ofType, undefined, [...path, index])),
    ];
  }
  return own;
}

function nullIssue(type: GraphQLInputType, path: (string | number)[]): InputIssue {
  const word = isListType(type)
    ? 'list'
    : isScalarType(type)
      ? typeWords[jsonTypeOf(type)]
      : isEnumType(type)
        ? 'string'
        : 'value';
  return {
    path,
    type: `${shortWords[word] ?? word}_type`,
    msg: `Input should be a valid ${word}`,
    input: null,
  };
}

/** Their names in pydantic's error types. */
const shortWords: Record<string, string> = { boolean: 'bool', integer: 'int', number: 'float', dictionary: 'dict' };

const typeWords: Record<JsonType, string> = {
  string: 'string',
  integer: 'integer',
  int53: 'integer',
  number: 'number',
  boolean: 'boolean',
  'date-time': 'datetime',
  object: 'dictionary',
  any: 'value',
};

function checkOwn(
  value: unknown,
  type: GraphQLInputType,
  constraints: Constraints,
  path: (string | number)[],
): InputIssue[] {
  if (isInputObjectType(type) || typeof value === 'boolean' || value instanceof Date) return NONE;
  return checkConstraints(value, constraints).map((issue) => ({
    ...issue,
    path: [...path, ...issue.path],
    ...(isHidden(issue, constraints) ? { input: '[redacted]' } : {}),
  }));
}

/** Whether the value of an issue may hold what the schema marks as sensitive: an object may have it anywhere within. */
function isHidden({ path, input }: ConstraintIssue, { sensitive, shape }: Constraints): boolean {
  if (sensitive || !shape?.sensitive) return sensitive === true;
  const names: readonly (string | number)[] = shape.sensitive;
  return (typeof input === 'object' && input !== null) || path.some((step) => names.includes(step));
}

type Fields = Record<string, { type: GraphQLInputType; extensions: Readonly<Record<string, unknown>> }>;

function checkFields(value: Record<string, unknown>, fields: Fields, path: (string | number)[]): InputIssue[] {
  return Object.entries(fields).flatMap(([name, field]) =>
    check(value[name], field.type, field.extensions.constraints as Constraints | undefined, [...path, name]),
  );
}

SchemaBuilder.registerPlugin('constraints', ConstraintsPlugin);
