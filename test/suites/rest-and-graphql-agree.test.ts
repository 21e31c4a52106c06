import { getNamedType, isEnumType } from 'graphql';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { granted } from '../../src/access/permissions.ts';
import { permissionOf, type Requirement } from '../../src/graphql/plugins/access-plugin.ts';
import type { Role } from '../../src/kernel/roles.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { snakeCase } from '../support/names.ts';
import { operations, pathVariables, rootFieldOf, routeOf } from '../support/operations.ts';
import { injectable, type Parts, partsOf } from '../support/requests.ts';
import { bodyOfAnyMoment } from '../support/signed-links.ts';
import { stopClockFor } from '../support/stopped-clock.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';
import { askWritten, restBodyOf } from '../support/written.ts';

type Json = Record<string, unknown>;

/** An answer without the parameters of requests to others, who name them. */
const withoutNamesOfOthers = (body: string): string =>
  JSON.stringify(JSON.parse(body, (key, value: unknown) => (key === 'query_params_template' ? null : value)));

/** Answers with JSON Schemas, whose own words are in camel case. */
const showsSchemas = ['GET /v1/orgs/{org_id}/tools/custom-action-schemas'];

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000' } });
  world = await createWorld(app);
  for (const list of listRoutes) await addRows(app, world, list, 3);
});
afterAll(() => app.close());

/** Without activity, where each request adds a record: the next answer is another. */
const queries = operations.filter(({ type, path }) => type === 'query' && !path.includes('/activity'));

describe.each(queries.map((operation) => [routeOf(operation), operation] as const))('%s', (route, operation) => {
  test.each(['owner', ...thinned(['admin', 'viewer'] as const, route)] as const)(
    'REST and GraphQL give %s the same',
    async (role) => {
      stopClockFor(operation.path);
      for (const requiredOnly of [true, false]) {
        const parts = partsOf(operation, world, { token: world.accounts[role].accessToken, requiredOnly });
        const [rest, graphql] = [
          await app.server.inject(injectable(operation, parts)),
          await askWritten(app, operation, parts),
        ];
        // optional parameters may exclude each other
        if (role === 'owner' && requiredOnly) expect(rest.statusCode, rest.body).toBe(200);
        if (rest.statusCode >= 400) {
          expect(graphql.errors?.[0]?.extensions.code).toBe(
            rest.statusCode === 422 ? 'VALIDATION_ERROR' : rest.json<{ error: string }>().error,
          );
          continue;
        }
        expect(graphql.errors).toBeUndefined();
        expect(bodyOfAnyMoment(rest.json())).toEqual(bodyOfAnyMoment(restBodyOf(operation, graphql.data!)));
        if (!showsSchemas.includes(routeOf(operation)))
          expect(withoutNamesOfOthers(rest.body)).not.toMatch(/"[a-z]+[A-Z]\w*":/);
      }
    },
  );
});

/** What a mutation asks of its caller, unless it is about the caller alone. */
const permissionFor = (operation: CompiledOperation) =>
  permissionOf(schema.getMutationType()!.getFields()[rootFieldOf(operation)]!.extensions.access as Requirement);

/** Requests of a change that must be refused: one for each reason that can be given without knowing the operation. */
function refusals(operation: CompiledOperation): [status: number[], parts: Parts][] {
  const list: [number[], Parts][] = [];
  const asOwner = () => partsOf(operation, world, { token: world.accounts.owner.accessToken });
  if (!operation.isPublic) list.push([[401], partsOf(operation, world)]);
  // samples of public changes hold tokens that nobody was given
  else list.push([[401, 422], { ...asOwner(), body: { ...(asOwner().body as Json), ...outOfBounds(operation) } }]);
  const permission = permissionFor(operation);
  // whatever a role is, its own account is its own
  const isOwn = operation.path.includes('/me/');
  if (permission && !isOwn && granted('viewer', permission) === 'none')
    list.push([[403], partsOf(operation, world, { token: world.accounts.viewer.accessToken })]);
  const last = pathVariables(operation.path).findLast((name) => name !== 'org_id');
  if (last) {
    const parts = asOwner();
    parts.params[last] = 'none_00000000000000000000000000';
    list.push([[403, 404], parts]);
  }
  return list;
}

/** A body with something wrong in each field that has bounds; `null` where none has. */
function outOfBounds({ body }: CompiledOperation): Json | null {
  const bad: Json = {};
  for (const { name, type, extensions } of Object.values(body?.type.getFields() ?? {})) {
    if (isEnumType(getNamedType(type))) continue; // a word that GraphQL does not know is no value of the variable
    if (snakeCase(name) === body?.fileField) continue; // in REST it is a file of any length
    const { maxLength, pattern, oneOf, format } = (extensions.constraints ?? {}) as {
      maxLength?: number;
      pattern?: string;
      oneOf?: string[];
      format?: string;
    };
    if (maxLength !== undefined) bad[snakeCase(name)] = 'x'.repeat(maxLength + 1);
    else if (oneOf || pattern !== undefined || format) bad[snakeCase(name)] = '!';
  }
  return Object.keys(bad).length > 0 ? bad : null;
}

