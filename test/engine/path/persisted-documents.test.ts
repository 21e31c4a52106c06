import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Documents } from '../../../src/engine/path/documents.ts';
import { PersistedDocuments } from '../../../src/engine/path/persisted-documents.ts';
import { RegisteredDocuments } from '../../../src/engine/path/registered-documents.ts';
import { schema } from '../../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createWorld, type World } from '../../support/world.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
});
afterAll(() => app.close());

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const named = (sha256Hash: unknown, version: unknown = 1) => ({ persistedQuery: { version, sha256Hash } });

interface Asked {
  query?: string;
  variables?: object;
  extensions?: object;
}

const post = (asked: Asked, accept = 'application/json') =>
  app.server.inject({
    method: 'POST',
    url: '/graphql',
    headers: { 'content-type': 'application/json', accept, ...world.as('owner') },
    payload: JSON.stringify(asked),
  });

const get = ({ query, variables, extensions }: Asked, accept = 'application/json') => {
  const search = new URLSearchParams({
    ...(query === undefined ? {} : { query }),
    ...(variables ? { variables: JSON.stringify(variables) } : {}),
    ...(extensions ? { extensions: JSON.stringify(extensions) } : {}),
  });
  return app.server.inject({ url: `/graphql?${search.toString()}`, headers: { accept, ...world.as('owner') } });
};

describe.each([
  ['POST', post],
  ['GET', get],
] as const)('over %s', (how, ask) => {
  const query = `query ($first: Int!) { organizations(first: $first) { totalCount } me { id } } # ${how}`;

  test('a hash is asked for its text once, and stands for it from then on', async () => {
    const variables = { first: 3 };
    const extensions = named(hashOf(query));
    const unknown = await ask({ variables, extensions });
    expect(unknown.statusCode).toBe(200);
    expect(unknown.json()).toEqual({
      errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
    });
    const wanted = { data: { organizations: { totalCount: 1 }, me: { id: world.accounts.owner.userId } } };
    expect((await ask({ query, variables, extensions })).json()).toEqual(wanted);
    for (const again of [ask, post, get, post]) expect((await again({ variables, extensions })).json()).toEqual(wanted);
  });

  test('a hash that is not known is no request: 400 where the media type has statuses', async () => {
    const answer = await ask({ extensions: named(hashOf('{ other }')) }, 'application/graphql-response+json');
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }] });
  });

  test('a hash of another text is refused, and nothing is kept under it', async () => {
    const hash = hashOf(`${query} another`);
    const answer = await ask({ query, variables: { first: 1 }, extensions: named(hash) });
    expect(answer.json()).toEqual({
      errors: [{ message: 'PersistedQueryMismatch', extensions: { code: 'PERSISTED_QUERY_MISMATCH' } }],
    });
    expect((await ask({ extensions: named(hash) })).body).toContain('PersistedQueryNotFound');
  });

  test.each([
    ['another version', named(hashOf(query), 2)],
    ['a hash that is no text', named(5)],
    ['no hash', { persistedQuery: {} }],
    ['a text', { persistedQuery: 'x' }],
  ])('%s is said to be not supported', async (_what, extensions) => {
    const answer = await ask({ query, variables: { first: 1 }, extensions });
    expect(answer.json()).toMatchObject({ errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }] });
  });

  test('what is no good document is not kept', async () => {
    for (const bad of ['{ unknownField }', '{ me { id ', `{ me { id } # ${'x'.repeat(70_000)}\n}`]) {
      if (how === 'GET' && bad.length > 10_000) continue;
      const extensions = named(hashOf(bad));
      expect((await ask({ query: bad, extensions })).json()).not.toHaveProperty('data.me');
      expect((await ask({ extensions })).body).toContain('PersistedQueryNotFound');
    }
  });
});

test('a mutation by its hash is not for GET', async () => {
  const query = 'mutation { deleteWorkspace(orgId: "a", id: "b") { message } }';
  const extensions = named(hashOf(query));
  expect((await post({ query, extensions })).json()).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  expect((await post({ extensions })).json()).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  expect((await get({ extensions })).statusCode).toBe(405);
});

describe('the memory', () => {
  const limits = { graphqlMaxDepth: 10, graphqlMaxAliases: 10, graphqlMaxTokens: 1_000, graphqlIntrospection: true };
  const textOf = (who: string, n: number) => `{ me { id } } # ${who} ${n} ${'x'.repeat(30_000)}`;

  test('is bounded, and strangers never make it forget what known callers registered', async () => {
    const persisted = new PersistedDocuments({
      documents: new Documents(schema, limits),
      registered: new RegisteredDocuments({ read: async () => [] } as never),
      persistedOnly: false,
    });
    const sender = (isKnown: boolean) => ({ headers: {}, caller: { principal: isKnown ? ({} as never) : null } });
    const register = (text: string, isKnown: boolean) =>
      persisted.textOf({ query: text, extensions: named(hashOf(text)) }, sender(isKnown));
    const isKept = (text: string) =>
      persisted.textOf({ extensions: named(hashOf(text)) }, sender(false)).then(
        (kept) => kept === text,
        () => false,
      );
    for (let n = 0; n < 50; n++) await register(textOf('known', n), true);
    for (let n = 0; n < 400; n++) await register(textOf('stranger', n), false);
    const kept = async (who: string, count: number) =>
      (await Promise.all(Array.from({ length: count }, (_, n) => isKept(textOf(who, n))))).filter(Boolean).length;
    expect(await kept('known', 50)).toBe(50);
    expect(await kept('stranger', 400)).toBeGreaterThan(10);
    expect(await kept('stranger', 400)).toBeLessThan(20);
    for (let n = 0; n < 400; n++) await register(textOf('more', n), true);
    expect(await kept('more', 400)).toBeLessThan(150);
    expect(await isKept(textOf('more', 399))).toBe(true);
    expect(await isKept(textOf('known', 0))).toBe(false);
  });
});
