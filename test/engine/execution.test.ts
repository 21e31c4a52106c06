import { setImmediate } from 'node:timers/promises';
import {
  buildSchema,
  execute,
  GraphQLEnumType,
  GraphQLError,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  getIntrospectionQuery,
  parse,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { operationOf } from '../../rest/documents.ts';
import { Plan } from '../../src/engine/execution/plan.ts';

const Size = new GraphQLEnumType({ name: 'Size', values: { SMALL: { value: 's' }, LARGE: { value: 'l' } } });
const Even = new GraphQLScalarType<number | null, unknown>({
  name: 'Even',
  serialize: (value) => {
    if (typeof value !== 'number' || value % 2) throw new GraphQLError('not even');
    return value === 0 ? null : value;
  },
});
const nonNull = <T extends GraphQLOutputType>(type: T) => new GraphQLNonNull(type as never);
const listOf = (type: GraphQLOutputType) => new GraphQLList(type);
const later = <T>(value: T, ticks = 1): Promise<T> =>
  ticks === 0 ? Promise.resolve(value) : Promise.resolve().then(() => later(value, ticks - 1));
const fails = (message: string, ticks = 1) => later(null, ticks).then(() => Promise.reject(new Error(message)));

const base = buildSchema(`
  enum Word { ONE TWO }
  input Point { x: Int! y: Int = 7 tags: [String!] inner: Point word: Word }
  type Query { unused(point: Point): String }
`);
const Point = base.getType('Point');
const Word = base.getType('Word');

const Named: GraphQLInterfaceType = new GraphQLInterfaceType({
  name: 'Named',
  fields: () => ({ name: { type: GraphQLString }, friend: { type: Named }, must: { type: nonNull(GraphQLString) } }),
  resolveType: (value: { type?: unknown; wait?: boolean }) => (value.wait ? later(value.type) : value.type) as string,
});
const named = {
  name: { type: GraphQLString },
  friend: {
    type: Named,
    resolve: (source: object) => ('friend' in source && source.friend) || { type: 'Cat', name: 'Tom', must: 'm' },
  },
  must: { type: nonNull(GraphQLString) },
};
const Dog = new GraphQLObjectType({
  name: 'Dog',
  interfaces: [Named],
  fields: { ...named, barks: { type: GraphQLInt } },
});
const Cat = new GraphQLObjectType({
  name: 'Cat',
  interfaces: [Named],
  isTypeOf: (value: { isCat?: boolean; wait?: boolean }) =>
    value.wait ? later(value.isCat !== false) : value.isCat !== false,
  fields: { ...named, lives: { type: GraphQLInt, resolve: () => later(9) } },
});
const Stranger = new GraphQLObjectType({ name: 'Stranger', fields: { name: { type: GraphQLString } } });

const rows = [
  { name: 'a', count: 2, method: () => 'called', wait: later('w'), must: 'm' },
  { name: null, count: 3, method: () => later('called later'), wait: fails('row'), must: null },
];
for (const { wait } of rows) wait.catch(() => undefined);
const Row: GraphQLObjectType = new GraphQLObjectType({
  name: 'Row',
  fields: () => ({
    name: { type: GraphQLString },
    count: { type: Even },
    method: { type: GraphQLString },
    wait: { type: GraphQLString },
    must: { type: nonNull(GraphQLString) },
    rows: {
      type: listOf(Row),
      args: { n: { type: GraphQLInt, defaultValue: 1 } },
      resolve: (_row, { n }) => rows.slice(0, n as number),
    },
    mustFail: {
      type: nonNull(GraphQLString),
      resolve: (row: { name: string | null }) => (row.name ? 'fine' : fails('deep')),
    },
    fail: { type: GraphQLString, resolve: (row: { name: string | null }) => fails(`soft ${row.name}`, 3) },
  }),
});

const value = (type: GraphQLOutputType, resolve: () => unknown) => ({ type, resolve });
const Group: GraphQLObjectType = new GraphQLObjectType({
  name: 'Group',
  fields: () => ({
    fast: value(GraphQLString, () => 'fast'),
    slow: value(GraphQLString, () => fails('slow', 6)),
    throws: value(nonNull(GraphQLString), () => {
      throw new Error('at once');
    }),
    rejects: value(nonNull(GraphQLString), () => fails('soon', 2)),
    late: value(nonNull(GraphQLString), () => fails('late', 8)),
    inner: value(Group, () => ({})),
    mustInner: value(nonNull(Group), () => ({})),
  }),
});

const schema = new GraphQLSchema({
  types: [Dog, Cat, Stranger],
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      echo: {
        type: GraphQLString,
        args: {
          text: { type: GraphQLString },
          withDefault: { type: GraphQLString, defaultValue: 'default' },
          must: { type: new GraphQLNonNull(GraphQLString), defaultValue: 'given' },
          point: { type: Point as never },
          points: { type: new GraphQLList(Point as never) },
          word: { type: Word as never },
          size: { type: Size },
        },
        resolve: (_source, args: object) => JSON.stringify(args),
      },
      required: {
        type: GraphQLString,
        args: { id: { type: new GraphQLNonNull(GraphQLString) } },
        resolve: (_s, args: object) => JSON.stringify(args),
      },
      info: {
        type: GraphQLString,
        resolve: (_source, _args, _context, info) =>
          JSON.stringify([
            info.fieldName,
            info.path,
            info.fieldNodes.length,
            info.parentType.name,
            String(info.returnType),
            info.variableValues,
            Object.keys(info.fragments),
            info.operation.name?.value,
            info.rootValue === undefined,
          ]),
      },
      context: value(GraphQLString, () => null),
      size: value(Size, () => 'l'),
      badSize: value(Size, () => 'huge'),
      even: value(Even, () => 4),
      odd: value(Even, () => 3),
      zero: value(Even, () => 0),
      mustZero: value(nonNull(Even), () => 0),
      error: value(GraphQLString, () => new Error('returned')),
      thrown: value(GraphQLString, () => {
        throw new GraphQLError('thrown', { extensions: { code: 'X' } });
      }),
      nullish: value(GraphQLString, () => undefined),
      mustNull: value(nonNull(GraphQLString), () => null),
      rows: value(listOf(Row), () => rows),
      mustRows: value(nonNull(listOf(nonNull(Row))), () => rows),
      setOfRows: value(listOf(Row), () => new Set(rows)),
      noList: value(listOf(Row), () => ({ length: 1 })),
      textAsList: value(listOf(GraphQLString), () => 'abc'),
      list: value(listOf(GraphQLInt), () => [1, later(2), fails('item'), new Error('as item'), null, 'x']),
      mustList: value(listOf(nonNull(GraphQLInt)), () => [1, null, 3, 'x']),
      lists: value(listOf(nonNull(listOf(GraphQLInt))), () => [[1], [2, 'x'], null]),
      listLater: value(listOf(nonNull(GraphQLInt)), () => later([later(1), fails('third', 4), fails('second', 2)])),
      group: value(Group, () => ({})),
      mustGroup: value(nonNull(Group), () => ({})),
      dog: value(Named, () => ({ type: 'Dog', name: 'Rex', barks: 3, must: 'm' })),
      cat: value(Named, () => ({ type: 'Cat', name: 'Tom', must: 'm', wait: true })),
      noCat: value(Named, () => ({ type: 'Cat', isCat: false })),
      noCatLater: value(Named, () => ({ type: 'Cat', isCat: false, wait: true })),
      nobody: value(Named, () => ({})),
      unknown: value(Named, () => ({ type: 'Unknown' })),
      scalarType: value(Named, () => ({ type: 'Even' })),
      stranger: value(Named, () => ({ type: 'Stranger' })),
      numberType: value(Named, () => ({ type: 5 })),
      objectType: value(Named, () => ({ type: Dog })),
      pets: value(listOf(Named), () => [
        { type: 'Dog', name: 'Rex', must: 'm' },
        { type: 'Cat', name: 'Tom' },
        later({ type: 'Dog', barks: 'x' }),
      ]),
    },
  }),
});

