import { GraphQLFloat, GraphQLID, type GraphQLInputType, GraphQLInt, GraphQLString, Kind, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { checkDefault, ownConstraints, tightest } from '../../rest/bounds.ts';
import { pathProblems, routeKey, toUrl } from '../../rest/template.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';

function operationOf(text: string) {
  const [node] = parse(text).definitions;
  if (node?.kind !== Kind.OPERATION_DEFINITION) throw new Error(text);
  return node;
}

/** The bounds that directives set on a variable, and the mistakes in them. */
function boundsOf(directives: string, type: GraphQLInputType = GraphQLInt) {
  const [variable] = operationOf(`query ($a: Int ${directives}) { a }`).variableDefinitions ?? [];
  const problems: string[] = [];
  return { own: ownConstraints(variable!, type, (problem) => problems.push(problem)), problems };
}

describe('the bounds of a variable', () => {
  it('are none without directives', () => {
    expect(boundsOf('')).toEqual({ own: {}, problems: [] });
  });

  it.each<[string, GraphQLInputType, Constraints]>([
    ['@range(min: 1, max: 9)', GraphQLInt, { min: 1, max: 9 }],
    ['@range(min: 0)', GraphQLFloat, { min: 0 }],
    ['@range(max: 0)', GraphQLInt, { max: 0 }],
    ['@range(min: 2, max: 2)', GraphQLInt, { min: 2, max: 2 }],
    ['@range(min: null, max: 3)', GraphQLInt, { max: 3 }],
    ['@range(min: 4, max: null)', GraphQLInt, { min: 4 }],
    ['@oneOf(values: ["a", "b"])', GraphQLString, { oneOf: ['a', 'b'] }],
    ['@oneOf(values: ["a"])', GraphQLID, { oneOf: ['a'] }],
  ])('are those of %s', (directives, type, own) => {
    expect(boundsOf(directives, type)).toStrictEqual({ own, problems: [] });
  });

  it.each<[string, GraphQLInputType, string[]]>([
    ['@range(min: 1)', GraphQLString, ['@range needs an Int or a Float.']],
    ['@range', GraphQLInt, ['@range needs min, max or both.']],
    ['@range(min: null, max: null)', GraphQLInt, ['@range needs min, max or both.']],
    ['@range(min: 3, max: 2)', GraphQLInt, ['@range has a min above its max.']],
    ['@oneOf(values: ["a"])', GraphQLInt, ['@oneOf needs a String or an ID.']],
    ['@oneOf(values: [])', GraphQLString, ['@oneOf needs distinct values, at least one.']],
    ['@oneOf(values: ["a", "a"])', GraphQLString, ['@oneOf needs distinct values, at least one.']],
  ])('are refused where they make no sense: %s', (directives, type, problems) => {
    expect(boundsOf(directives, type).problems).toEqual(problems);
  });
});

describe('a default', () => {
  const problemsOf = (value: unknown, own: Constraints) => {
    const problems: string[] = [];
    checkDefault(value, own, (problem) => problems.push(problem));
    return problems;
  };

  it('obeys the bounds of its variable', () => {
    for (const value of [1, 9, 5]) expect(problemsOf(value, { min: 1, max: 9 })).toEqual([]);
    for (const value of [0, 10])
      expect(problemsOf(value, { min: 1, max: 9 })).toEqual(['the default is outside of @range.']);
    expect(problemsOf(-5, { max: 9 })).toEqual([]);
    expect(problemsOf(50, { min: 1 })).toEqual([]);
    for (const text of ['x', '0']) expect(problemsOf(text, { min: 1 })).toEqual([]);
  });

  it('is one of the values, and a list has no others', () => {
    expect(problemsOf('a', { oneOf: ['a'] })).toEqual([]);
    expect(problemsOf(['a', 'a'], { oneOf: ['a'] })).toEqual([]);
    expect(problemsOf('b', { oneOf: ['a'] })).toEqual(["the default 'b' is not in @oneOf."]);
    expect(problemsOf(['a', 'b', 'c'], { oneOf: ['a'] })).toEqual([
      "the default 'b' is not in @oneOf.",
      "the default 'c' is not in @oneOf.",
    ]);
    expect(problemsOf('b', {})).toEqual([]);
    expect(problemsOf(undefined, { oneOf: ['a'], min: 1 })).toEqual([]);
  });
});

describe('two sets of bounds', () => {
  it('are combined to the tighter ones, whichever comes first', () => {
    const wide = { min: 1, minLength: 1, minItems: 1, max: 9, maxLength: 9, maxItems: 9, maxBytes: 9 };
    const tight = { min: 2, minLength: 3, minItems: 4, max: 5, maxLength: 6, maxItems: 7, maxBytes: 8 };
    expect(tightest(wide, tight)).toEqual(tight);
    expect(tightest(tight, wide)).toEqual(tight);
    expect(tightest(tight, {})).toEqual(tight);
    expect(tightest({}, tight)).toEqual(tight);
    expect(tightest({}, {})).toEqual({});
  });

  it('allow the values that both do', () => {
    expect(tightest({ oneOf: ['a', 'b'] }, { oneOf: ['c', 'b'] }).oneOf).toEqual(['b']);
    expect(tightest({ oneOf: ['a'] }, {}).oneOf).toEqual(['a']);
    expect(tightest({}, { oneOf: ['a'] }).oneOf).toEqual(['a']);
  });

  it('have the bounds of items, and stay secret', () => {
    expect(tightest({ item: { min: 1, max: 5 } }, { item: { min: 2 } }).item).toEqual({ min: 2, max: 5 });
    expect(tightest({ item: { min: 1 } }, {}).item).toEqual({ min: 1 });
    expect(tightest({ sensitive: true }, { sensitive: false }).sensitive).toBe(true);
    expect(tightest({}, { sensitive: true }).sensitive).toBe(true);
    expect(tightest({}, {}).sensitive).toBeUndefined();
  });
});

describe('a path template', () => {
  const problemsOf = (path: string) => pathProblems(operationOf(`query ($a: ID!, $b: ID!) { x }`), path);

  it.each(['/v1', '/v1/a-b.c_d~e', '/v1/{a}', '/v1/{a}/x/{b}', '/{a}'])('may be %s', (path) => {
    expect(problemsOf(path)).toEqual([]);
  });

  it.each(['', 'v1', '/', '/v1/', '/v1//x', '/v1/x{a}', '/v1/{a}x', '/v1/a b', '/v1/é', '/v1/?x'])(
    'may not be %j',
    (path) => {
      expect(problemsOf(path)).toEqual([expect.stringContaining(`'${path}' is no path template`)]);
    },
  );

  it('has variables of the operation, each once', () => {
    expect(problemsOf('/v1/{c}')).toEqual([
      expect.stringContaining("The path variable '{c}' is not declared as '$c'."),
    ]);
    expect(problemsOf('/v1/{a}/{a}')).toEqual([expect.stringContaining("The path has '{a}' twice.")]);
    expect(problemsOf('/v1/{c}/{c}/')).toHaveLength(3);
  });

  it('is written for the router, which tells routes apart by all but the names of variables', () => {
    expect(toUrl('/v1/{a}/x/{b_c}')).toBe('/v1/:a/x/:b_c');
    expect(routeKey('GET', '/v1/{a}/x/{b}')).toBe('GET /v1/{}/x/{}');
    expect(routeKey('GET', '/v1/{b}/x/{a}')).toBe(routeKey('GET', '/v1/{a}/x/{b}'));
    expect(routeKey('PUT', '/v1/{a}')).not.toBe(routeKey('GET', '/v1/{a}'));
  });
});
