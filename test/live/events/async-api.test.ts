import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventTypes } from '../../../src/kernel/event-types.ts';
import { eventsPage } from '../../../src/live/events/async-api.ts';
import { projectRoot } from '../../../src/paths.ts';
import { startOwnApp, type TestApp } from '../../support/app.ts';
import { openEvents } from '../../support/sockets.ts';
import { createWorld, type World } from '../../support/world.ts';

interface Document {
  asyncapi: string;
  channels: Record<string, { messages: Record<string, { $ref: string }> }>;
  operations: Record<string, { channel: { $ref: string } }>;
  components: { messages: Record<string, { payload: object }>; schemas: Record<string, object> };
}

let app: TestApp;
let world: World;
let document: Document;
beforeAll(async () => {
  app = await startOwnApp(); // a test ends all its streams
  world = await createWorld(app);
  document = (await app.server.inject('/asyncapi.json')).json();
});
afterAll(() => app.close());

/** Whether a message is as the document says. */
function problemsOf(message: Record<string, unknown>) {
  const { components } = document;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  const described = components.messages[message.type as string];
  if (!described) return [`nothing describes '${String(message.type)}'`];
  const validate = ajv.compile({ ...described.payload, components });
  validate(message);
  return (validate.errors ?? []).map(({ instancePath, message: text }) => `${instancePath} ${text}`);
}

const messageOf = (type: string, data: object) => ({
  event_id: 'evt_1',
  type,
  org_id: 'org_1',
  workspace_id: 'ws_1',
  actor: { principal_type: 'system', principal_id: null, username: null },
  resource_type: 'workspace',
  resource_id: 'ws_1',
  data,
  timestamp: '2026-11-22T00:00:00.000Z',
  trace_id: null,
});

describe('/asyncapi.json', () => {
  test('describes every type of event once, and all its references lead somewhere', () => {
    expect(document.asyncapi).toBe('3.0.0');
    const notices = ['connected', 'heartbeat', 'resync', 'stream.closing'];
    const described = Object.keys(document.components.messages);
    expect(described.sort()).toEqual([...eventTypes, ...notices].sort());
    const listed = new Set(Object.values(document.channels).flatMap(({ messages }) => Object.keys(messages)));
    expect([...listed].sort()).toEqual(described);
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, ref]) => ref!);
    expect(refs.length).toBeGreaterThan(described.length);
    for (const ref of refs) {
      const found = ref.split('/').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document);
      expect([ref, typeof found]).toEqual([ref, 'object']);
    }
  });

  test('describes what services emit', async () => {
    const { rows } = await app.database.pool.query<{ type: string; data: object }>(
      'select distinct on (type) type, data from events order by type, seq',
    );
    expect(rows.length).toBeGreaterThan(15);
    expect(rows.map(({ type, data }) => [type, problemsOf(messageOf(type, data))])).toEqual(
      rows.map(({ type }) => [type, []]),
    );
  });

  test('describes the frames of a stream, from the first to the last', async () => {
    const url = await app.listen();
    const stream = await openEvents(
      `${url}/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/sync/stream`,
      { headers: world.as('viewer') },
    );
    await stream.next(({ event }) => event === 'presence.joined');
    await app.services.events.close();
    await stream.ended;
    const sent = stream.events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);
    // jobs of the world may still tell of its resources in between
    const own = sent.filter(({ type }) => /^(connected|presence\..*|stream\..*)$/.test(String(type)));
    expect(own.map(({ type }) => type)).toEqual(['connected', 'presence.joined', 'stream.closing']);
    expect([sent.at(0), sent.at(-1)]).toEqual([own.at(0), own.at(-1)]);
    expect(sent.flatMap(problemsOf)).toEqual([]);
  });

  test('finds what is wrong', () => {
    expect(problemsOf(messageOf('thread.created', { title: 'x' }))).not.toEqual([]);
    expect(problemsOf(messageOf('artifact.indexed', { chunk_count: '3' }))).not.toEqual([]);
    expect(problemsOf(messageOf('artifact.indexed', {}))).not.toEqual([]);
    expect(problemsOf(messageOf('nothing.happened', {}))).not.toEqual([]);
    const { trace_id: _left, ...less } = messageOf('thread.created', {});
    expect(problemsOf(less)).not.toEqual([]);
  });
});

test('docs/api/events.md is the page of the table', () => {
  expect(readFileSync(path.join(projectRoot, 'docs/api/events.md'), 'utf8')).toBe(eventsPage());
});