type Variables = Record<string, unknown>;

const cases: [query: string, variables?: Variables][] = [
  ['{ size badSize even odd zero error thrown nullish }'],
  ['{ even mustZero }'],
  ['{ even mustNull }'],
  ['{ a: size b: size __typename size }'],
  ['{ __proto__: size toString: even constructor: size then: size }'],
  [
    'query Name($v: Int = 3) { info other: info ... on Query { info } ...F a: required(id: "x") @skip(if: false) ' +
      'rows { rows(n: $v) { name } } } fragment F on Query { info }',
  ],
  ['{ rows { name count method wait must __typename } }'],
  ['{ mustRows { name must } }'],
  ['{ mustRows { name } setOfRows { name rows { name rows(n: 2) { name } } } }'],
  ['{ noList { name } textAsList list mustList lists listLater }'],
  ['{ rows { mustFail fail } even }'],
  ['{ mustRows { mustFail fail } even }'],
  ['{ group { fast slow inner { fast slow } } }'],
  ['{ group { slow throws } even }'],
  ['{ group { throws slow } even }'],
  ['{ group { slow inner { slow rejects } rejects } odd }'],
  ['{ group { slow rejects late inner { late slow } } }'],
  ['{ mustGroup { slow inner { throws } } odd }'],
  ['{ group { mustInner { mustInner { slow rejects late } slow } slow } }'],
  ['{ mustGroup { mustInner { rejects } slow } }'],
  ['{ even ...A odd } fragment A on Query { group { throws } mustNull }'],
  [
    '{ dog { name ... on Dog { barks } ... on Cat { lives } } ' +
      'cat { name __typename ... on Cat { lives friend { name } } } }',
  ],
  [
    '{ noCat { name } noCatLater { name } nobody { name } unknown { name } scalarType { name } stranger { name } ' +
      'numberType { name } objectType { name } }',
  ],
  ['{ pets { ...N friend { ...N } } } fragment N on Named { name must ... on Dog { barks } }'],
  ['{ dog { friend { name } } dog { friend { must } } ...F } fragment F on Query { dog { friend { __typename } } }'],
  ['{ echo(text: "a", word: TWO, size: LARGE, point: { x: 1, word: ONE }, points: [{ x: 2, y: null }]) }'],
  ['{ echo(must: null) }'],
  ['{ echo(points: { x: 1 }) other: echo(point: { x: 1, inner: { x: 2, tags: "one" } }) }'],
  ['query ($t: String, $m: String! = "own", $p: Point) { echo(text: $t, withDefault: $t, must: $m, point: $p) }'],
  [
    'query ($t: String, $m: String! = "own", $p: Point) { echo(text: $t, withDefault: $t, must: $m, point: $p) }',
    { t: null, p: { x: 3, inner: { x: 4 } } },
  ],
  ['query ($m: String) { echo(must: $m) }', { m: null }],
  ['query ($m: String) { echo(must: $m) }'],
  ['query ($m: String = "x") { required(id: $m) even }', { m: null }],
  [
    'query ($x: Int!, $y: Int, $w: Word, $s: Size) { echo(point: { x: $x, y: $y, word: $w }, size: $s, ' +
      'points: [{ x: $x }, { x: 2, inner: { x: $x, y: $y } }]) }',
    { x: 1 },
  ],
  [
    'query ($x: Int!, $y: Int, $w: Word, $s: Size) { echo(point: { x: $x, y: $y, word: $w }, size: $s) }',
    { x: 1, y: null, w: 'TWO', s: 'LARGE' },
  ],
  ['query ($x: Int!) { echo(point: { x: $x }) }', {}],
  ['query ($x: Int!) { echo(point: { x: $x }) }', { x: 'one' }],
  ['query ($s: Size) { echo(size: $s) }', { s: 'HUGE' }],
  ['query ($p: Point) { echo(point: $p) }', { p: { y: 1, z: 2 } }],
  ['query ($tags: [String!]) { echo(point: { x: 1, tags: $tags }) }', { tags: 'one' }],
  [
    '{ even @skip(if: true) odd @include(if: false) size @include(if: true) @skip(if: false) zero ' +
      '@include(if: true) @skip(if: true) }',
  ],
  ['{ group @skip(if: true) { fast } ... @include(if: false) { even } }'],
  ['{ group { fast @skip(if: true) } }'],
  ['query ($a: Boolean!) { ...F @include(if: $a) ...F } fragment F on Query { even }', { a: false }],
  ['query ($a: Boolean!) { ...F ...F @include(if: $a) } fragment F on Query { even }', { a: false }],
  [
    'query ($a: Boolean!, $b: Boolean!) { a: group { ...G @include(if: $a) } ' +
      'b: group { ...G @skip(if: $b) fast } } fragment G on Group { inner { fast @include(if: $b) } }',
    { a: true, b: false },
  ],
  ['query ($a: Boolean!) { group @include(if: $a) { fast } group { inner { fast } } }', { a: false }],
  ['query ($a: Boolean = true) { even @include(if: $a) size }'],
  ['query ($a: Boolean = true) { even @include(if: $a) size }', { a: false }],
  ['query ($a: Boolean = true) { even @include(if: $a) size }', { a: null }],
  ['query ($a: Boolean = true, $t: Size) { group { fast @include(if: $a) } echo(size: $t) }', { a: null, t: 'LARGE' }],
  [getIntrospectionQuery()],
  [
    'query ($n: String!) { __type(name: $n) { name fields { name type { name ofType { name } } } } ' +
      '__schema { queryType { name } } }',
    { n: 'Named' },
  ],
];

