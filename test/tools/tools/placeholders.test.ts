import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool } from '../tool-instances/instances.ts';

interface Issue {
  loc: (string | number)[];
  type: string;
  msg: string;
}

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const config_schema = [{ name: 'base_url' }, { name: 'region' }];
const credential_schema = [{ name: 'api_key', type: 'secret' }];
const list = {
  name: 'list',
  url_template: '{{base_url}}/{{ id }}?key={{api_key}}',
  headers: { 'X-Region': '{{region}}' },
  parameters: [{ name: 'id' }],
};
/** Places and messages of a refusal. */
const issuesOf = (answer: { status: number; body: { detail: Issue[] } }) => {
  expect(answer.status, JSON.stringify(answer.body)).toBe(422);
  return answer.body.detail.map(({ loc, msg }) => [loc.slice(1).join('.'), msg.replace('Value error, ', '')]);
};
const NOTHING = 'names no parameter of the action, no field of the configuration and no credential';
let count = 0;
const create = (more: Json, to = ann) =>
  to.call<{ detail: Issue[]; tool_id: string }>('POST', `/v1/orgs/${to.orgId}/tools`, {
    name: 'Weather',
    slug: `weather-${++count}`,
    description: 'Says it.',
    ...more,
  });

describe('a placeholder that names nothing', () => {
  const wrong = {
    ...list,
    url_template: '{{base_url}}/{{config.typo}}/{{id}}',
    headers: { 'X-Region': '{{regoin}}', 'X-Fine': '{{region}}' },
    query_params_template: { q: 'all of {{credentials.api_key}}' },
    body_template: '{"id": {{id}}, "is": "{{nothing_like_it}}"}',
  };
  const issues = [
    ['action_schemas.1.url_template', `{{config.typo}} ${NOTHING}`],
    ['action_schemas.1.headers.X-Region', `{{regoin}} ${NOTHING}: did you mean {{region}}?`],
    ['action_schemas.1.query_params_template.q', `{{credentials.api_key}} ${NOTHING}: did you mean {{api_key}}?`],
    ['action_schemas.1.body_template', `{{nothing_like_it}} ${NOTHING}`],
  ];
  const schemas = { config_schema, credential_schema, action_schemas: [list, { ...wrong, name: 'wrong' }] };

  test('is refused with its place when a tool is made or changed', async () => {
    expect(issuesOf(await create(schemas))).toEqual(issues);
    const made = await create({ ...schemas, action_schemas: [list] });
    expect(made.status).toBe(201);
    const url = `/v1/orgs/${ann.orgId}/tools/${made.body.tool_id}`;
    expect(issuesOf(await ann.call('PUT', url, { action_schemas: schemas.action_schemas }))).toEqual(issues);
    // by what the same change makes of the fields
    const renamed = [{ name: 'base_url' }, { name: 'regoin' }];
    const headers = { x: '{{regoin}}' };
    const changed = { config_schema: renamed, action_schemas: [{ ...list, headers }] };
    expect((await ann.call('PUT', url, changed)).status).toBe(200);
  });

  test('is refused over GraphQL with the same place', async () => {
    const { body } = await ann.call<{ errors: { extensions: { issues: { path: unknown[] }[] } }[] }>(
      'POST',
      '/graphql',
      {
        query: 'mutation ($orgId: ID!, $input: CreateToolInput!) { createTool(orgId: $orgId, input: $input) { id } }',
        variables: {
          orgId: ann.orgId,
          input: {
            name: 'W',
            slug: `weather-${++count}`,
            description: 'W',
            configSchema: config_schema,
            actionSchemas: [{ ...list, url_template: 'https://x.test/{{regoin}}' }],
          },
        },
      },
    );
    expect(JSON.stringify(body.errors)).toContain('did you mean {{region}}?');
    expect(JSON.stringify(body.errors)).toContain('["input","actionSchemas",0,"url_template"]');
  });

  test('does not come to be by a field that goes', async () => {
    const made = await create({ config_schema, credential_schema, action_schemas: [list] });
    const url = `/v1/orgs/${ann.orgId}/tools/${made.body.tool_id}`;
    const change = { config_schema: [{ name: 'base_url' }], credential_schema: [] };
    expect(issuesOf(await ann.call('PUT', url, change))).toEqual([
      ['config_schema', "the action 'list' uses {{region}}: change it too"],
      ['credential_schema', "the action 'list' uses {{api_key}}: change it too"],
    ]);
    expect((await ann.call('PUT', url, { ...change, action_schemas: [] })).status).toBe(200);
  });

  test('of a tool from before is read, and hinders no other change', async () => {
    const made = await create({ config_schema });
    await app.database.prisma.tool.update({
      where: { id: made.body.tool_id },
      data: { actionSchemas: [{ ...wrong, name: 'wrong' }] },
    });
    const url = `/v1/orgs/${ann.orgId}/tools/${made.body.tool_id}`;
    expect((await ann.call<{ action_schemas: Json[] }>('GET', url)).body.action_schemas).toHaveLength(1);
    expect((await ann.call('PUT', url, { name: 'Another' })).status).toBe(200);
    expect((await ann.call('PUT', url, { config_schema: [...config_schema, { name: 'unit' }] })).status).toBe(200);
    expect(await newInstance(ann, made.body.tool_id)).toMatchObject({ name: 'Tickets of the support' });
  });

  test('is refused in custom actions of an instance, which may add parameters', async () => {
    const toolId = await newTool(ann);
    const custom = (url_template: string) => [{ name: 'mine', url_template }];
    const post = (given: Json) =>
      ann.call<Instance & { detail: Issue[] }>('POST', instancesOf(ann), {
        tool_id: toolId,
        name: 'Mine',
        configuration: { base_url: 'https://tickets.test' },
        ...given,
      });
    expect(issuesOf(await post({ custom_actions: custom('{{base_url}}/{{more}}/{{token}}/{{api_key}}') }))).toEqual([
      ['custom_actions.0.url_template', `{{more}} ${NOTHING}`],
    ]);
    const given = { custom_actions: custom('{{base_url}}/{{more}}') };
    const made = await post({ ...given, custom_action_parameters: { mine: [{ name: 'more' }] } });
    expect(made.status).toBe(201);
    const url = `${instancesOf(ann)}/${made.body.instance_id}`;
    expect((await ann.call('PUT', url, given)).status).toBe(200);
    expect(issuesOf(await ann.call('PUT', url, { ...given, custom_action_parameters: {} }))).toHaveLength(1);
  });

  test('in large numbers costs no more than its list', async () => {
    const many = Array.from({ length: 3_000 }, (_, index) => `{{n${index}}}`)
      .join('')
      .slice(0, 16_000);
    const fields = Array.from({ length: 100 }, (_, index) => ({ name: `n${index}${'x'.repeat(120)}` }));
    const answer = await create({ config_schema: fields, action_schemas: [{ name: 'a', body_template: many }] });
    expect(issuesOf(answer)).toHaveLength(50);
  });
});

