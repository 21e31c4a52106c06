import type { InjectOptions } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { Facade } from '../../rest/facade.ts';
import { etagOf } from '../../rest/if-match.ts';
import { fastifyOptions, type OperationFacts, type RestOptions } from '../../rest/plugin.ts';
import { ApiError } from '../../src/kernel/errors.ts';
import { folderOf, removeFolders, type Toy, type ToyServer, toyRunner, toySchema, toyServer } from './toy.ts';

let toy: ToyServer | undefined;
afterEach(async () => {
  await toy?.server.close();
  toy = undefined;
  removeFolders();
});

const JSON_TYPE = { 'content-type': 'application/json' };
const given = (_: unknown, args: object) => args;
async function start(documents: string, options: Toy = {}, more: Partial<RestOptions> = {}) {
  toy = await toyServer(
    documents,
    {
      ...options,
      resolvers: {
        Query: { echo: given, health: () => 'ok', item: () => ({ id: 'i', name: 'n', ownerId: 'o' }) },
        Mutation: { updateItem: given, renameItem: given, removeItem: () => true },
        ...options.resolvers,
      },
    },
    more,
  );
  return toy;
}
const health = 'query Health @rest(method: GET, path: "/v1/health") { health @body }';
const update = (rest: string, mark = '@body') => `
  mutation Update($id: ID!, $body: UpdateItemInput! ${mark}) @rest(method: PUT, path: "/v1/items/{id}"${rest}) {
    updateItem(id: $id, input: $body) @body }`;

