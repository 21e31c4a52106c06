import {
  type GraphQLInputType,
  GraphQLString,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isWords } from '../../rest/names.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { shapeFault } from '../support/error-shapes.ts';
import { snakeCase } from '../support/names.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { injectable, type Parts, partsOf, toRest } from '../support/requests.ts';
import { changedTables, databaseChecksums } from '../support/rows.ts';
import { constraintsOf, sampleInput } from '../support/samples.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let before: Record<string, string>;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  await app.jobsDone();
  before = await databaseChecksums(app.database.pool);
});
afterAll(() => app.close());

/** A value that must be refused, and how. */
interface Bad {
  what: string;
  value: unknown;
  type: RegExp;
  msg: RegExp;
  /** Where below the field. */
  at?: (string | number)[];
  /** `false`: the value cannot stand in a query string. */
  isText?: boolean;
}

const long = (length: number) => 'x'.repeat(length);

/** Whether it is an enum whose values have other names in REST. */
function isTranslated(type: GraphQLInputType): boolean {
  const nullable = getNullableType(type);
  return isEnumType(nullable) && !isWords(nullable);
}

/** Values of a wrong type, as JSON. */
function wrongTypes(type: GraphQLInputType): Bad[] {
  const nullable = getNullableType(type);
  if (isListType(nullable))
    return [{ what: 'a text for a list', value: 'text', type: /^list_type$/, msg: /^Input should be a valid list$/ }];
  if (isInputObjectType(nullable))
    return [
      {
        what: 'a text for an object',
        value: 'text',
        type: /^(model_attributes|dict)_type$/,
        msg: /^Input should be a valid/,
      },
    ];
  const bad = (what: string, value: unknown, code: RegExp, msg: RegExp): Bad => ({ what, value, type: code, msg });
  switch (isEnumType(nullable) && isWords(nullable) ? 'String' : 'name' in nullable ? nullable.name : '') {
    case 'String':
    case 'ID':
      return [
        bad('a number for a text', 5, /^string_type$/, /^Input should be a valid string$/),
        bad('an object for a text', { a: 1 }, /^string_type$/, /^Input should be a valid string$/),
        bad('a list for a text', ['a'], /^string_type$/, /^Input should be a valid string$/),
        bad('a text with NUL', 'a\0b', /^string_unicode$/, /NUL/),
      ];
    case 'Int':
      return [
        bad('a text for a number', 'five', /^int_parsing$/, /^Input should be a valid integer, unable to parse/),
        bad('a fraction', 1.5, /^int_from_float$/, /^Input should be a valid integer/),
        bad('a list for a number', [1], /^int_type$/, /^Input should be a valid integer$/),
        bad(
          'a number past 32 bits',
          2_147_483_648,
          /^(less_than_equal|int_parsing_size)$/,
          /^(Input should be less than or equal to|Unable to parse)/,
        ),
      ];
    case 'Int53':
      return [
        bad('a text for a number', 'five', /^int_parsing$/, /^Input should be a valid integer, unable to parse/),
        bad('a fraction', 1.5, /^int_from_float$/, /^Input should be a valid integer/),
        bad('a list for a number', [1], /^int_type$/, /^Input should be a valid integer$/),
      ];
    case 'Float':
      return [bad('a text for a number', 'five', /^float_parsing$/, /^Input should be a valid number/)];
    case 'Boolean':
      return [
        bad(
          'a word for a yes',
          'maybe',
          /^bool_parsing$/,
          /^Input should be a valid boolean, unable to interpret input$/,
        ),
        bad('an object for a yes', {}, /^bool_type$/, /^Input should be a valid boolean$/),
      ];
    case 'DateTime':
      return [
        bad('a word for a time', 'yesterday', /^datetime_parsing$/, /^Input should be a valid datetime/),
        bad(
          'a day that does not exist',
          '2025-02-30T00:00:00Z',
          /^datetime_parsing$/,
          /^Input should be a valid datetime/,
        ),
        bad('a number for a time', 5, /^datetime_type$/, /^Input should be a valid datetime$/),
      ];
    case 'JSONObject':
      return [
        bad('a list for an object', [1], /^dict_type$/, /^Input should be a valid dictionary$/),
        bad('a text for an object', 'text', /^dict_type$/, /^Input should be a valid dictionary$/),
      ];
    default:
      return [];
  }
}

