import { GraphQLError } from 'graphql';
import type { Prisma } from '../generated/prisma/client.ts';
import { MAX_KEY_LENGTH } from '../kernel/constraints.ts';
import { InputError, type InputIssue } from '../kernel/errors.ts';
import { isoText } from '../kernel/iso-text.ts';
import type { JsonType } from '../kernel/json-type.ts';
import { builder } from './builder.ts';

const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Reads an ISO 8601 date-time; without a zone it is UTC. Refuses days that do not exist, which `Date` would move to the
 * next month, and years that PostgreSQL or JSON clients would not read back.
 */
export function parseDateTime(value: unknown): Date {
  const refuse = (reason: string) => new GraphQLError(`Input should be a valid datetime, ${reason}`);
  if (value instanceof Date) return value;
  if (typeof value !== 'string') throw refuse('a string in ISO 8601 form');
  const parts = ISO.exec(value);
  if (!parts) throw refuse('invalid character or missing part');
  const [, year, month, day, hour] = parts;
  const hasZone = /(?:[Zz]|[+-]\d{2}:?\d{2})$/.test(value.slice(10));
  const date = new Date(hour === undefined ? `${value}T00:00:00Z` : hasZone ? value : `${value}Z`);
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  // the zone may move a time into another year
  const isWithin = date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999; // false for an invalid date
  if (!isWithin || Number(day) > daysInMonth || Number(year) < 1)
    throw refuse('day or time value is outside expected range');
  return date;
}

builder.scalarType('DateTime', {
  extensions: { jsonType: 'date-time' satisfies JsonType },
  description:
    'A point in time, ISO 8601 in UTC with milliseconds: `2025-01-02T03:04:05.678Z`. Input without a zone is UTC.',
  serialize: (value) => (value instanceof Date ? isoText(value) : String(value)),
  parseValue: parseDateTime,
});

builder.scalarType('JSON', {
  extensions: { jsonType: 'any' satisfies JsonType },
  description: 'Any JSON value. Keys are never renamed.',
  serialize: (value) => value,
  parseValue: (value) => value,
});

builder.scalarType('JSONObject', {
  extensions: { jsonType: 'object' satisfies JsonType },
  description: 'A JSON object with arbitrary keys, which are never renamed.',
  serialize: (value) => value as Record<string, unknown>,
  parseValue: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new GraphQLError('Input should be a valid dictionary');
    return value as Prisma.InputJsonObject;
  },
});

/** Reads a map whose values are all of one type; each invalid key and value is an issue with its path. */
function parseMap<Value extends string | boolean>(value: unknown, of: { typeof: string; type: string; word: string }) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new GraphQLError('Input should be a valid dictionary');
  const issues = Object.entries(value).flatMap(([key, item]): InputIssue[] => {
    if (key.length < 1 || key.length > MAX_KEY_LENGTH) return [badKey(key)];
    if (typeof item === of.typeof) return [];
    return [{ path: [key], type: of.type, msg: `Input should be a valid ${of.word}`, input: item }];
  });
  if (issues.length > 0) throw new InputError(issues);
  return value as Record<string, Value>;
}

const badKey = (key: string): InputIssue =>
  key.length === 0
    ? {
        path: [key, '[key]'],
        type: 'string_too_short',
        msg: 'String should have at least 1 character',
        input: key,
        ctx: { min_length: 1 },
      }
    : {
        path: [key.slice(0, MAX_KEY_LENGTH), '[key]'],
        type: 'string_too_long',
        msg: `String should have at most ${MAX_KEY_LENGTH} characters`,
        input: key,
        ctx: { max_length: MAX_KEY_LENGTH },
      };

builder.scalarType('StringMap', {
  description: 'A JSON object whose values are strings. Keys have 1 to 64 characters and are never renamed.',
  extensions: { jsonType: 'object' satisfies JsonType, jsonValues: 'string' },
  serialize: (value) => value as Record<string, string>,
  parseValue: (value) => parseMap<string>(value, { typeof: 'string', type: 'string_type', word: 'string' }),
});

builder.scalarType('BooleanMap', {
  description: 'A JSON object whose values are booleans. Keys have 1 to 64 characters and are never renamed.',
  extensions: { jsonType: 'object' satisfies JsonType, jsonValues: 'boolean' },
  serialize: (value) => value as Record<string, boolean>,
  parseValue: (value) => parseMap<boolean>(value, { typeof: 'boolean', type: 'bool_type', word: 'boolean' }),
});

builder.scalarType('Int53', {
  extensions: { jsonType: 'int53' satisfies JsonType },
  description: 'An integer that JSON represents exactly: up to 2^53 - 1. For counters that outgrow `Int`.',
  serialize: (value) => value as number,
  parseValue: (value) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value))
      throw new GraphQLError('Input should be a valid integer of at most 53 bits');
    return value;
  },
});