const answer = async (result: unknown) => JSON.stringify(await result);

describe('a plan answers as graphql-js does', () => {
  test.each(cases)('%s %j', async (query, variableValues = {}) => {
    const document = parse(query);
    const wanted = await answer(execute({ schema, document, contextValue: {}, variableValues }));
    const plan = new Plan(schema, document, operationOf(document));
    for (const _time of [1, 2]) expect(await answer(plan.run({}, variableValues))).toBe(wanted);
  });
});

describe('a plan', () => {
  test('handles what fails later in a list that failed at once', async () => {
    const late = fails('late', 3);
    const Item = new GraphQLObjectType({
      name: 'Item',
      fields: {
        must: value(nonNull(GraphQLString), ((item: { isLate: boolean }) => {
          if (item.isLate) return late;
          throw new Error('at once');
        }) as () => unknown),
      },
    });
    const items = value(listOf(nonNull(Item)), () => [{ isLate: true }, { isLate: false }]);
    const own = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { items } }) });
    const document = parse('{ items { must } }');
    const unhandled: unknown[] = [];
    const listen = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listen);
    try {
      expect(JSON.stringify(await new Plan(own, document, operationOf(document)).run({}, {}))).toBe(
        '{"errors":[{"message":"at once","locations":[{"line":1,"column":11}],"path":["items",1,"must"]}],' +
          '"data":{"items":null}}',
      );
      // Node tells after the microtasks of a turn
      await setImmediate();
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', listen);
    }
  });

  test('is kept for each set of conditions', async () => {
    const document = parse(
      'query ($a: Boolean!, $b: Boolean!) { even @include(if: $a) size @skip(if: $b) group { fast @include(if: $b) } }',
    );
    const plan = new Plan(schema, document, operationOf(document));
    for (const a of [true, false, true])
      for (const b of [true, false]) {
        const wanted = await answer(execute({ schema, document, variableValues: { a, b } }));
        expect(await answer(plan.run({}, { a, b }))).toBe(wanted);
      }
  });

  test('keeps no more than sixteen sets of conditions, and answers all', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const document = parse(
      `query (${names.map((name) => `$${name}: Boolean!`).join(' ')}) ` +
        `{ ${names.map((name) => `${name}: even @include(if: $${name})`).join(' ')} }`,
    );
    const plan = new Plan(schema, document, operationOf(document), { maxFields: 100 });
    for (let n = 0; n < 32; n++) {
      const variables = Object.fromEntries(names.map((name, bit) => [name, Boolean(n & (1 << bit))]));
      expect(await answer(plan.run({}, variables))).toBe(
        await answer(execute({ schema, document, variableValues: variables })),
      );
    }
    expect(plan.isTooLarge).toBe(false);
    expect(plan.size).toBeLessThanOrEqual(16 * names.length);
  });

  test('grows with the types that come up, and says when it is too large', async () => {
    const document = parse('{ pets { a: name b: name c: name } }');
    const plan = new Plan(schema, document, operationOf(document), { maxFields: 5 });
    expect(plan.size).toBe(0);
    await plan.run({}, {});
    expect(plan.size).toBe(7);
    expect(plan.isTooLarge).toBe(true);
  });

  test('hands each call of a resolver arguments of its own', async () => {
    const seen: object[] = [];
    const own = buildSchema('type Query { a(n: Int = 1, deep: [Int!]): Int }');
    const field = own.getQueryType()!.getFields().a!;
    field.resolve = (_source, args: { n: number; deep?: number[] }) => {
      seen.push(args);
      args.deep?.push(5);
      return ++args.n;
    };
    const document = parse('{ a x: a(n: 4) y: a(deep: [1]) }');
    const plan = new Plan(own, document, operationOf(document));
    const first = await answer(plan.run({}, {}));
    for (const _time of [2, 3]) expect(await answer(plan.run({}, {}))).toBe(first);
    expect(new Set(seen).size).toBe(9);
    expect(seen.at(-1)).toEqual({ n: 2, deep: [1, 5] });
  });

  test('runs queries only', () => {
    const document = parse('mutation { a }');
    expect(() => new Plan(schema, document, operationOf(document))).toThrow('Only queries');
  });

  test('makes no code of what stands in a document', async () => {
    const own = buildSchema('type Query { a(text: String, deep: In): String } input In { text: String }');
    own.getQueryType()!.getFields().a!.resolve = (_source, args: object) => JSON.stringify(args);
    const texts = ['__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74dglobalThis.pwned=1', '"+(globalThis.pwned=1)+"'];
    for (const text of texts) {
      const document = parse(`{ a(text: ${JSON.stringify(text)}, deep: { text: ${JSON.stringify(text)} }) }`);
      const plan = new Plan(own, document, operationOf(document));
      expect(await plan.run({}, {})).toEqual({ data: { a: JSON.stringify({ text, deep: { text } }) } });
    }
    expect(globalThis).not.toHaveProperty('pwned');
  });
});

