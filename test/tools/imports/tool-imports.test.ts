import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { instancesOf, type Json, newInstance, placesOf } from '../tool-instances/instances.ts';
import { pets } from './pets.ts';

let app: TestApp;
let target: TargetServer;
let ann: Person;
/** What the target serves as the document; every other path answers a pet. */
let served: { text: string; status: number };
beforeAll(async () => {
  target = await startTarget((request, response) => {
    if (request.url!.startsWith('/openapi')) return response.writeHead(served.status).end(served.text);
    response.end(JSON.stringify({ id: 7, name: 'Rex' }));
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
beforeEach(async () => {
  target.requests.length = 0;
  ann = await register(app, { name: 'ann' });
  served = { text: JSON.stringify(pets({ server: '/v1' })), status: 200 };
});
afterAll(async () => {
  await app.close();
  await target.close();
});

interface Preview extends Json {
  document_digest: string;
  operations: { operation: string; action: Json | null }[];
  gaps: { place: string; operation: string | null; kind: string; message: string }[];
}
interface Change extends Json {
  operation: string;
  change: string;
  is_edited: boolean;
}
interface Tool extends Json {
  tool_id: string;
  action_schemas: Json[];
  import_source: Json;
}

const url = () => `http://127.0.0.1:${target.port}/openapi`;
const imports = (person = ann) => `/v1/orgs/${person.orgId}/tools/import`;
const again = (tool: Tool, person = ann) => `/v1/orgs/${person.orgId}/tools/${tool.tool_id}/import`;
const preview = async (body: Json) => {
  const answer = await ann.call<Preview>('POST', `${imports()}/preview`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const wanted = ['GET /pets/{petId}', 'POST /pets', 'DELETE /pets/{petId}'];
const imported = async (body: Json = {}) => {
  const given = { url: url(), slug: 'pets', operations: wanted, ...body };
  const answer = await ann.call<Tool>('POST', imports(), given);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
};
const changesOf = async (tool: Tool, body: Json = {}) => {
  const answer = await ann.call<Json & { changes: Change[] }>('POST', `${again(tool)}/preview`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};

describe('a preview', () => {
  test('shows the actions that operations become, and what cannot be taken with its place', async () => {
    const text = stringify(pets());
    const shown = await preview({ document: text });
    expect(shown).toMatchObject({
      url: null,
      format: '3.0.3',
      title: 'Pets',
      version: '1.2',
      base_url: 'https://pets.example.com/v1',
      servers: ['https://pets.example.com/v1'],
      total: 4,
      matching: 4,
      credential_schema: [
        { name: 'key', type: 'secret', placement: { in: 'header', name: 'x-api-key' }, required: true },
      ],
    });
    const [get, remove, add, photo] = shown.operations;
    expect(get).toEqual({
      operation: 'GET /pets/{petId}',
      place: '/paths/~1pets~1{petId}/get',
      operation_id: 'getPet',
      summary: 'Get a pet',
      is_deprecated: false,
      action: {
        name: 'getPet',
        display_name: 'Get a pet',
        description: 'Get a pet',
        method: 'GET',
        url_template: 'https://pets.example.com/v1/pets/{{petId}}',
        headers: { 'X-Trace': '{{X-Trace}}' },
        query_params_template: { 'fields[]': '{{fields_}}' },
        parameters: [
          { name: 'petId', type: 'integer', min_value: 1, required: true },
          { name: 'fields_', display_name: 'fields[]', type: 'string', enum: ['name', 'owner'] },
          { name: 'X-Trace', type: 'string', max_length: 40 },
        ],
        output_schema: {
          type: 'object',
          properties: { id: { type: 'integer' }, name: { type: 'string' }, parent: {} },
          required: ['name'],
        },
        is_read_only: true,
        is_destructive: false,
        timeout_seconds: 30,
      },
    });
    expect(remove!.action).toMatchObject({ method: 'DELETE', is_destructive: true, is_read_only: false });
    expect(add!.action).toMatchObject({
      body_template: '{{body}}',
      parameters: [
        {
          name: 'body',
          type: 'object',
          required: true,
          properties: { name: { type: 'string', min_length: 1, required: true }, parent: {} },
        },
      ],
    });
    expect(photo).toMatchObject({ operation: 'PUT /pets/{petId}/photo', action: null });
    expect(shown.gaps.map(({ place, operation, kind }) => [place, operation, kind])).toEqual([
      ['/paths/~1pets~1{petId}/get/parameters/0', 'GET /pets/{petId}', 'simplified'],
      ['/paths/~1pets~1{petId}/get/parameters/2', 'GET /pets/{petId}', 'unsupported'],
      ['/components/schemas/Pet/properties/parent', 'POST /pets', 'simplified'],
      ['/paths/~1pets~1{petId}~1photo/put/requestBody/content', 'PUT /pets/{petId}/photo', 'unsupported'],
    ]);
    const found = await preview({ document: text, search: 'ADDPET' });
    expect(found).toMatchObject({ total: 4, matching: 1, operations: [{ operation: 'POST /pets' }] });
    // nothing was made
    expect((await ann.call<{ total: number }>('GET', `/v1/orgs/${ann.orgId}/tools/slug/pets`)).status).toBe(404);
  });

  test('says of an address that cannot be called what is wrong, and calls nobody else', async () => {
    const refused = async (body: Json) => {
      const answer = await ann.call('POST', `${imports()}/preview`, body);
      expect(answer.status, JSON.stringify(answer.body)).toBe(422);
      return (answer.body as unknown as { detail: { loc: string[]; msg: string }[] }).detail.map(({ loc, msg }) => [
        loc.at(-1),
        msg,
      ]);
    };
    served = { text: 'a secret of the target', status: 403 };
    expect(await refused({ url: url() })).toEqual([['url', 'Value error, the address answers 403']]);
    served.status = 200;
    expect(await refused({ url: url() })).toEqual([['url', 'Value error, it is no object of JSON or YAML']]);
    expect(await refused({ url: 'https://169.254.169.254/latest' })).toEqual([
      [
        'url',
        'Value error, The target has an address that this service does not call. See its setting OUTBOUND_ALLOW.',
      ],
    ]);
    expect(await refused({ url: `${url()}?api_key=sk_live_1234567890abcdef` })).toEqual([
      ['url', expect.stringContaining('it seems to have a credential')],
    ]);
    expect(await refused({})).toEqual([['document', expect.stringContaining('give the address or the text')]]);
    expect(await refused({ url: url(), document: '{}' })).toEqual([['url', expect.stringContaining('not both')]]);
    const inside = await preview({ document: JSON.stringify(pets({ server: 'https://10.0.0.1/' })) });
    expect(inside.gaps[0]).toMatchObject({ place: '/servers', kind: 'unsafe_address' });
    const into = {
      document: JSON.stringify(pets({ server: 'https://10.0.0.1/' })),
      slug: 'inside',
      operations: ['POST /pets'],
    };
    const answer = await ann.call('POST', imports(), into);
    expect([answer.status, placesOf(answer.body)]).toEqual([422, [['document', 'value_error']]]);
  });
});

describe('an import', () => {
  test('makes a tool whose actions run as the document says', async () => {
    const { document_digest } = await preview({ url: url() });
    const tool = await imported({ document_digest });
    expect(tool).toMatchObject({
      name: 'Pets',
      slug: 'pets',
      description: 'A shop of pets.',
      category: 'custom',
      supports_connection: true,
      current_schema_version: 1,
      import_source: {
        kind: 'openapi',
        url: url(),
        document_digest,
        title: 'Pets',
        version: '1.2',
        base_url: null,
        operations: [
          { operation: 'GET /pets/{petId}', action: 'getPet' },
          { operation: 'POST /pets', action: 'addPet' },
          { operation: 'DELETE /pets/{petId}', action: 'deletePet' },
        ],
      },
    });
    expect(await eventsOf(app, tool.tool_id)).toEqual(['tool.created']);
    const instance = await newInstance(ann, tool.tool_id, { configuration: { key: 'a-key-of-theirs' } });
    const run = `${instancesOf(ann)}/${instance.instance_id}/execute`;
    const got = await ann.call('POST', run, { action: 'getPet', parameters: { petId: 7, fields_: 'name' } });
    expect(got.body).toMatchObject({ code: 'ok', result: { id: 7, name: 'Rex' } });
    const added = await ann.call('POST', run, { action: 'addPet', parameters: { body: { name: 'Rex' } } });
    expect(added.body).toMatchObject({ code: 'ok' });
    const wrong = await ann.call('POST', run, { action: 'addPet', parameters: { body: {} } });
    expect(placesOf(wrong.body)).toEqual([['parameters.body.name', 'missing']]);
    expect(target.requests.slice(-2)).toMatchObject([
      { method: 'GET', path: '/v1/pets/7?fields%5B%5D=name', headers: { 'x-api-key': 'a-key-of-theirs' } },
      { method: 'POST', path: '/v1/pets', body: '{"name":"Rex"}', headers: { 'content-type': 'application/json' } },
    ]);
  });

  test('refuses what is not in the document or cannot be taken, a taken slug, and another document', async () => {
    const refused = async (body: Json, status: number) => {
      const answer = await ann.call('POST', imports(), { url: url(), slug: 'pets', operations: wanted, ...body });
      expect(answer.status, JSON.stringify(answer.body)).toBe(status);
      return answer.body as Json;
    };
    const unusable = { operations: ['POST /pets', 'GET /cats', 'PUT /pets/{petId}/photo'] };
    expect(placesOf(await refused(unusable, 422))).toEqual([['operations.1', 'value_error']]);
    expect(placesOf(await refused({ operations: ['POST /pets', 'POST /pets'] }, 422))).toEqual([
      ['operations.1', 'value_error'],
    ]);
    expect(await refused({ document_digest: '0'.repeat(64) }, 409)).toMatchObject({
      details: { reason: 'document_changed' },
    });
    // the digest is of the addresses, too
    const { document_digest } = await preview({ url: url() });
    for (const other of [{ base_url: 'https://elsewhere.example.com' }, { url: `${url()}?v=2` }])
      expect(await refused({ document_digest, ...other }, 409)).toMatchObject({
        details: { reason: 'document_changed' },
      });
    expect(
      await refused({ document_digest, url: undefined, document: served.text, base_url: `${url()}/v1` }, 409),
    ).toMatchObject({ details: { reason: 'document_changed' } });
    expect(await refused({ slug: 'github' }, 409)).toMatchObject({ error: 'RESOURCE_ALREADY_EXISTS' });
    const viewer = await colleague(app, ann, 'viewer');
    for (const path of [imports(), `${imports()}/preview`])
      expect((await viewer.call('POST', path, { url: url(), slug: 'pets', operations: wanted })).status).toBe(403);
    expect((await ann.call('GET', `/v1/orgs/${ann.orgId}/tools/slug/pets`)).status).toBe(404);
  });

  test('takes no scope that cannot be stored or asked for, and says so', async () => {
    const document = pets() as { components: { securitySchemes: Json }; security: Json[] };
    const flow = {
      authorizationUrl: 'https://pets.example.com/authorize',
      tokenUrl: 'https://pets.example.com/token',
      scopes: { read: '', 'a\u0000b': '', 'a\ud800b': '', 'a\nb': '' },
    };
    document.components.securitySchemes = { signIn: { type: 'oauth2', flows: { authorizationCode: flow } } };
    document.security = [{ signIn: [] }];
    const given = { url: undefined, document: JSON.stringify(document) };
    expect((await preview(given)).gaps).toContainEqual({
      place: '/components/securitySchemes/signIn/flows/authorizationCode/scopes',
      operation: null,
      kind: 'invalid',
      message: expect.stringMatching(/left out/),
    });
    expect((await imported(given)).credential_schema).toMatchObject([{ type: 'oauth2', scopes: ['read'] }]);
  });

  test('calls another address if one is given in place of the servers', async () => {
    const tool = await imported({ base_url: `http://127.0.0.1:${target.port}/test/` });
    expect(tool.action_schemas[0]).toMatchObject({
      url_template: `http://127.0.0.1:${target.port}/test/pets/{{petId}}`,
    });
    // and goes on doing so
    expect(await changesOf(tool)).toMatchObject({ unchanged: 3, changes: [] });
  });
});

describe('a document that has changed', () => {
  const cats = { '/cats': { get: { operationId: 'listCats', responses: { 200: { description: 'All.' } } } } };
  const apply = (tool: Tool, body: Json, person = ann) => person.call<Tool>('POST', again(tool, person), body);

  test('is shown beside the tool, and only what is chosen is applied', async () => {
    const tool = await imported();
    expect(await changesOf(tool)).toMatchObject({ unchanged: 3, changes: [], other_credentials: false });
    const asked = await ann.ask<{ previewToolReimport: Json }>(
      `mutation ($org: ID!, $id: ID!) {
        previewToolReimport(orgId: $org, id: $id, input: {}) { toolId tool { slug importSource { title } } }
      }`,
      { org: ann.orgId, id: tool.tool_id },
    );
    expect(asked.data.previewToolReimport).toEqual({
      toolId: tool.tool_id,
      tool: { slug: 'pets', importSource: { title: 'Pets' } },
    });
    const next = pets({ server: '/v1', paths: cats }) as { paths: Record<string, Record<string, unknown>> };
    delete next.paths['/pets/{petId}']!.delete;
    (next.paths['/pets/{petId}']!.get as Json).summary = 'Reads a pet';
    served.text = JSON.stringify(next);
    const { changes, ...rest } = await changesOf(tool);
    expect(rest).toMatchObject({ unchanged: 1, total: 4 });
    expect(changes).toMatchObject([
      { operation: 'GET /pets/{petId}', change: 'changed', is_edited: false, after: { display_name: 'Reads a pet' } },
      { operation: 'GET /cats', change: 'added', before: null, after: { name: 'listCats' } },
      { operation: 'DELETE /pets/{petId}', change: 'removed', before: { name: 'deletePet' }, after: null },
    ]);
    const chosen = { operations: ['GET /cats', 'DELETE /pets/{petId}'], document_digest: rest.document_digest };
    const { status, body } = await apply(tool, chosen);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body).toMatchObject({
      current_schema_version: 2,
      schema_changelog: { 2: 'Actions: added listCats; removed deletePet.' },
      import_source: { operations: [{ action: 'getPet' }, { action: 'addPet' }, { action: 'listCats' }] },
    });
    // what was not chosen is still open
    expect(body.action_schemas.map(({ name, display_name }) => [name, display_name])).toEqual([
      ['getPet', 'Get a pet'],
      ['addPet', undefined],
      ['listCats', undefined],
    ]);
    expect((await changesOf(tool)).changes.map(({ operation }) => operation)).toEqual(['GET /pets/{petId}']);
    expect(placesOf((await apply(tool, { operations: ['DELETE /pets/{petId}'] })).body)).toEqual([
      ['operations.0', 'value_error'],
    ]);
  });

  test('does not replace what was changed in the tool unless that is said', async () => {
    const tool = await imported();
    const [get, ...others] = tool.action_schemas;
    const own = { ...get, description: 'Ours.', timeout_seconds: 5 };
    const toolUrl = `/v1/orgs/${ann.orgId}/tools/${tool.tool_id}`;
    expect((await ann.call('PUT', toolUrl, { action_schemas: [own, ...others] })).status).toBe(200);
    // an edit alone is no difference of the document
    expect(await changesOf(tool)).toMatchObject({ changes: [], unchanged: 3 });
    const next = pets({ server: '/v1' }) as { paths: Record<string, Record<string, Json>> };
    next.paths['/pets/{petId}']!.get!.summary = 'Reads a pet';
    served.text = JSON.stringify(next);
    const { changes } = await changesOf(tool);
    expect(changes).toMatchObject([{ change: 'changed', is_edited: true, before: { description: 'Ours.' } }]);
    const operations = ['GET /pets/{petId}'];
    expect(await apply(tool, { operations })).toMatchObject({
      status: 409,
      body: { details: { reason: 'locally_changed', operations } },
    });
    const { body } = await apply(tool, { operations, overwrite: operations });
    expect(body.action_schemas[0]).toMatchObject({ name: 'getPet', display_name: 'Reads a pet', timeout_seconds: 30 });
    expect((await changesOf(tool)).changes).toEqual([]);
  });

  test('sends credentials of others elsewhere only for whoever may see secrets', async () => {
    const tool = await imported();
    const { orgId, workspaceId } = ann;
    const bob = caller(app, { ...(await colleague(app, ann, 'member')), orgId, workspaceId });
    const permissions = ['tool:read', 'tool:update'];
    const token = caller(app, { ...ann, accessToken: (await issueToken(app, ann, { permissions })).plaintext_token });
    await newInstance(bob, tool.tool_id, { configuration: { key: 'a-key-of-theirs' } });
    const moved = { document: JSON.stringify(pets({ server: 'https://elsewhere.example.com' })) };
    const by = (person: Person) => apply(tool, { ...moved, operations: ['GET /pets/{petId}'] }, person);
    const updated = await token.call('PUT', `/v1/orgs/${orgId}/tools/${tool.tool_id}`, {
      action_schemas: [{ name: 'getPet', url_template: 'https://elsewhere.example.com/' }],
    });
    const refused = await by(token);
    expect([updated.status, refused.status]).toEqual([403, 403]);
    const { error, message, details } = updated.body as Json;
    expect(refused.body).toMatchObject({ error, message, details });
    // nor may it say where the next import, by somebody else, takes the document and its addresses from
    const steps: Json[] = [
      { url: `${url()}?v=2`, operations: ['POST /pets'] },
      { base_url: 'https://elsewhere.example.com', operations: ['DELETE /pets/{petId}'] },
    ];
    const next = pets({ server: '/v1' }) as { paths: Record<string, Json> };
    delete next.paths['/pets/{petId}']!.delete;
    served.text = JSON.stringify(next);
    for (const step of steps) expect((await apply(tool, step, token)).status, JSON.stringify(step)).toBe(403);
    expect(placesOf((await apply(tool, { url: `${url()}?v=2`, operations: [] }, token)).body)).toEqual([
      ['operations', 'too_short'],
    ]);
    // what steers nothing needs no more than before
    const { status, body } = await apply(tool, { operations: ['DELETE /pets/{petId}'] }, token);
    expect([status, body.import_source]).toMatchObject([200, { url: url(), base_url: null }]);
    expect((await by(ann)).body.action_schemas[0]).toMatchObject({
      url_template: 'https://elsewhere.example.com/pets/{{petId}}',
    });
  });

  test('takes away no action that nobody chose, also when another operation has got its name', async () => {
    const tool = await imported({ operations: ['GET /pets/{petId}', 'POST /pets'] });
    const toolUrl = `/v1/orgs/${ann.orgId}/tools/${tool.tool_id}`;
    expect((await ann.call('PUT', toolUrl, { action_schemas: [tool.action_schemas[1]!] })).status).toBe(200);
    const next = pets({ server: '/v1' }) as { paths: Record<string, unknown> };
    delete next.paths['/pets/{petId}'];
    const bare = JSON.stringify(next);
    next.paths['/cats'] = { get: { operationId: 'getPet', responses: { 200: { description: 'One.' } } } };
    served.text = JSON.stringify(next);
    const { body } = await apply(tool, { operations: ['GET /cats'] });
    expect(body.action_schemas.map(({ name }) => name)).toEqual(['addPet', 'getPet']);
    expect(body.import_source.operations).toEqual([
      { operation: 'POST /pets', action: 'addPet' },
      { operation: 'GET /cats', action: 'getPet' },
    ]);
    served.text = bare;
    const both = await apply(tool, { operations: ['GET /cats', 'GET /pets/{petId}'] });
    expect([both.status, placesOf(both.body)]).toEqual([422, [['operations.1', 'value_error']]]);
    const left = await apply(tool, { operations: ['GET /cats'] });
    expect(left.body.action_schemas.map(({ name }) => name)).toEqual(['addPet']);
  });

  test('may be taken into a tool that was not imported, beside its own actions', async () => {
    const made = await ann.call<Tool>('POST', `/v1/orgs/${ann.orgId}/tools`, {
      name: 'Own',
      slug: 'own',
      description: 'Ours.',
      config_schema: [{ name: 'petId', type: 'string' }],
      action_schemas: [{ name: 'getPet', description: 'Ours.' }],
    });
    expect((await ann.call('POST', `${again(made.body)}/preview`, {})).status).toBe(422);
    const given = { document: JSON.stringify(pets()) };
    expect((await changesOf(made.body, given)).other_credentials).toBe(true);
    const { body } = await apply(made.body, { ...given, operations: ['GET /pets/{petId}'] });
    expect(body.action_schemas).toMatchObject([
      { name: 'getPet' },
      // a field of the tool has the name of the parameter
      { name: 'getPet_2', url_template: 'https://pets.example.com/v1/pets/{{petId_path}}' },
    ]);
    const stale = await app.server.inject({
      method: 'POST',
      url: again(made.body),
      headers: { ...ann.headers, 'if-match': '"1"' },
      payload: { ...given, operations: ['POST /pets'] },
    });
    expect(stale.statusCode).toBe(412);
    const slack = (await ann.call<Tool>('GET', `/v1/orgs/${ann.orgId}/tools/slug/slack`)).body;
    expect(await apply(slack, { ...given, operations: ['POST /pets'] })).toMatchObject({
      status: 409,
      body: { details: { reason: 'builtin_tool' } },
    });
  });
});