/** Values just outside of the bounds. */
function outOfBounds(type: GraphQLInputType, c: Constraints): Bad[] {
  const nullable = getNullableType(type);
  const bad: Bad[] = [];
  const add = (what: string, value: unknown, code: RegExp, msg: RegExp, at?: (string | number)[]) =>
    bad.push({ what, value, type: code, msg, ...(at ? { at } : {}) });
  if (c.minLength)
    add(
      'too short',
      long(c.minLength - 1),
      /^(string_too_short|missing)$/,
      new RegExp(`^String should have at least ${c.minLength} character`),
    );
  if (c.maxLength !== undefined && !c.oneOf)
    add(
      'too long',
      long(c.maxLength + 1),
      /^string_too_long$/,
      new RegExp(`^String should have at most ${c.maxLength} character`),
    );
  if (c.pattern !== undefined)
    add(
      'not of the pattern',
      '/\u00e9!\u00e9!'.slice(0, c.maxLength),
      /^string_pattern_mismatch$/,
      /^String should match pattern '/,
    );
  if (c.oneOf)
    add('not in the set', 'something-else', /^literal_error$/, new RegExp(`^Input should be '${c.oneOf[0]}'`));
  if (c.min !== undefined)
    add(
      'too small',
      c.min - 1,
      /^greater_than_equal$/,
      new RegExp(`^Input should be greater than or equal to ${c.min}$`),
    );
  if (c.max !== undefined)
    add('too large', c.max + 1, /^less_than_equal$/, new RegExp(`^Input should be less than or equal to ${c.max}$`));
  if (c.format === 'email')
    add('no address', 'nobody.example.test', /^value_error$/, /^value is not a valid email address/);
  if (c.format === 'uri') add('no address', 'javascript:alert(1)', /^url_parsing$/, /^Input should be a valid URL/);
  if (isListType(nullable)) {
    if (c.minItems) add('too few', [], /^too_short$/, new RegExp(`^List should have at least ${c.minItems} item`));
    if (c.maxItems !== undefined)
      add(
        'too many',
        Array.from({ length: c.maxItems + 1 }, (_, i) => `x${i}`),
        /^too_long$/,
        new RegExp(`^List should have at most ${c.maxItems} item`),
      );
    for (const inner of [...wrongTypes(nullable.ofType), ...outOfBounds(nullable.ofType, c.item ?? {})])
      bad.push({ ...inner, what: `an item: ${inner.what}`, value: [inner.value], at: [0, ...(inner.at ?? [])] });
  }
  if (c.maxBytes !== undefined && nullable === GraphQLString)
    add('too many bytes', long(c.maxBytes + 1), /^string_too_long$/, /^String should have at most \d+ bytes$/);
  else if (c.maxBytes !== undefined)
    add('too many bytes', { a: long(c.maxBytes) }, /^too_long$/, /^JSON should have at most/);
  return bad;
}

interface Case {
  title: string;
  parts: () => Parts;
  loc: (string | number)[];
  bad: Pick<Bad, 'type' | 'msg'>;
}

const missing = { type: /^missing$/, msg: /^Field required$/ };

