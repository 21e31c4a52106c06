import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from './instances.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const configuration = { base_url: 'https://tickets.test', old: 'kept', size: 5, word: 'hidden' };
const first = [
  { name: 'base_url', required: true },
  { name: 'old' },
  { name: 'size', type: 'integer' },
  { name: 'word' },
];

/** An instance of a tool that has changed since. */
async function outdated(config_schema: object[]): Promise<Instance> {
  const toolId = await newTool(ann, { config_schema: first });
  const made = await newInstance(ann, toolId, { configuration });
  const url = `/v1/orgs/${ann.orgId}/tools/${toolId}`;
  expect((await ann.call('PUT', url, { config_schema: first.slice(1) })).status).toBe(200);
  expect((await ann.call('PUT', url, { config_schema, schema_changelog: { 2: 'Two.', 3: 'Three.' } })).status).toBe(
    200,
  );
  const { body } = await ann.call<Instance>('GET', `${instancesOf(ann)}/${made.instance_id}`);
  expect(body).toMatchObject({ schema_version: 1, upgrade_available: true, latest_schema_version: 3 });
  return body;
}
const upgrade = ({ instance_id }: Instance, body: Json = {}) =>
  ann.call<Json>('POST', `${instancesOf(ann)}/${instance_id}/upgrade`, body);
const removedOf = async ({ instance_id }: Instance) =>
  (await app.database.prisma.toolInstance.findUniqueOrThrow({ where: { id: instance_id } })).metadata;

test('defaults are filled in, removed keys are kept aside, what became sensitive goes to the vault', async () => {
  const made = await outdated([
    { name: 'base_url', required: true },
    { name: 'size', type: 'integer' },
    { name: 'region', required: true, default: 'eu' },
    { name: 'word', sensitive: true },
  ]);
  const { status, body } = await upgrade(made);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    instance_id: made.instance_id,
    previous_version: 1,
    new_version: 3,
    migration_applied: true,
    changelog: expect.stringMatching(/^2: .+\n3: .+$/),
    instance: {
      configuration: { base_url: 'https://tickets.test', size: 5, region: 'eu' },
      credential_fields: ['word'],
      schema_version: 3,
      upgrade_available: false,
    },
  });
  expect((await ann.call('GET', `${instancesOf(ann)}/${made.instance_id}`)).body).toEqual(body.instance);
  expect(await removedOf(made)).toEqual({ removed: { old: 'kept' } });
  const { credentials, sql } = app.services;
  expect(await credentials.open(sql, ann.orgId, { toolInstanceId: made.instance_id })).toEqual({ word: 'hidden' });
  expect(await eventsOf(app, made.instance_id)).toEqual(['tool_instance.created', 'tool_instance.upgraded']);
  expect((await changesOf(app, made.instance_id)).at(-1)).toMatchObject({
    action: 'upgrade',
    metadata: { previous_version: 1, new_version: 3 },
  });
  // again: nothing to do, and nothing is told
  expect((await upgrade(made)).body).toMatchObject({
    previous_version: 3,
    new_version: 3,
    migration_applied: false,
    changelog: '',
  });
  expect(await eventsOf(app, made.instance_id)).toHaveLength(2);
});

test('a field that needs a value asks for it, and changes nothing before it has one', async () => {
  const made = await outdated(
    [...first, { name: 'region', required: true, options: [{ value: 'eu' }] }, { name: 'size', type: 'string' }].filter(
      ({ name }, index) => name !== 'size' || index > 2,
    ),
  );
  const refused = await upgrade(made);
  expect(refused).toMatchObject({
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: {
        resource_type: 'tool_instance',
        resource_id: made.instance_id,
        reason: 'manual_migration_required',
        fields: ['region', 'size'],
      },
    },
  });
  expect((await ann.call('GET', `${instancesOf(ann)}/${made.instance_id}`)).body).toEqual(made);
  expect(placesOf((await upgrade(made, { configuration: { region: 'asia', size: '5', nothing: 1 } })).body)).toEqual([
    ['configuration.region', 'literal_error'],
    ['configuration.nothing', 'extra_forbidden'],
  ]);
  const { body } = await upgrade(made, { configuration: { region: 'eu', size: '5' } });
  expect(body).toMatchObject({
    new_version: 3,
    instance: { configuration: { ...configuration, region: 'eu', size: '5' } },
  });
});

