import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ToyServer } from './toy.ts';
import { removeFolders, toyServer } from './toy.ts';

afterAll(removeFolders);

let toy: ToyServer;
let item: unknown;
const page = (over: object = {}) => ({
  nodes: [],
  totalCount: 0,
  pageInfo: { hasNextPage: false, endCursor: null },
  ...over,
});
let connection: unknown;

beforeAll(async () => {
  toy = await toyServer(
    `
    query Items($shop_id: ID!) @rest(method: GET, path: "/v1/shops/{shop_id}/items") {
      shop(id: $shop_id) {
        items @body {
          ...Page items: nodes { ...Item owner @flatten { owner_name: name owner_full_name: fullName } others {
            ...Named } } } }
    }
    query Item($shop_id: ID!, $item_id: ID!)
      @rest(method: GET, path: "/v1/shops/{shop_id}/items/{item_id}") {
        item(id: $item_id) @body { ...Item } shop(id: $shop_id) { id } }
    query Owners($item_id: ID!)
      @rest(method: GET, path: "/v1/items/{item_id}/owners") { item(id: $item_id) { others @body { ...Named } } }
    query Colour($item_id: ID!)
      @rest(method: GET, path: "/v1/items/{item_id}/colour") { item(id: $item_id) { colour @body } }
    query Nested($item_id: ID!) @rest(method: GET, path: "/v1/items/{item_id}/nested") {
      item(id: $item_id) @body { outer: owner { name } owner @flatten { owner_id: id } }
    }
    query Things
      @rest(method: GET, path: "/v1/things") {
        things @body {
          __typename ... on Item { item_id: id owner @flatten { owner_name: name } } ... on Owner { fullName } } }
    mutation Create($body: ItemInput! @body)
      @rest(method: POST, path: "/v1/items", status: 201) { createItem(input: $body) @body { ...Item } }
    mutation Update($item_id: ID!, $body: UpdateItemInput! @body)
      @rest(method: PUT, path: "/v1/items/{item_id}") { updateItem(id: $item_id, input: $body) @body }
    mutation Remove($item_id: ID!)
      @rest(method: DELETE, path: "/v1/items/{item_id}", status: 204) { removeItem(id: $item_id) @body }
    mutation Archive($item_id: ID!)
      @rest(method: DELETE, path: "/v1/archive/{item_id}") { removeItem(id: $item_id) @body @empty }
    mutation Logout($item_id: ID!)
      @rest(method: POST, path: "/v1/items/{item_id}/logout") { removeItem(id: $item_id) @body @nothing }
    mutation Flag($item_id: ID!)
      @rest(method: POST, path: "/v1/items/{item_id}/flag") { removeItem(id: $item_id) @body }
    fragment Item on Item { item_id: id name ownerId maxCostPer1kTokens colour tags metadata createdAt }
    fragment Named on Named { name }
    fragment Page on ItemConnection { total: totalCount pageInfo @flatten {
      has_more: hasNextPage next_cursor: endCursor } }
  `,
    {
      resolvers: {
        Query: {
          shop: (_: unknown, { id }: { id: string }) => (id === 'none' ? null : { id }),
          item: () => item,
          things: () => [
            { __typename: 'Item', id: '1', owner: { name: 'o' } },
            { __typename: 'Item', id: '2', owner: null },
            { __typename: 'Owner', fullName: 'f' },
          ],
        },
        Shop: { items: () => connection },
        Mutation: { createItem: () => item, updateItem: () => null, removeItem: () => true },
      },
    },
  );
});

const full = {
  id: '1',
  name: 'n',
  ownerId: 'o',
  maxCostPer1kTokens: 1.5,
  colour: 'red',
  tags: ['t'],
  metadata: { camelCase: [{ aB: null }] },
  createdAt: new Date(0),
};
const shown = {
  item_id: '1',
  name: 'n',
  owner_id: 'o',
  max_cost_per_1k_tokens: 1.5,
  colour: 'red',
  tags: ['t'],
  metadata: { camelCase: [{ aB: null }] },
  created_at: '1970-01-01T00:00:00.000Z',
};