describe('a route', () => {
  it('tells its operation to whoever makes its context, and to hooks of the server', async () => {
    const facts: OperationFacts[] = [];
    const configs: unknown[] = [];
    const api = await start(
      `${update(', status: 202')}
      query Get($n: Int! = 1, $h: String @header(name: "h")) @rest(method: GET, path: "/v1/echo") {
        echo(count: $n, header: $h, text: "x") @body }`,
      { publicFields: ['echo'] },
      {
        context: (_request, _principal, operation) => {
          facts.push(operation);
          return {};
        },
        principal: (request) => {
          configs.push(request.routeOptions.config);
          return 'me';
        },
      },
    );
    expect((await api.send({ method: 'PUT', url: '/v1/items/7', payload: '{}', headers: JSON_TYPE })).status).toBe(202);
    await api.send({ url: '/v1/echo' });
    expect(facts).toEqual([
      {
        name: 'Update',
        method: 'PUT',
        path: '/v1/items/{id}',
        successStatus: 202,
        type: 'mutation',
        isReplayed: false,
      },
      { name: 'Get', method: 'GET', path: '/v1/echo', successStatus: 200, type: 'query', isReplayed: false },
    ]);
    expect(configs).toMatchObject([
      {
        operation: 'Update',
        operationType: 'mutation',
        rootField: 'updateItem',
        rootArguments: { id: { in: 'params', name: 'id' } },
        isPublic: false,
        template: '/v1/items/{id}',
        takesFile: false,
      },
      {
        operation: 'Get',
        operationType: 'query',
        rootField: 'echo',
        rootArguments: { count: { in: 'query', name: 'n' } },
        isPublic: true,
        template: '/v1/echo',
        takesFile: false,
      },
    ]);
  });

  it('knows no caller where nobody is named, and lets nobody in but where it is public', async () => {
    const principals: unknown[] = [];
    const api = await start(
      `${health} query Echo @rest(method: GET, path: "/v1/echo") { echo(text: "x") @body }`,
      {},
      {
        principal: () => undefined,
        context: (_request, principal) => {
          principals.push(principal);
          return {};
        },
      },
    );
    expect((await api.send({ url: '/v1/health' })).status).toBe(200);
    expect((await api.send({ url: '/v1/echo' })).status).toBe(401);
    expect(principals).toEqual([null]);
  });

  it('takes the versions of If-Match where it says so, and no others', async () => {
    const versions: unknown[] = [];
    const schema = toySchema({ resolvers: { Mutation: { updateItem: given, renameItem: given } } });
    Object.assign(schema.getMutationType()!.getFields().updateItem!.extensions, { versionArgument: 'expectedVersion' });
    const documents = `${update('')} mutation Rename($id: ID!) @rest(method: PUT, path: "/v1/other/{id}") {
        renameItem(id: $id, input: {}) @body }`;
    const api = await start(
      documents,
      {},
      {
        facade: new Facade(schema, folderOf(documents)),
        runner: toyRunner(schema),
        context: (_request, _principal, _operation, allowed) => {
          versions.push(allowed);
          return {};
        },
      },
    );
    const put = (url: string, headers: Record<string, string>) =>
      api.send({ method: 'PUT', url, payload: '{}', headers: { ...JSON_TYPE, ...headers } });
    await put('/v1/items/7', { 'if-match': etagOf(3) });
    await put('/v1/items/7', {});
    await put('/v1/other/7', { 'if-match': etagOf(3) });
    expect(versions).toEqual([[3], null, null]);
  });

  it('runs what is named to run before its operation, which may answer in its place', async () => {
    const api = await start(
      `${health} query Echo @rest(method: GET, path: "/v1/echo") { echo(text: "x") @body }`,
      {},
      {
        before: {
          Health: async (request, reply) => {
            if (request.headers.answered) await reply.code(303).header('location', '/elsewhere').send();
          },
        },
      },
    );
    const headers = { answered: 'yes' };
    const answer = await api.send({ url: '/v1/health', headers });
    expect([answer.status, answer.headers.location]).toEqual([303, '/elsewhere']);
    expect((await api.send({ method: 'HEAD', url: '/v1/health', headers })).status).toBe(303);
    expect((await api.send({ url: '/v1/health' })).status).toBe(200);
    expect((await api.send({ url: '/v1/echo', headers })).status).toBe(200);
  });

  it('is not made when something is to run before an operation that no document has', async () => {
    const before = { Health: async () => undefined, Helth: async () => undefined };
    await expect(start(health, {}, { before })).rejects.toThrow(
      "A hook is declared for the operation 'Helth', and no document has it.",
    );
  });

  it('of a version sends it as ETag', async () => {
    const api = await start(
      'query A @rest(method: GET, path: "/v1/x") { item(id: "1") @body { id name } }' +
        'query B @rest(method: GET, path: "/v1/y") { shop(id: "1") { items @body { total: totalCount @etag } } }',
      { resolvers: { Query: { shop: () => ({ items: { totalCount: 4 } }), item: () => ({ id: 'i', name: 'n' }) } } },
    );
    const { headers, text } = await api.send({ url: '/v1/y' });
    expect([headers.etag, text]).toEqual([etagOf(4), '{}']);
    expect((await api.send({ url: '/v1/x' })).headers).not.toHaveProperty('etag');
  });

  it('redirects to the address that its answer has, and else shows the rest', async () => {
    let ownerId: string | null = 'https://example.test/next';
    const api = await start(
      'query A @rest(method: GET, path: "/v1/x") { item(id: "1") @body { id ownerId @redirect } }',
      { resolvers: { Query: { item: () => ({ id: 'i', ownerId }) } } },
    );
    const away = await api.send({ url: '/v1/x' });
    expect([away.status, away.headers.location, away.text]).toEqual([303, ownerId, '']);
    ownerId = null;
    const here = await api.send({ url: '/v1/x' });
    expect([here.status, here.headers.location, here.text]).toEqual([200, undefined, '{"id":"i"}']);
  });

  it('tells who runs documents of its own before the first request, and once', async () => {
    const schema = toySchema({ resolvers: { Query: { health: () => 'ok' } } });
    const runner = toyRunner(schema);
    const steps: string[] = [];
    const api = await start(
      health,
      {},
      {
        runner: {
          ...runner,
          add: () => void steps.push('added'),
          execute: (...given) => {
            steps.push('run');
            return runner.execute(...given);
          },
        },
      },
    );
    for (let request = 0; request < 2; request++) expect((await api.get('/v1/health')).body).toBe('ok');
    expect(steps).toEqual(['added', 'run', 'run']);
  });

  it('has a HEAD beside its GET', async () => {
    const api = await start(health);
    expect(await api.send({ method: 'HEAD', url: '/v1/health' })).toMatchObject({ status: 200, text: '' });
  });
});

describe('the body of a request', () => {
  const put = (text: string, as: string | null = 'me', type = 'application/json') =>
    toy!.send({ method: 'PUT', url: '/v1/items/7', payload: text, headers: { 'content-type': type }, as });
  const sized = (bytes: number) => `{"description":"${'x'.repeat(bytes - 18)}"}`;
  const KIB = 1024;

  it('of strangers is at most 64 KiB long where they may send JSON', async () => {
    await start(update(''), { publicFields: ['updateItem'] });
    expect((await put(sized(64 * KIB), null)).status).toBe(200);
    expect(await put(sized(64 * KIB + 1), null)).toMatchObject({
      status: 413,
      body: { details: { limit_bytes: 64 * KIB } },
    });
  });

  it('of others is at most 2 MiB long', async () => {
    await start(update(''));
    expect((await put(sized(64 * KIB + 1))).status).toBe(200);
    expect((await put(sized(2 * KIB * KIB))).status).toBe(200);
    expect(await put(sized(2 * KIB * KIB + 1))).toMatchObject({
      status: 413,
      body: { details: { limit_bytes: 2 * KIB * KIB } },
    });
  });

  it('may be a form where the document says so, also a large one of strangers', async () => {
    await start(update('', '@body @form'), { publicFields: ['updateItem'] });
    const form = 'application/x-www-form-urlencoded';
    const large = 'x'.repeat(65 * KIB);
    expect((await put(`Description=${large}&DisplayName=n`, null, form)).body).toEqual({
      id: '7',
      input: { description: large, displayName: 'n' },
    });
    expect((await put('{"description":"x"}', null)).body).toEqual({ id: '7', input: { description: 'x' } });
  });
});

