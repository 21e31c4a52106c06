import fc from 'fast-check';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { GraphQLID, getNamedType } from 'graphql';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { shapeFault } from '../support/error-shapes.ts';
import {
  fieldValues,
  type HostileRequest,
  hostilePaths,
  hostileRequests,
  withOneTextEmpty,
} from '../support/hostile.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { gentlestFirst, operations, routeOf } from '../support/operations.ts';
import { expectOk, graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, documentOf, rootFields, titleOf } from '../support/root-fields.ts';
import { slowness } from '../support/slowness.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

const TIMEOUT_MS = 10_000;

let app: TestApp;
let world: World;
/** Loses its workspace, its people and its session to the requests that are valid but for their oddness. */
let doomed: World;
let prototype: string;
beforeAll(async () => {
  prototype = Object.getOwnPropertyNames(Object.prototype).join();
  app = await startTestApp();
  world = await createWorld(app);
  doomed = await createWorld(app);
});
afterAll(() => app.close());

afterEach(() => {
  expect(Object.getOwnPropertyNames(Object.prototype).join()).toBe(prototype);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

/** The answer, or a rejection when there is none in time. */
async function answered(request: InjectOptions): Promise<LightMyRequestResponse> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), TIMEOUT_MS * slowness());
  });
  try {
    return await Promise.race([app.server.inject(request), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What is wrong with how a request was answered; `null` when it was a success or a refusal in good form. */
async function faultOf(request: InjectOptions): Promise<string | null> {
  const answer = await answered(request);
  if (answer.statusCode >= 500) return `${answer.statusCode} ${answer.body.slice(0, 300)}`;
  if (answer.statusCode < 400 || request.method === 'HEAD') return null;
  const fault = shapeFault(answer);
  return fault && `${answer.statusCode}: ${fault}`;
}

async function faultsOf(requests: Iterable<HostileRequest>): Promise<string[]> {
  const faults: string[] = [];
  for (const { what, request } of requests) {
    const fault = await faultOf(request);
    if (fault) faults.push(`${what} -> ${fault}`);
  }
  return faults;
}

// streams of events would stay open: they are tried with what does not start one
const ordered = gentlestFirst().filter(({ type }) => type !== 'subscription');

describe('never a 5xx, never a hang, always one of the two shapes', () => {
  test.each(ordered.map((operation) => [routeOf(operation), operation] as const))('%s', async (_title, operation) => {
    const valid = () => partsOf(operation, doomed, { token: doomed.accounts.owner.accessToken, requiredOnly: false });
    expect(await faultsOf(hostileRequests(operation, valid))).toEqual([]);
  });

  test('paths that no route has', async () => {
    const urls = [
      '/',
      '/v1',
      '/v1/',
      '//v1/auth/me',
      '/v1//auth/me',
      '/V1/auth/me',
      '/v1/auth/me/%00',
      '/%',
      '/%ff',
      '/..%2f',
      `/${'x'.repeat(20_000)}`,
      '/__proto__',
      '/v1/orgs//workspaces',
      '*',
      '/graphql/x',
    ];
    const requests = urls.flatMap((url) =>
      (['GET', 'POST', 'DELETE', 'OPTIONS'] as const).map((method) => ({
        what: `${method} ${url.slice(0, 40)}`,
        request: { method, url, headers: world.as('owner') },
      })),
    );
    expect(await faultsOf(requests)).toEqual([]);
  });

  test('authorization headers of every kind', async () => {
    const values = [
      'Bearer',
      'Bearer ',
      `Bearer ${'a'.repeat(100_000)}`,
      'Bearer a.b.c',
      'Bearer \u00e9',
      'Basic Og==',
      '\0',
      `Bearer ${Buffer.from('{"alg":"none"}').toString('base64url')}..`,
      `Bearer ${world.accounts.owner.accessToken}x`,
    ];
    const requests = values.map((authorization) => ({
      what: authorization.slice(0, 30),
      request: { url: '/v1/auth/me', headers: { authorization } },
    }));
    expect(await faultsOf(requests)).toEqual([]);
  });
});

describe('what an unknown id of a path gets', () => {
  test.each(
    operations
      .filter(({ path, type, isPublic }) => path.includes('{') && type === 'query' && !isPublic)
      .map((operation) => [routeOf(operation), operation] as const),
  )('%s: 403, 404 or 422 whatever stands there', async (_title, operation) => {
    const valid = () => partsOf(operation, world, { token: world.accounts.owner.accessToken });
    for (const { what, request } of hostilePaths(operation, valid)) {
      if (what.includes('%2') || what.endsWith('=')) continue;
      expect([400, 403, 404, 422], `${what}`).toContain((await answered(request)).statusCode);
    }
  });
});

describe('cursors', () => {
  const paged = listRoutes.filter(({ isPaged }) => isPaged);

  async function cursorOf(list: (typeof paged)[number], query: Record<string, string> = {}): Promise<string> {
    const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
    const body = await expectOk<{ next_cursor: string }>(
      app,
      injectable(list.operation, { ...parts, query: { ...parts.query, limit: '1', ...query } }),
    );
    return body.next_cursor;
  }

  /** A cursor of each list, by its route. */
  const cursors = new Map<string, string>();
  beforeAll(async () => {
    for (const list of paged) await addRows(app, world, list, 4);
    for (const list of paged) cursors.set(routeOf(list.operation), await cursorOf(list));
  });

  test.each(paged.map((list) => [routeOf(list.operation), list] as const))(
    '%s: a cursor that was tampered with, or made for another list, is invalid',
    async (route, list) => {
      const good = cursors.get(route)!;
      expect(good).toMatch(/^[\w-]+$/);
      const bytes = Buffer.from(good, 'base64url');
      const flipped = [0, 5, Math.floor(bytes.length / 2), bytes.length - 13, bytes.length - 1].map((at) => {
        const copy = Buffer.from(bytes);
        copy[at]! ^= 1;
        return copy.toString('base64url');
      });
      const foreign = [...cursors].flatMap(([other, cursor]) => (other === route ? [] : [cursor]));
      const misspelt = [
        good.slice(0, -1),
        good.slice(1),
        `${good}A`,
        `${good}=`,
        `${good} `,
        ` ${good}`,
        good.toUpperCase(),
        'e30',
        Buffer.from('{}').toString('base64'),
        'x',
        '\0',
        'A'.repeat(10_240),
        'null',
      ];
      const bad = [flipped, foreign, misspelt].flatMap((cursors, kind) => thinned(cursors, `${route} ${kind}`));
      for (const cursor of bad.filter((text) => text !== good)) {
        const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
        const answer = await answered(injectable(list.operation, { ...parts, query: { ...parts.query, cursor } }));
        expect(answer.statusCode, `${cursor.slice(0, 60)}: ${answer.body.slice(0, 300)}`).toBe(422);
        expect(answer.json<{ detail: { loc: unknown }[] }>().detail[0]!.loc).toEqual(['query', 'cursor']);
      }
    },
  );

  test('a cursor of one tenant is invalid for another, one of a filter for another filter', async () => {
    const other = await createWorld(app, { withResources: false });
    const list = paged.find(({ operation }) => operation.path === '/v1/orgs/{org_id}/workspaces')!;
    await addRows(app, world, list, 2);
    const cursor = await cursorOf(list);
    const parts = partsOf(list.operation, other, { token: other.accounts.owner.accessToken });
    expect((await answered(injectable(list.operation, { ...parts, query: { cursor } }))).statusCode).toBe(422);
    const users = paged.find(({ operation }) => operation.path === '/v1/users')!;
    await addRows(app, world, users, 3);
    const filtered = await cursorOf(users, { search: world.marker });
    const unfiltered = partsOf(users.operation, world, { token: world.accounts.owner.accessToken });
    expect(
      (await answered(injectable(users.operation, { ...unfiltered, query: { ...unfiltered.query, cursor: filtered } })))
        .statusCode,
    ).toBe(422);
  });
});

describe('limit', () => {
  const limited = operations.flatMap((operation) => {
    const limit = operation.parameters.find(({ name }) => name === 'limit');
    return limit ? [[routeOf(operation), operation, limit.constraints] as const] : [];
  });
  test.each(limited)('%s takes its bounds and nothing around them', async (title, operation, { min, max }) => {
    const ask = async (limit: string) => {
      const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
      return (await answered(injectable(operation, { ...parts, query: { ...parts.query, limit } }))).statusCode;
    };
    for (const good of [min, max]) expect(await ask(String(good))).toBe(200);
    const others = [-1, '', ' 5', '5 ', '0x10', '5e1', '5.0', '1.5', '٥', 'NaN', '2147483648', '9'.repeat(30)];
    for (const bad of [min! - 1, max! + 1, ...thinned(others, `limit ${title}`)])
      expect(await ask(String(bad)), String(bad)).toBe(422);
  });
});

describe('over GraphQL: never an internal error, never a hang', () => {
  const asked = rootFields.filter(({ kind, name }) => kind !== 'subscription' && !/logout$/i.test(name));
  test.each(asked.map((root) => [titleOf(root), root] as const))('%s', async (title, root) => {
    const authorization = world.as('owner').authorization;
    const given = argumentsOf(root, world, { requiredOnly: false });
    const query = documentOf(root, given, 2);
    const faults: string[] = [];
    const ask = async (what: string, variables: string) => {
      const request = graphqlRequest(query, {}, authorization);
      const answer = await answered({
        ...request,
        payload: `{"query":${JSON.stringify(query)},"variables":${variables}}`,
      });
      if (answer.statusCode >= 500 || answer.body.includes('INTERNAL_SERVER_ERROR'))
        faults.push(`${what}: ${answer.statusCode} ${answer.body.slice(0, 300)}`);
    };
    // the largest ones once per field of the root: what they cost does not depend on where they stand
    const small = fieldValues.filter(([, json]) => json.length < 100_000);
    let next = fieldValues;
    const values = (where: string) => {
      const now = thinned(next, `${title} ${where}`);
      next = small;
      return now;
    };
    for (const [name, value] of Object.entries(given)) {
      const others = Object.entries(given).filter(([other]) => other !== name);
      const withValue = (json: string) =>
        `{${[
          ...others.map(([key, kept]) => `${JSON.stringify(key)}:${JSON.stringify(kept)}`),
          `${JSON.stringify(name)}:${json}`,
        ].join()}}`;
      if (typeof value !== 'object' || value === null) {
        for (const [what, json] of values(name)) await ask(`${name}: ${what}`, withValue(json));
        continue;
      }
      for (const key of Object.keys(value)) {
        const { [key]: _left, ...rest } = value as Record<string, unknown>;
        const inner = JSON.stringify(rest).slice(1, -1);
        for (const [what, json] of values(`${name}.${key}`))
          await ask(
            `${name}.${key}: ${what}`,
            withValue(`{${inner}${inner ? ',' : ''}${JSON.stringify(key)}:${json}}`),
          );
      }
    }
    for (const [where, copy] of thinned([...withOneTextEmpty(given)], `${title} texts`))
      await ask(`${where} empty`, JSON.stringify(copy));
    expect(faults).toEqual([]);
  });

  const withIds = rootFields.filter(({ field }) => field.args.some(({ type }) => getNamedType(type) === GraphQLID));
  test.each(withIds.map((root) => [titleOf(root), root] as const))(
    '%s: an empty id is invalid, or as unknown as any other',
    async (_title, root) => {
      const given = argumentsOf(root, world, { requiredOnly: false });
      const codeWith = async (ids: Record<string, string>) => {
        const variables = { ...given, ...ids };
        const request = graphqlRequest(documentOf(root, variables, 1), variables, world.as('owner').authorization);
        const accept = root.kind === 'subscription' ? 'text/event-stream' : 'application/json';
        const { body } = await answered({ ...request, headers: { ...request.headers, accept } });
        return /"code":"([A-Z_]+)"/.exec(body)?.[1] ?? 'none';
      };
      for (const { name, type } of root.field.args) {
        if (getNamedType(type) !== GraphQLID) continue;
        const unknown = await codeWith({ [name]: 'nobody_01M7YDNKP9EQGSJ8EQS85QTN9P' });
        expect([unknown, 'VALIDATION_ERROR'], name).toContain(await codeWith({ [name]: '' }));
        expect(unknown, name).not.toBe('INTERNAL_SERVER_ERROR');
      }
    },
  );

  test('documents that are none', async () => {
    const queries = [
      '',
      ' ',
      '{',
      '{}',
      'query',
      '\0',
      '\ud800',
      '{ __proto__ }',
      '{ me { constructor } }',
      '{ me @skip { id } }',
      '{ me(id: "\\u0000") { id } }',
      `{ ${'me '.repeat(1_000)} }`,
      `${'{ me '.repeat(3_000)}`,
      '#'.repeat(1_000_000),
      'query A { me { id } } query B { me { id } }',
      'fragment F on User { ...F } { me { ...F } }',
      '{ ...F }',
      'mutation { nothing }',
      'subscription { nothing }',
      '{ me { id } } type X { a: Int }',
    ];
    for (const query of queries) {
      const answer = await answered(graphqlRequest(query, {}, world.as('owner').authorization));
      expect(answer.statusCode, query.slice(0, 60)).toBeLessThan(500);
      expect(answer.body, query.slice(0, 60)).toContain('"errors"');
      expect(answer.body).not.toMatch(/INTERNAL_SERVER_ERROR|node_modules|\.ts:\d|Did you mean/);
    }
  });
});

const randomSeed = Math.floor(Math.random() * 2 ** 31);

test.each([
  [42, 250],
  [randomSeed, 150],
])('random requests (seed %i, %i runs) are answered in good form', async (seed, numRuns) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.string({ maxLength: 20 }),
    fc.constantFrom('', '\0', '__proto__', '-1', '1e9', ...Object.values(world.ids)),
  );
  const name = fc.oneof(
    fc.constantFrom('limit', 'cursor', 'search', 'workspace_id', 'name', 'tags', 'email'),
    fc.string({ maxLength: 10 }),
  );
  const arbitrary = fc.record({
    operation: fc.constantFrom(
      ...ordered.filter(({ path }) => !path.endsWith('/logout') && path !== '/v1/orgs/{org_id}'),
    ),
    params: fc.dictionary(name, text, { maxKeys: 2 }),
    swap: fc.option(text),
    query: fc.dictionary(name, text, { maxKeys: 4 }),
    body: fc.oneof(
      { weight: 3, arbitrary: fc.dictionary(name, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 }) },
      { weight: 1, arbitrary: fc.jsonValue() },
    ),
    merged: fc.boolean(),
    isMember: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ operation, swap, query, body, merged, isMember }) => {
      const parts = partsOf(operation, world, { token: world.accounts[isMember ? 'editor' : 'owner'].accessToken });
      const [first] = Object.keys(parts.params).slice(-1);
      if (swap !== null && first) parts.params[first] = swap;
      const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
      const sent = operation.body ? (merged && isObject ? { ...(parts.body as object), ...body } : body) : undefined;
      const wellFormed = (value: string) => value.toWellFormed();
      parts.params = Object.fromEntries(Object.entries(parts.params).map(([key, value]) => [key, wellFormed(value)]));
      const request = injectable(operation, { ...parts, query: { ...parts.query, ...query }, body: sent });
      expect(await faultOf(request)).toBeNull();
    }),
    { seed, numRuns, endOnFailure: true },
  );
});