describe('a response', () => {
  it('has the names of REST in the order of the document; keys of free JSON stay', async () => {
    item = full;
    const { status, text, headers } = await toy.send({ url: '/v1/shops/s/items/1' });
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(text).toBe(JSON.stringify(shown));
  });

  it('has every field, null where there is nothing', async () => {
    item = { id: '1', name: 'n', tags: [] };
    expect((await toy.get('/v1/shops/s/items/1')).body).toEqual({
      item_id: '1',
      name: 'n',
      owner_id: null,
      max_cost_per_1k_tokens: null,
      colour: null,
      tags: [],
      metadata: null,
      created_at: null,
    });
  });

  it('lifts flattened fields into their place, on the page and in each row; a null object gives nulls', async () => {
    connection = page({
      totalCount: 2,
      pageInfo: { hasNextPage: true, endCursor: 'c' },
      nodes: [
        { ...full, owner: { name: 'A', fullName: 'AA' }, others: [{ __typename: 'Owner', name: 'B' }] },
        { ...full, owner: null, others: [] },
      ],
    });
    const { text } = await toy.send({ url: '/v1/shops/s/items' });
    expect(text).toBe(
      JSON.stringify({
        total: 2,
        has_more: true,
        next_cursor: 'c',
        items: [
          { ...shown, owner_name: 'A', owner_full_name: 'AA', others: [{ name: 'B' }] },
          { ...shown, owner_name: null, owner_full_name: null, others: [] },
        ],
      }),
    );
  });

  it('may show an object and flatten it, too', async () => {
    item = { owner: { name: 'A', id: '7' } };
    expect((await toy.get('/v1/items/1/nested')).body).toEqual({ outer: { name: 'A' }, owner_id: '7' });
  });

  it('may be a list, a scalar or null', async () => {
    item = { others: [{ name: 'A' }], colour: 'blue' };
    expect((await toy.get('/v1/items/1/owners')).body).toEqual([{ name: 'A' }]);
    expect((await toy.get('/v1/items/1/colour')).body).toBe('blue');
    item = {};
    expect(await toy.send({ url: '/v1/items/1/colour' })).toMatchObject({ status: 200, text: 'null' });
  });

  it('may be of several types', async () => {
    expect((await toy.get('/v1/things')).body).toEqual([
      { __typename: 'Item', item_id: '1', owner_name: 'o' },
      { __typename: 'Item', item_id: '2', owner_name: null },
      { __typename: 'Owner', full_name: 'f' },
    ]);
  });
});

describe('null where an object should be', () => {
  it('is 404 for a query, with the type and the last id of the path', async () => {
    item = null;
    expect(await toy.get('/v1/shops/s/items/i1')).toMatchObject({
      status: 404,
      body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'item', resource_id: 'i1' } },
    });
  });

  it('is 404 on the way to the body, too', async () => {
    expect(await toy.get('/v1/shops/none/items')).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'shop', resource_id: 'none' } },
    });
  });
});

describe('success', () => {
  const send = (method: 'POST' | 'PUT' | 'DELETE', url: string, body?: object) =>
    toy.send({
      method,
      url,
      payload: body && JSON.stringify(body),
      headers: body ? { 'content-type': 'application/json' } : {},
    });

  it('has the status of the document', async () => {
    item = full;
    expect(await send('POST', '/v1/items', { display_name: 'x' })).toMatchObject({ status: 201, body: shown });
    expect(await send('PUT', '/v1/items/1', {})).toMatchObject({ status: 200, text: 'null' });
    expect(await send('POST', '/v1/items/1/flag')).toMatchObject({ status: 200, text: 'true' });
  });

  it('is 204 without a body and without a type', async () => {
    for (const url of ['/v1/items/1', '/v1/archive/1']) {
      const { status, text, headers } = await send('DELETE', url);
      expect([status, text, headers['content-type']]).toEqual([204, '', undefined]);
    }
  });

  it('is the JSON text null where the document says nothing', async () => {
    const { status, text, headers } = await send('POST', '/v1/items/1/logout');
    expect([status, text, headers['content-type']]).toEqual([200, 'null', 'application/json; charset=utf-8']);
  });
});