describe('a form with a file', () => {
  const documents = `mutation Add($body: PictureInput! @upload(file: "picture")) @rest(method: POST, path: "/v1/x") {
    addPicture(id: "1", input: $body) @body }`;

  it('needs somebody who stores the files', async () => {
    await expect(toyServer(documents)).rejects.toThrow('A document uses @upload, but no file store is configured.');
  });

  it('of strangers is refused before it is read', async () => {
    let received = 0;
    const files = {
      maxBytes: 100,
      receive: async () => {
        received += 1;
        return { id: 'p', sizeBytes: 1, sha256: '' };
      },
      discard: async () => undefined,
    };
    const api = await start(documents, {}, { files });
    const text =
      '--x\r\ncontent-disposition: form-data; name="picture"; filename="a"\r\n\r\ny\r\n' +
      '--x\r\ncontent-disposition: form-data; name="display_name"\r\n\r\nn\r\n--x--\r\n';
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const post: InjectOptions = { method: 'POST', url: '/v1/x', payload: text, headers };
    expect([(await api.send({ ...post, as: null })).status, received]).toEqual([401, 0]);
    expect(toy?.contexts).toEqual([]);
  });
});

describe('a server', () => {
  it('has the routes of its documents, and their reference', async () => {
    const api = await start(health);
    expect((await api.get('/v1/health')).body).toBe('ok');
    expect((await api.get('/openapi.json')).body).toMatchObject({
      info: { title: 'Shop' },
      paths: { '/v1/health': {} },
    });
  });

  it('answers with the error that callers are to see', async () => {
    const fault = new Error('the disk is full');
    const seen: unknown[] = [];
    const api = await start(
      `${health} subscription S @rest(method: GET, path: "/v1/s") { events(itemId: "1") @body { id } }`,
      {
        resolvers: {
          Query: {
            health: () => {
              throw fault;
            },
          },
        },
        subscribe: async function* () {
          yield { id: '1', type: 't' };
          throw fault;
        } as never,
      },
      {
        onFault: (error) => seen.push(error),
        shown: (error) => (error === fault ? new ApiError('UPSTREAM_ERROR', { upstream: 'disk' }) : error),
      },
    );
    expect(await api.send({ url: '/v1/health' })).toMatchObject({
      status: 502,
      body: { details: { upstream: 'disk' } },
    });
    expect((await api.send({ url: '/v1/s' })).text).toMatch(
      /^retry: 3000\n\ndata: {"id":"1"}\n\nevent: error\ndata: {"error":"UPSTREAM_ERROR",.*"upstream":"disk".*}\n\n$/,
    );
    expect(seen).toEqual([]);
  });

  it('sends what is asked for by POST as lines of JSON, the error that ends them too', async () => {
    const fault = new Error('the disk is full');
    const seen: unknown[] = [];
    const api = await start(
      'subscription S @rest(method: POST, path: "/v1/s") { events(itemId: "1") @body { id } }',
      {
        subscribe: async function* () {
          yield { id: '1', type: 't' };
          throw fault;
        } as never,
      },
      { onFault: (error) => seen.push(error) },
    );
    const { headers, text } = await api.send({ method: 'POST', url: '/v1/s' });
    expect(headers['content-type']).toBe('application/x-ndjson');
    const lines = text.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { id: '1' },
      expect.objectContaining({ error: 'INTERNAL_SERVER_ERROR', details: {} }),
    ]);
    expect(text).not.toContain('disk');
    expect(seen).toEqual([fault]);
  });

  it('closes when its streams have ended', async () => {
    const { server } = await start(
      'subscription S @rest(method: GET, path: "/v1/s") { events(itemId: "1") @body { id } }',
      {
        subscribe: async function* () {
          yield { id: '1', type: 't' };
        } as never,
      },
    );
    const answer = await server.inject({ url: '/v1/s', headers: { authorization: 'me' } });
    expect(answer.body).toContain('data: {"id":"1"}');
    await server.close();
    toy = undefined;
  });
});

describe('the options of the server', () => {
  it('accept a trailing slash, long ids and 2 MiB, and refuse keys that reach a prototype', () => {
    expect(fastifyOptions).toMatchObject({
      routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1024 },
      bodyLimit: 2 * 1024 * 1024,
      onProtoPoisoning: 'error',
      onConstructorPoisoning: 'error',
      forceCloseConnections: 'idle',
      return503OnClosing: false,
    });
  });
});