/** What anybody may ask for, with nothing in it that could be wrong. */
const neverRefused = ['BeginPasskeySignIn'];

const mutations = operations.filter(({ type, name }) => type === 'mutation' && !neverRefused.includes(name));

describe.each(mutations.map((operation) => [routeOf(operation), operation] as const))('%s', (_title, operation) => {
  test('REST and GraphQL refuse with the same code and details', async () => {
    const list = refusals(operation);
    expect(list).not.toEqual([]);
    for (const [statuses, parts] of list) {
      const rest = await app.server.inject(injectable(operation, parts));
      expect(statuses, rest.body).toContain(rest.statusCode);
      const graphql = await askWritten(app, operation, parts);
      expect(graphql.errors?.[0]?.extensions.code).toBe(
        rest.statusCode === 422 ? 'VALIDATION_ERROR' : rest.json<{ error: string }>().error,
      );
      if (rest.statusCode !== 422)
        expect(graphql.errors?.[0]?.extensions.details).toEqual(rest.json<{ details: unknown }>().details);
    }
  });

  const bad = outOfBounds(operation);
  if (!bad) return;
  test('bounds are said in the same words: type, message and place of each failure', async () => {
    const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
    parts.body = { ...(parts.body as Json), ...bad };
    const rest = await app.server.inject(injectable(operation, parts));
    const graphql = await askWritten(app, operation, parts);
    expect(rest.statusCode, rest.body).toBe(422);
    const said = graphql.errors?.[0]?.extensions.details.issues?.map(({ path: at, type: code, msg }) => ({
      loc: ['body', ...at.slice(1).map((part) => snakeCase(String(part)))],
      type: code,
      msg,
    }));
    const detail = rest
      .json<{ detail: { loc: unknown[]; type: string; msg: string }[] }>()
      .detail.map(({ loc, type: code, msg }) => ({ loc, type: code, msg }));
    expect(detail).toEqual(said);
    expect(detail.map(({ loc }) => loc[1])).toEqual(expect.arrayContaining(Object.keys(bad)));
  });
});

test('every change is refused, and most have bounds', () => {
  expect(mutations.length).toBeGreaterThan(50);
  expect(mutations.filter(outOfBounds).length).toBeGreaterThan(25);
});

/** A read that was made up: its operation, its caller, and what to change of a valid request. */
interface RandomRead {
  operation: CompiledOperation;
  role: Role;
  parts: (valid: Parts) => Parts;
}

function randomReads(count: number): RandomRead[] {
  const reads = queries.filter(({ isPublic }) => !isPublic);
  let state = 20_250_101;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  const ids = Object.values(world.ids);
  return Array.from({ length: count }, () => {
    const operation = reads[random(reads.length)]!;
    const role = (['owner', 'admin', 'editor', 'member', 'viewer'] as const)[random(5)]!;
    const names = pathVariables(operation.path);
    const swapped = names.length > 0 && random(3) === 0 ? names[random(names.length)]! : null;
    const params = swapped === null ? {} : { [swapped]: ids[random(ids.length)]! };
    const isLimited = operation.parameters.some(({ name }) => name === 'limit');
    const query: Record<string, string> = isLimited ? { limit: String(1 + random(5)) } : {};
    const parts = (valid: Parts) => ({
      ...valid,
      params: { ...valid.params, ...params },
      query: { ...valid.query, ...query },
    });
    return { operation, role, parts };
  });
}

test('random reads by five roles: REST and GraphQL answer equal, byte for byte once translated', async () => {
  const reads = thinned(randomReads(1_000), 'random reads');
  let answered = 0;
  // links say in seconds when they end
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
  for (const { operation, role, parts: made } of reads) {
    const parts = made(partsOf(operation, world, { token: world.accounts[role].accessToken }));
    const [rest, graphql] = await Promise.all([
      app.server.inject(injectable(operation, parts)),
      askWritten(app, operation, parts),
    ]);
    if (rest.statusCode >= 400)
      expect(graphql.errors?.[0]?.extensions.code, routeOf(operation)).toBe(rest.json<{ error: string }>().error);
    else {
      answered++;
      expect(rest.json(), routeOf(operation)).toEqual(restBodyOf(operation, graphql.data!));
    }
  }
  expect(answered).toBeGreaterThan(reads.length / 2);
});