function casesOf(operation: CompiledOperation): Case[] {
  const fresh = () => partsOf(operation, world, { token: world.accounts.owner.accessToken });
  const cases: Case[] = [];
  for (const { name, wireName, in: place, type, isRequired, constraints } of operation.parameters) {
    if (place !== 'query') continue;
    const without = () => {
      const parts = fresh();
      const { [wireName]: _left, ...query } = parts.query;
      return { ...parts, query };
    };
    if (isRequired)
      cases.push({ title: `query ${name} is missing`, parts: without, loc: ['query', wireName], bad: missing });
    // in a query all values are texts, and one text is a list of one
    const isFine = ['a number for a text', 'a number for a time', 'a text for a list'];
    const isText = ({ value, what }: Bad) => typeof value !== 'object' && !isFine.includes(what);
    const where = `${routeOf(operation)} ?${name}`;
    const texts = [
      ...thinned(wrongTypes(type).filter(isText), where),
      ...outOfBounds(type, constraints).filter(isText),
    ];
    for (const { what, value, type: code, msg } of texts) {
      const isFraction = what === 'a fraction';
      cases.push({
        title: `query ${name}: ${what}`,
        parts: () => ({ ...fresh(), query: { ...fresh().query, [wireName]: String(value) } }),
        loc: ['query', wireName],
        bad: isFraction
          ? { type: /^int_parsing$/, msg: /^Input should be a valid integer, unable/ }
          : { type: code, msg },
      });
    }
  }
  // the fields of a form are texts, of which most can be read: test/knowledge/files/upload.test.ts
  if (operation.body?.fileField === null) {
    const { type } = operation.body;
    cases.push({
      title: 'no body',
      parts: () => ({
        ...fresh(),
        body: undefined,
        headers: { ...fresh().headers, 'content-type': 'application/json' },
      }),
      loc: ['body'],
      bad: missing,
    });
    for (const value of thinned([[], 'text', 5, true], `${routeOf(operation)} body`)) {
      cases.push({
        title: `the body is ${JSON.stringify(value)}`,
        parts: () => ({ ...fresh(), body: value }),
        loc: ['body'],
        bad: { type: /^(model_attributes|dict)_type$/, msg: /^Input should be a valid dictionary/ },
      });
    }
    for (const field of Object.values(type.getFields())) {
      const key = snakeCase(field.name);
      const withValue = (value: unknown) => () => {
        const parts = fresh();
        const { [key]: _left, ...rest } = parts.body as Record<string, unknown>;
        return { ...parts, body: value === undefined ? rest : { ...rest, [key]: value } };
      };
      const constraints = constraintsOf(field);
      if (isNonNullType(field.type))
        cases.push({ title: `${key} is missing`, parts: withValue(undefined), loc: ['body', key], bad: missing });
      if (isNonNullType(field.type) || constraints.notNull)
        cases.push({
          title: `${key} is null`,
          parts: withValue(null),
          loc: ['body', key],
          bad: isTranslated(field.type)
            ? { type: /^literal_error$/, msg: /^Input should be '/ }
            : { type: /_type$/, msg: /^Input should be a valid/ },
        });
      for (const { what, value, type: code, msg, at } of [
        ...thinned(wrongTypes(field.type), `${routeOf(operation)} ${key}`),
        ...outOfBounds(field.type, constraints),
      ]) {
        cases.push({
          title: `${key}: ${what}`,
          parts: withValue(value),
          loc: ['body', key, ...(at ?? [])],
          bad: { type: code, msg },
        });
      }
    }
  }
  return cases;
}

interface Item {
  type: string;
  loc: (string | number)[];
  msg: string;
}

describe.each(gentlestFirst().map((operation) => [routeOf(operation), operation] as const))(
  '%s',
  (_title, operation) => {
    test('each required, typed and bounded input is asked for in the words of pydantic', async () => {
      for (const { title, parts, loc, bad } of casesOf(operation)) {
        const answer = await app.server.inject(injectable(operation, parts()));
        expect(answer.statusCode, `${title}: ${answer.body}`).toBe(422);
        expect(shapeFault(answer), title).toBeNull();
        const { detail } = answer.json<{ detail: Item[] }>();
        const [item] = detail;
        expect(detail, `${title}: ${answer.body.slice(0, 400)}`).toHaveLength(1);
        expect(item!.loc, title).toEqual(loc);
        expect(item!.type, title).toMatch(bad.type);
        expect(item!.msg, title).toMatch(bad.msg);
      }
    });

    if (operation.body?.fileField !== null) return;
    const { type } = operation.body;

    test('all that is wrong is said at once, in the order of the fields; secrets are not repeated', async () => {
      const fields = Object.values(type.getFields());
      const good = sampleInput(type, world);
      const wrong = fields.flatMap((field) => {
        const [bad] = wrongTypes(field.type);
        return bad ? [[snakeCase(field.name), bad.value, constraintsOf(field).sensitive ?? false] as const] : [];
      });
      const body = {
        ...(toRest(good, type) as object),
        ...Object.fromEntries(wrong),
      };
      const answer = await app.server.inject(
        injectable(operation, { ...partsOf(operation, world, { token: world.accounts.owner.accessToken }), body }),
      );
      const { detail } = answer.json<{ detail: (Item & { input: unknown })[] }>();
      expect(wrong).not.toEqual([]);
      expect(detail.map(({ loc }) => loc)).toEqual(wrong.map(([name]) => ['body', name]));
      for (const [index, [, , isSecret]] of wrong.entries())
        if (isSecret) expect(detail[index]!.input).toBe('[redacted]');
    });
  },
);

test('most routes have something that can be wrong', () => {
  const cases = gentlestFirst().map((operation) => casesOf(operation).length);
  expect(cases.filter((count) => count > 0).length).toBeGreaterThan(cases.length / 2);
  expect(cases.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(500);
});

// the façade's own tests have a route with both; here are those of the service, once there is one
const both = gentlestFirst().filter(
  (operation) => operation.body && operation.parameters.some(({ in: place }) => place === 'query'),
);
test.each(both.map((operation) => [routeOf(operation), operation] as const))(
  '%s: failures of query and body are said together, the query first',
  async (_title, operation) => {
    const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
    const { wireName } = operation.parameters.find(({ in: place }) => place === 'query')!;
    const answer = await app.server.inject(injectable(operation, { ...parts, query: { [wireName]: '\0' }, body: 5 }));
    expect(answer.json<{ detail: Item[] }>().detail.map(({ loc }) => loc[0])).toEqual(['query', 'body']);
  },
);

test('nothing was written by any of it', async () => {
  expect(changedTables(before, await databaseChecksums(app.database.pool))).toEqual([]);
});