describe('a property that a descriptor does not have', () => {
  const [extra, missing] = ['Extra inputs are not permitted', 'Field required'];
  const oauth = { name: 'oauth', type: 'oauth2', token_url: 'https://x.test/t' };

  test('is refused by its name, with what was meant', async () => {
    const answer = await create({
      config_schema: [{ name: 'region', requird: true }],
      credential_schema: [
        { name: 'api_key', type: 'secret', header: 'x-api-key' },
        { name: 'other', placement: { in: 'header', name: 'x', prefx: 'Key ' } },
        { ...oauth, auth_url: 'https://x.test/a' },
      ],
      action_schemas: [{ name: 'get', url: 'https://x.test', parameters: [{ name: 'id', requird: true }] }],
    });
    expect(issuesOf(answer).sort(([a], [b]) => (a! < b! ? -1 : 1))).toEqual([
      ['action_schemas.0.parameters.0.requird', `${extra}: did you mean 'required'?`],
      ['action_schemas.0.url', extra],
      ['config_schema.0.requird', `${extra}: did you mean 'required'?`],
      ['credential_schema.0.header', `${extra}: did you mean 'placement'?`],
      ['credential_schema.1.placement.prefx', `${extra}: did you mean 'prefix'?`],
      ['credential_schema.2.auth_url', `${extra}: did you mean 'authorization_url'?`],
      ['credential_schema.2.authorization_url', missing],
    ]);
  });

  test('is refused in a credential of the other kind', async () => {
    const placement = { in: 'header', name: 'x' };
    const answer = await create({
      credential_schema: [
        { name: 'api_key', type: 'secret', token_url: 'https://x.test' },
        { ...oauth, authorization_url: 'https://x.test/a', placement },
      ],
    });
    expect(issuesOf(answer)).toEqual([
      ['credential_schema.0.token_url', `${extra}: only an entry of the type 'oauth2' may have it`],
      ['credential_schema.1.placement', `${extra}: tokens go into the header Authorization`],
    ]);
  });

  test('may begin with x-, and what the descriptor has may be null', async () => {
    const credential = { name: 'api_key', type: 'secret', 'x-hint': { at: 1 }, placement: null, token_url: null };
    const field = { name: 'region', default: 'eu', 'x-order': 1 };
    const answer = await create({ config_schema: [field], credential_schema: [credential] });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ config_schema: [field], credential_schema: [credential] });
  });
});