describe('lists that arrive together', () => {
  const read = ({ n }: { n: number }) => n;
  const extensions = { pothosExposedField: 'n', pothosOriginalResolve: read };
  const Item = new GraphQLObjectType({
    name: 'Item',
    fields: {
      n: { type: GraphQLInt },
      renamed: { type: GraphQLInt, resolve: read, extensions },
      wrapped: { type: GraphQLInt, resolve: (item: { n: number }) => read(item) + 1, extensions },
      asked: { type: GraphQLInt, resolve: ({ n }: { n: number }) => asked(n) },
    },
  });
  const Shelf = new GraphQLObjectType({
    name: 'Shelf',
    fields: { items: { type: listOf(Item), resolve: async (items) => loaded.then(() => items as object[]) } },
  });
  const shelves = Array.from({ length: 60 }, () => Array.from({ length: 50 }, (_, n) => ({ n })));
  const fields = { shelves: { type: listOf(Shelf), resolve: () => shelves } };
  const own = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields }) });
  let loaded: Promise<void>;
  let asked: (n: number) => number;

  /** The answer, and how often the event loop came around meanwhile. */
  const turnsOf = async (query: string) => {
    const document = parse(query);
    loaded = setImmediate();
    let turns = 0;
    const turnsOfAsked = new Set<number>();
    asked = (n) => {
      turnsOfAsked.add(turns);
      return n;
    };
    let isDone = false;
    const running = Promise.resolve(new Plan(own, document, operationOf(document)).run({}, {})).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      await setImmediate();
      turns++;
    }
    const counts = { turns, turnsOfAsked: turnsOfAsked.size };
    expect(await answer(running)).toBe(await answer(execute({ schema: own, document })));
    return counts;
  };

  test('are completed in portions, between which the event loop serves others', async () => {
    expect((await turnsOf('{ shelves { items { n renamed } } }')).turns).toBeGreaterThanOrEqual(6);
  });

  test('have the errors of graphql-js, in the order of the lists, when they are completed in portions', async () => {
    const failing = shelves.map((items, n) => (n % 7 === 3 ? items.with(n % 50, { n: 'x' } as never) : items));
    fields.shelves.resolve = () => failing;
    try {
      expect((await turnsOf('{ shelves { items { n renamed } } }')).turns).toBeGreaterThanOrEqual(6);
    } finally {
      fields.shelves.resolve = () => shelves;
    }
  });

  test('call all their resolvers in one turn: what these ask for is read together', async () => {
    expect((await turnsOf('{ shelves { items { n asked wrapped } } }')).turnsOfAsked).toBe(1);
  });
});
