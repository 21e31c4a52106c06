import { GraphQLError } from 'graphql';
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
  if (Number.isNaN(date.getTime()) || Number(day) > daysInMonth || Number(year) < 1)
    throw refuse('day or time value is outside expected range');
  return date;
}

builder.scalarType('DateTime', {
  description:
    'A point in time, ISO 8601 in UTC with milliseconds: `2025-01-02T03:04:05.678Z`. Input without a zone is UTC.',
  serialize: (value) => (value instanceof Date ? value.toISOString() : String(value)),
  parseValue: parseDateTime,
});

builder.scalarType('JSON', {
  description: 'Any JSON value. Keys are never renamed.',
  serialize: (value) => value,
  parseValue: (value) => value,
});

builder.scalarType('JSONObject', {
  description: 'A JSON object with free keys, which are never renamed.',
  serialize: (value) => value as Record<string, unknown>,
  parseValue: (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new GraphQLError('Input should be a valid dictionary');
    return value as Record<string, unknown>;
  },
});
