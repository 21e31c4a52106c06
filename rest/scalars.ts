import type { GraphQLInputType, GraphQLScalarType } from 'graphql';
import { GraphQLError, isScalarType } from 'graphql';
import type { InputIssue } from '../src/kernel/errors.ts';
import { jsonTypeOf } from '../src/kernel/json-type.ts';
import type { At, Issues, ValueReader } from './issues.ts';

const INT = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const truth = new Map(
  Object.entries({
    true: true,
    t: true,
    yes: true,
    y: true,
    on: true,
    1: true,
    false: false,
    f: false,
    no: false,
    n: false,
    off: false,
    0: false,
  }),
);

/** The reader of a scalar, without its constraints. */
export function readScalar(type: GraphQLInputType): ValueReader {
  if (!isScalarType(type)) throw new Error(`${type.toString()} is not a scalar.`);
  switch (jsonTypeOf(type)) {
    case 'integer':
    case 'int53':
      return readInt;
    case 'number':
      return readFloat;
    case 'boolean':
      return readBoolean;
    case 'string':
      return type.name === 'ID' || type.name === 'String'
        ? readString
        : (value, where, issues) => parsed(type, readString(value, where, issues), where, issues);
    case 'date-time':
      return dateTimeReader(type);
    case 'object':
      return (value, where, issues) => {
        if (typeof value === 'object' && value !== null && !Array.isArray(value))
          return parsed(type, value, where, issues);
        issues.add(where, 'dict_type', 'Input should be a valid dictionary', value);
        return undefined;
      };
    case 'any':
      return (value, where, issues) => parsed(type, value, where, issues);
  }
}

function readString(value: unknown, where: At, issues: Issues): unknown {
  if (typeof value === 'string') return value;
  issues.add(where, 'string_type', 'Input should be a valid string', value);
  return undefined;
}

function readInt(value: unknown, where: At, issues: Issues): unknown {
  if (typeof value !== 'number' && typeof value !== 'string') {
    issues.add(where, 'int_type', 'Input should be a valid integer', value);
    return undefined;
  }
  if (typeof value === 'string' && !INT.test(value)) {
    issues.add(where, 'int_parsing', 'Input should be a valid integer, unable to parse string as an integer', value);
    return undefined;
  }
  const number = Number(value);
  if (!Number.isFinite(number)) issues.add(where, 'finite_number', 'Input should be a finite number', String(value));
  else if (!Number.isInteger(number))
    issues.add(where, 'int_from_float', 'Input should be a valid integer, got a number with a fractional part', value);
  return number === 0 ? 0 : number; // no -0
}

function readFloat(value: unknown, where: At, issues: Issues): unknown {
  if (typeof value !== 'number' && typeof value !== 'string') {
    issues.add(where, 'float_type', 'Input should be a valid number', value);
    return undefined;
  }
  if (typeof value === 'string' && !NUMBER.test(value)) {
    issues.add(where, 'float_parsing', 'Input should be a valid number, unable to parse string as a number', value);
    return undefined;
  }
  const number = Number(value);
  if (!Number.isFinite(number)) issues.add(where, 'finite_number', 'Input should be a finite number', String(value));
  return number === 0 ? 0 : number;
}

function readBoolean(value: unknown, where: At, issues: Issues): unknown {
  if (typeof value === 'boolean') return value;
  const isText = typeof value === 'string' || typeof value === 'number';
  const meant = isText ? truth.get(String(value).toLowerCase()) : undefined;
  if (meant !== undefined) return meant;
  if (isText) issues.add(where, 'bool_parsing', 'Input should be a valid boolean, unable to interpret input', value);
  else issues.add(where, 'bool_type', 'Input should be a valid boolean', value);
  return undefined;
}

function dateTimeReader(type: GraphQLScalarType): ValueReader {
  return (value, where, issues) => {
    if (typeof value !== 'string') {
      issues.add(where, 'datetime_type', 'Input should be a valid datetime', value);
      return undefined;
    }
    try {
      type.parseValue(value);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const reason = error.message.replace(/^Input should be a valid datetime,? ?/, '') || 'invalid datetime';
      issues.add(where, 'datetime_parsing', `Input should be a valid datetime, ${reason}`, value, { error: reason });
    }
    return value;
  };
}

/** Checks the value with a scalar of the schema. Passes on the raw value: graphql-js parses it again. */
function parsed(type: GraphQLScalarType, value: unknown, where: At, issues: Issues): unknown {
  if (value === undefined) return undefined;
  if (value === null) {
    // only a free JSON value may be null where null does not mean that the value is absent
    issues.add(where, 'value_error', 'Value error, null is not allowed', null, { error: 'null is not allowed' });
    return undefined;
  }
  try {
    type.parseValue(value);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    refuse(error, value, where, issues);
  }
  return value;
}

function refuse(error: Error, value: unknown, where: At, issues: Issues): void {
  const found =
    error instanceof GraphQLError
      ? ((error.extensions.details as { issues?: InputIssue[] } | undefined)?.issues ?? [])
      : [];
  for (const issue of found) issues.add(where, issue.type, issue.msg, issue.input ?? null, issue.ctx, issue.path);
  if (found.length === 0)
    issues.add(where, 'value_error', `Value error, ${error.message}`, value, { error: error.message });
}
