import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { byWeight } from '../../../src/engine/transport/answer-type.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';

const RESPONSE = 'application/graphql-response+json';
const JSON_TYPE = 'application/json';

describe('the ranges of Accept', () => {
  it.each([
    ['application/json', 'application/json'],
    ['text/html, */*', 'text/html, */*'],
    ['application/json;q=0.5, application/graphql-response+json', `${RESPONSE}, ${JSON_TYPE}`],
    ['application/graphql-response+json;q=0.1, application/json; q = 0.2', `${JSON_TYPE}, ${RESPONSE}`],
    ['application/json;q=0, application/graphql-response+json', RESPONSE],
    ['application/json;q=0, */*', RESPONSE],
    ['application/json;q=0', ''],
    [
      'text/html, application/json;charset=utf-8;q=0.9, text/*;q=0.95',
      'text/html, text/*, application/json;charset=utf-8',
    ],
  ])('%s: by weight', (accept, expected) => expect(byWeight(accept)).toBe(expected));
});

describe('an answer', () => {
  let app: TestApp;
  let ann: Person;
  beforeAll(async () => {
    app = await startTestApp();
    ann = await register(app);
  });
  afterAll(() => app.close());

  const post = (accept: string, body: object) =>
    app.server.inject({ method: 'POST', url: '/graphql', headers: { ...ann.headers, accept }, payload: body });
  const get = (accept: string, query: string, variables = '{}') =>
    app.server.inject({
      url: `/graphql?${new URLSearchParams({ query, variables }).toString()}`,
      headers: { ...ann.headers, accept },
    });

  it.each([
    [`${RESPONSE};q=0.1, ${JSON_TYPE}`, JSON_TYPE],
    [`${JSON_TYPE};q=0.1, ${RESPONSE}`, RESPONSE],
    [`${JSON_TYPE};q=0, */*`, RESPONSE],
  ])('to %s has the type that is wanted most', async (accept, type) => {
    for (const answer of [await post(accept, { query: '{ me { id } }' }), await get(accept, '{ me { id } }')]) {
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['content-type']).toContain(type);
    }
  });

  const id = 'query ($id: ID!) { node(id: $id) { id } }';
  const pages = Array.from({ length: 12 }, (_, n) => `a${n}: organizations(first: 1000) { nodes { id } }`);
  const expensive = `{ ${pages.join(' ')} }`;
  it.each([
    ['a variable is missing', id, {}],
    ['it costs too much', expensive, {}],
  ])('without data is no success for who takes the type that says so: %s', async (_what, query, variables) => {
    const text = JSON.stringify(variables);
    for (const answer of [await post(RESPONSE, { query, variables }), await get(RESPONSE, query, text)]) {
      expect(answer.json()).not.toHaveProperty('data');
      expect(answer.statusCode).toBe(400);
    }
    expect((await post(JSON_TYPE, { query, variables })).statusCode).toBe(200);
  });

  it('with data beside errors is one', async () => {
    const query = '{ me { id } organization(id: "org_missing") { id } }';
    const answer = await post(RESPONSE, { query });
    expect([answer.statusCode, answer.json()]).toMatchObject([200, { errors: [{}] }]);
    expect(answer.json()).toHaveProperty('data');
  });
});
