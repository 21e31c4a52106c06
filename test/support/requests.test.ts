import fc from 'fast-check';
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNullableType,
  getVariableValues,
  isEnumType,
  isInputObjectType,
  isListType,
  parse,
  validate,
  visit,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/wiring/schema.ts';
import { operationAt, operations, pathVariables, routeOf } from './operations.ts';
import { injectable, type Parts, partsOf, toGraphQL, toRest } from './requests.ts';
import { type SampleSource, sampleInput } from './samples.ts';
import { restBodyOf, writtenRequest } from './written.ts';

const others = ['guest_user_id', 'stranger_user_id', 'connection_id', 'from_environment_id', 'target_entity_id'];
const names = [...operations.flatMap(({ path }) => pathVariables(path)), ...others, 'name', 'slug'];
let count = 0;
const source: SampleSource = {
  marker: 'mk0123456789',
  ids: Object.fromEntries(names.map((name) => [name, `id-of-${name}`])),
  username: 'somebody',
  password: 'correct horse battery staple',
  next: () => ++count,
};
const routes = operations.map((operation) => [routeOf(operation), operation] as const);
const empty: Parts = { params: {}, query: {}, headers: {}, body: undefined };

describe.each([
  ['with everything', false],
  ['with what must be there', true],
])('a request %s', (_, requiredOnly) => {
  it.each(routes)('of %s is what the route accepts', (_route, operation) => {
    const parts = partsOf(operation, source, { requiredOnly });
    expect(operation.read(parts).issues.items).toEqual([]);
  });
});

it('has every parameter and field of its route, or only the required ones', () => {
  for (const operation of operations) {
    const all = partsOf(operation, source, { requiredOnly: false });
    const required = partsOf(operation, source);
    const given = ({ params, query, headers }: Parts) => Object.keys({ ...params, ...query, ...headers }).toSorted();
    const of = (list: typeof operation.parameters) => list.map(({ wireName }) => wireName).toSorted();
    const { parameters } = operation;
    // where a page begins, and whose connection it is that somebody else's would do for
    const leftOut = ['cursor', 'after', 'end_user_id'];
    const complete = parameters.filter(({ wireName, isRequired }) => isRequired || !leftOut.includes(wireName));
    expect([routeOf(operation), given(all)]).toEqual([routeOf(operation), of(complete)]);
    expect(given(required)).toEqual(of(parameters.filter(({ isRequired }) => isRequired)));
    const { type } = operation.body ?? {};
    if (!type) continue;
    for (const [{ body }, requiredOnly] of [
      [all, false],
      [required, true],
    ] as const)
      expect(Object.keys(body as object)).toEqual(
        Object.keys(toRest(sampleInput(type, source, { requiredOnly }), type) as object),
      );
  }
});

describe('the address of a request', () => {
  const operation = operationAt('GET', '/v1/orgs/{org_id}/workspaces/{workspace_id}');

  it('has every value of the path as one segment, whatever is in it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (org_id) => {
        const { url } = injectable(operation, { ...empty, params: { org_id, workspace_id: 'w' } });
        const segments = url.split('/');
        expect([segments.length, decodeURIComponent(segments[3]!)]).toEqual([6, org_id]);
        expect(url).toMatch(/^[^?#]*$/);
      }),
    );
  });

  it('has values of the path as they are where a test says so', () => {
    const params = { org_id: '../%2e', workspace_id: 'w' };
    expect(injectable(operation, { ...empty, params }, { rawPath: true }).url).toBe('/v1/orgs/../%2e/workspaces/w');
  });

  it('keeps every value of a repeated query variable, in order', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 }), fc.string(), (tag, other) => {
        const { url } = injectable(operation, { ...empty, query: { tag, other } });
        const search = new URL(url, 'http://test').searchParams;
        expect([search.getAll('tag'), search.getAll('other')]).toEqual([tag, [other]]);
      }),
    );
  });
});

describe('the body of a request', () => {
  it('is JSON, and absent where there is none', () => {
    const operation = operationAt('POST', '/v1/orgs/{org_id}/secrets');
    const body = { name: 'ä', nested: [null, { a: 1 }] };
    const sent = injectable(operation, { ...empty, body });
    expect([sent.headers?.['content-type'], JSON.parse(sent.payload as string)]).toEqual(['application/json', body]);
    expect(injectable(operation, empty)).not.toHaveProperty('payload');
  });

  it('is a form with all its fields where the route takes a file', () => {
    const forms = operations.filter(({ body }) => body?.fileField);
    expect(forms).not.toEqual([]);
    for (const operation of forms) {
      const parts = partsOf(operation, source, { requiredOnly: false });
      const sent = injectable(operation, parts);
      expect(sent.headers?.['content-type']).toMatch(/^multipart\/form-data/);
      for (const name of Object.keys(parts.body as object)) expect(sent.payload).toContain(`name="${name}"`);
      expect(sent.payload).toContain('filename=');
    }
  });
});

