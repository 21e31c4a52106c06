import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { byWeight, isAcceptable, prefersHtml } from '../../../src/engine/transport/answer-type.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';

const RESPONSE = 'application/graphql-response+json';
const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream';
const MULTIPART = 'multipart/mixed';

describe('the ranges of Accept', () => {
  it.each([
    ['application/json', 'application/json'],
    ['text/html, */*', 'text/html, */*'],
    ['application/json;q=0.5, application/graphql-response+json', `${RESPONSE}, ${JSON_TYPE}`],
    ['application/graphql-response+json;q=0.1, application/json; q = 0.2', `${JSON_TYPE}, ${RESPONSE}`],
    ['APPLICATION/JSON;Q=0.1, application/graphql-response+json;q=0.1', `${JSON_TYPE}, ${RESPONSE}`],
    ['application/json;q=0, application/graphql-response+json', RESPONSE],
    ['application/json;q=0, */*', `${RESPONSE}, ${SSE}, ${MULTIPART}`],
    ['application/json;q=0.1, */*;q=0.9', `${RESPONSE}, ${SSE}, ${MULTIPART}, ${JSON_TYPE}`],
    ['*/*;q=0.9, application/json;q=0.1', `${RESPONSE}, ${SSE}, ${MULTIPART}, ${JSON_TYPE}`],
    ['*/*;q=0, application/json;q=0.1', JSON_TYPE],
    ['application/*;q=0, */*', SSE],
    ['application/*;q=0, multipart/*, */*;q=0.5', `${MULTIPART}, ${SSE}`],
    ['text/event-stream, application/json;q=0.9', SSE],
    ['text/event-stream;q=0.9, application/json;q=0.9', `${SSE}, ${JSON_TYPE}`],
    ['application/json;charset=latin1, application/graphql-response+json;q=0.1', RESPONSE],
    ['application/json;charset="UTF-8";q=0.2', JSON_TYPE],
    ['application/json;q=, application/graphql-response+json;q=much', `${JSON_TYPE}, ${RESPONSE}`],
    ['application/json;q=0', ''],
    ['text/html, application/json;charset=utf-8;q=0.9, text/*;q=0.95', SSE],
  ])('%s: by weight', (accept, expected) => expect(byWeight(accept)).toBe(expected));

  it.each([
    ['application/json;q=0', false],
    ['application/json;q=0, */*', true],
    ['*/*;q=0.0', false],
    ['text/html', false],
    ['text/*', true],
    ['application/json;charset=latin1', false],
    ['application/graphql+json', false],
    ['image/png, application/json;q=0.001', true],
  ])('%s: an answer is wanted: %j', (accept, expected) => expect(isAcceptable(accept)).toBe(expected));

  it.each([
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['text/html', true],
    ['text/html, application/json', true],
    ['application/json, text/html;q=0.9', false],
    ['application/graphql-response+json, text/html;q=0.9', false],
    ['text/html;q=0, image/png', false],
    ['*/*', false],
  ])('%s: HTML is wanted most: %j', (accept, expected) => expect(prefersHtml(accept)).toBe(expected));
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
    [`${JSON_TYPE};q=0.1, */*;q=0.9`, RESPONSE],
    [`${JSON_TYPE};q=0.1, ${SSE};q=0.05`, JSON_TYPE],
    [`${JSON_TYPE};q=0.1, ${SSE};q=0.5`, SSE],
    [`${JSON_TYPE}, text/html;q=0.5`, JSON_TYPE],
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