test('an instance below the lowest supported schema is deprecated until it is upgraded', async () => {
  const made = await outdated(first);
  const url = `/v1/orgs/${ann.orgId}/tools/${String(made.tool_id)}`;
  expect((await ann.call('PUT', url, { min_schema_version: 2 })).status).toBe(200);
  const get = async () => (await ann.call<Instance>('GET', `${instancesOf(ann)}/${made.instance_id}`)).body;
  expect(await get()).toMatchObject({ schema_deprecated: true });
  expect((await upgrade(made)).status).toBe(200);
  expect(await get()).toMatchObject({ schema_deprecated: false });
});

test('an upgrade with values that change nothing needs no right to reveal what others keep', async () => {
  const { orgId, workspaceId } = ann;
  const editor = caller(app, { ...(await colleague(app, ann, 'editor')), orgId, workspaceId });
  const later = [...first, { name: 'region', default: 'eu' }, { name: 'note' }];
  const made = await outdated(later);
  const { prisma } = app.database;
  const key = { tool_instance_id: made.instance_id, api_key: 'of its maker' };
  expect((await ann.call('POST', `${ann.home}/connections/api-key`, key)).status).toBe(201);
  const old = () =>
    prisma.toolInstance.update({ where: { id: made.instance_id }, data: { schemaVersion: 1, configuration } });
  const ask = async (given?: Json) => {
    await old();
    const body = given && { configuration: given };
    return (await editor.call('POST', `${instancesOf(ann)}/${made.instance_id}/upgrade`, body ?? {})).status;
  };
  for (const same of [undefined, {}, { base_url: configuration.base_url, size: 5 }, { region: 'eu' }, { note: null }])
    expect([same, await ask(same)]).toEqual([same, 200]);
  for (const other of [
    { base_url: 'https://elsewhere.test' },
    { size: 6 },
    { region: 'us' },
    { note: 'x' },
    { old: null },
  ])
    expect([other, await ask(other)]).toEqual([other, 403]);
});

test('is recorded as an upgrade, also if nothing was to do or it was refused', async () => {
  const done = await outdated(first);
  expect((await upgrade(done)).status).toBe(200);
  expect((await upgrade(done)).body).toMatchObject({ migration_applied: false });
  const refused = await outdated([...first, { name: 'region', required: true }]);
  expect((await upgrade(refused)).status).toBe(409);
  const over = `mutation ($o: ID!, $w: ID!, $id: ID!) {
    upgradeToolInstance(orgId: $o, workspaceId: $w, id: $id) { migrationApplied } }`;
  const names = { o: ann.orgId, w: ann.workspaceId };
  expect((await ann.ask(over, { ...names, id: done.instance_id })).errors).toBeUndefined();
  expect((await ann.ask(over, { ...names, id: refused.instance_id })).errors).toHaveLength(1);
  const recorded = async ({ instance_id: resourceId }: Instance) => {
    await app.services.activity.flush();
    const where = { resourceId, action: 'upgrade' };
    const records = await app.database.prisma.activity.findMany({ where, orderBy: { id: 'asc' } });
    return records.map(({ action, statusCode }) => [action, statusCode]);
  };
  await waitFor(async () =>
    expect(await recorded(done)).toEqual([
      ['upgrade', 200],
      ['upgrade', 200],
      ['upgrade', 200],
    ]),
  );
  await waitFor(async () =>
    expect(await recorded(refused)).toEqual([
      ['upgrade', 409],
      ['upgrade', 409],
    ]),
  );
});