/** Values of an input type, in GraphQL names: any of its fields may be left out. */
function valuesOf(type: GraphQLInputType, depth = 0): fc.Arbitrary<unknown> {
  const nullable = getNullableType(type);
  if (isListType(nullable)) return fc.array(valuesOf(nullable.ofType, depth), { maxLength: 2 });
  if (isEnumType(nullable)) return fc.constantFrom(...nullable.getValues().map(({ name }) => name));
  if (isInputObjectType(nullable)) return objectsOf(nullable, depth + 1);
  return fc.oneof(
    fc.string(),
    fc.integer(),
    fc.constant(null),
    fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
  );
}

function objectsOf(type: GraphQLInputObjectType, depth: number): fc.Arbitrary<unknown> {
  const others = type.extensions.unknownKeys as string | undefined;
  const fields = Object.values(type.getFields()).filter(({ name }) => depth < 3 || name.length % 2 === 0);
  const values = fields.map(({ name, type: of }): [string, fc.Arbitrary<unknown>] => [
    name,
    // they stand beside the fields in REST: without a key, there is nothing to see of them
    name === others
      ? fc.dictionary(fc.stringMatching(/^zz[a-z]{1,5}$/), fc.integer(), { minKeys: 1, maxKeys: 2 })
      : valuesOf(of, depth),
  ]);
  return fc.record(Object.fromEntries(values), { requiredKeys: [] });
}

describe('a body', () => {
  const types = [...new Set(operations.flatMap(({ body }) => body?.type ?? []))];

  it.each(types.map((type) => [type.name, type] as const))('of %s is the same in both forms', (_name, type) => {
    fc.assert(
      fc.property(objectsOf(type, 0), (value) => {
        expect(toGraphQL(toRest(value, type), type)).toEqual(value);
      }),
      { numRuns: 20 },
    );
  });

  it('has the names of REST, and words in lower case', () => {
    const keysOf = (value: unknown): string[] =>
      typeof value !== 'object' || value === null ? [] : Object.keys(value);
    for (const operation of operations)
      for (const key of keysOf(partsOf(operation, source, { requiredOnly: false }).body))
        expect(key).toMatch(/^[a-z0-9_]+$/);
    const type = schema.getType('CreateApiTokenInput') as GraphQLInputObjectType;
    expect(toRest({ rateLimitRps: 1, workspaceIds: ['w'] }, type)).toEqual({ rate_limit_rps: 1, workspace_ids: ['w'] });
  });
});

describe('the written document of a route', () => {
  it.each(routes)('%s is one that GraphQL takes, with the values of the request', (_route, operation) => {
    const { query, variables } = writtenRequest(operation, partsOf(operation, source, { requiredOnly: false }));
    const document = parse(query);
    expect(validate(schema, document)).toEqual([]);
    const [root] = document.definitions;
    const definitions = root && 'variableDefinitions' in root ? (root.variableDefinitions ?? []) : [];
    expect(getVariableValues(schema, definitions as never, variables).errors ?? []).toEqual([]);
    const known = new Set(definitions.map(({ variable }) => variable.name.value));
    expect(Object.keys(variables).filter((name) => !known.has(name))).toEqual([]);
    const directives: string[] = [];
    visit(document, { Directive: ({ name }) => void directives.push(name.value) });
    expect(directives.filter((name) => !schema.getDirective(name))).toEqual([]);
  });

  it('names what REST must answer: renamed, flattened, the body alone', () => {
    const operation = operationAt('GET', '/v1/orgs/{org_id}/workspaces/{workspace_id}');
    const field = operation.rootField;
    const workspace = { id: 'w', name: 'W', createdAt: 'then', storageBucket: 'b' };
    const body = restBodyOf(operation, { [field]: workspace }) as object;
    expect(body).toMatchObject({ name: 'W', created_at: 'then' });
    expect(Object.keys(body).filter((key) => key !== key.toLowerCase())).toEqual([]);
  });
});
