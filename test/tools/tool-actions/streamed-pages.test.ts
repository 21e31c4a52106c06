import type http from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CallEnd } from '../../../src/tools/tool-actions/action-calls.ts';
import { OF_A_STREAM, PageItems, type PagesEnd } from '../../../src/tools/tool-actions/page-items.ts';
import { StreamedPages } from '../../../src/tools/tool-actions/streamed-pages.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';
import { allow, connectByKey, KEY, newEndUser, RETURN_TO } from '../connect-links/connecting-end-users.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from '../tool-instances/instances.ts';

let app: TestApp;
let address: string;
let target: TargetServer;
let ann: Person;
let handler: (page: number, response: http.ServerResponse) => unknown;
beforeAll(async () => {
  target = await startTarget((request, response) =>
    handler(Number(new URL(request.url!, 'http://x').searchParams.get('page')), response),
  );
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  address = await app.listen();
});
beforeEach(async () => {
  target.requests.length = 0;
  handler = answered;
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await target.close();
});

interface Line extends Json {
  page: number | null;
  items: unknown[] | null;
  end: (Json & { code: string; pages: Json | null }) | null;
}

const PAGES = [[{ id: 1 }, { id: 2 }], [{ id: 2 }, { id: 3 }], [{ id: 4 }]];
const json = (response: http.ServerResponse, body: unknown) => response.end(JSON.stringify(body));
const answered = (page: number, response: http.ServerResponse) =>
  json(response, { items: PAGES[page - 1], more: page < PAGES.length });

async function listOf(action: Json = {}, tool: Json = {}): Promise<Instance> {
  const toolId = await newTool(ann, {
    config_schema: [],
    credential_schema: [],
    ...tool,
    action_schemas: [
      {
        name: 'list',
        method: 'GET',
        url_template: `http://127.0.0.1:${target.port}/things`,
        response_result_path: '$.items',
        pagination: { type: 'page', has_more_path: '$.more' },
        ...action,
      },
    ],
  });
  return newInstance(ann, toolId, { configuration: {} });
}

const urlOf = ({ instance_id }: Instance) => `${instancesOf(ann)}/${instance_id}/execute/pages`;
const asked = (instance: Instance, body: Json = {}) =>
  app.server.inject({
    method: 'POST',
    url: urlOf(instance),
    headers: ann.headers,
    payload: { action: 'list', ...body },
  });
const linesIn = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

/** Opens a stream that is read line by line. */
async function opened(
  instance: Instance,
  { headers = ann.headers, body = {} }: { headers?: object; body?: Json } = {},
) {
  const client = new AbortController();
  const answer = await fetch(`${address}${urlOf(instance)}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ action: 'list', ...body }),
    signal: client.signal,
  });
  const reader = answer.body!.getReader();
  let text = '';
  return {
    answer,
    leave: () => client.abort(),
    async line(): Promise<Line | null> {
      while (!text.includes('\n')) {
        const { value, done } = await reader.read();
        if (done) return null;
        text += Buffer.from(value).toString();
      }
      const [first, ...rest] = text.split('\n');
      text = rest.join('\n');
      return JSON.parse(first!) as Line;
    },
  };
}

const recordsOf = () => app.database.prisma.activity.findMany({ where: { orgId: ann.orgId, action: 'execute' } });
const eventsOf = () =>
  app.database.prisma.event.findMany({ where: { orgId: ann.orgId, type: { startsWith: 'tool_action.' } } });

describe('the pages of a list', () => {
  test('come as lines while others are read, without what an earlier one had, and then how it ended', async () => {
    const instance = await listOf();
    let answerSecond: () => unknown = () => undefined;
    handler = (page, response) => {
      if (page === 2) answerSecond = () => answered(page, response);
      else answered(page, response);
    };
    const stream = await opened(instance);
    expect([stream.answer.status, stream.answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
    expect(await stream.line()).toEqual({ page: 1, items: [{ id: 1 }, { id: 2 }], end: null });
    await waitUntil(() => target.requests.length === 2);
    answerSecond();
    expect(await stream.line()).toEqual({ page: 2, items: [{ id: 3 }], end: null });
    expect(await stream.line()).toEqual({ page: 3, items: [{ id: 4 }], end: null });
    const last = await stream.line();
    expect(last).toMatchObject({
      page: null,
      items: null,
      end: {
        success: true,
        code: 'ok',
        result: null,
        attempts: 3,
        pages: { count: 3, items: 4, has_more: false, ended: 'end' },
      },
    });
    expect(await stream.line()).toBeNull();
    const [record, ...others] = await recordsOf();
    expect(record).toMatchObject({ success: true, metadata: { code: 'ok', pages: 3, pages_ended: 'end' } });
    expect(others).toEqual([]);
    expect((await eventsOf()).map(({ type }) => type)).toEqual(['tool_action.executed']);
  });

  test('come over GraphQL, too', async () => {
    const instance = await listOf();
    const query = `subscription ($org: ID!, $ws: ID!, $id: ID!) {
      toolActionPages(orgId: $org, workspaceId: $ws, id: $id, input: { action: "list", maxPages: 2 }) {
        page items end { code pages { count ended hasMore } }
      } }`;
    const { body } = await app.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { ...ann.headers, accept: 'text/event-stream' },
      payload: { query, variables: { org: ann.orgId, ws: ann.workspaceId, id: instance.instance_id } },
    });
    const frames = [...body.matchAll(/^data: (.+)$/gm)].map(([, text]) => JSON.parse(text!) as { data: Json });
    expect(frames.map(({ data }) => data.toolActionPages)).toEqual([
      { page: 1, items: [{ id: 1 }, { id: 2 }], end: null },
      { page: 2, items: [{ id: 3 }], end: null },
      { page: null, items: null, end: { code: 'ok', pages: { count: 2, ended: 'max_pages', hasMore: true } } },
    ]);
  });

  test('end with the client, who is not waited for', async () => {
    const instance = await listOf();
    const gone = new Promise<void>((resolve) => {
      handler = (page, response) => {
        if (page === 2) response.once('close', resolve);
        else answered(page, response);
      };
    });
    const stream = await opened(instance);
    await stream.line();
    await waitUntil(() => target.requests.length === 2);
    stream.leave();
    await gone;
    await waitUntil(async () => (await recordsOf()).length === 1);
    expect(await recordsOf()).toMatchObject([{ success: true, metadata: { pages: 1, pages_ended: 'left' } }]);
    expect((await eventsOf()).map(({ type }) => type)).toEqual(['tool_action.executed']);
    expect(target.requests).toHaveLength(2);
  });

  test('end with a failure that the last line tells', async () => {
    handler = (page, response) => (page < 2 ? answered(page, response) : response.writeHead(500).end('broken'));
    const [first, last, ...others] = linesIn((await asked(await listOf())).body);
    expect([first!.page, others]).toEqual([1, []]);
    expect(last!.end).toMatchObject({
      success: false,
      code: 'http_500',
      excerpt: 'broken',
      pages: { count: 1, items: 2, has_more: true, ended: 'failed' },
    });
    expect((await eventsOf()).map(({ type }) => type)).toEqual(['tool_action.failed']);
  });

  test('end with what allowed the caller to read them', async () => {
    const instance = await listOf();
    const { id, headers } = await issueToken(app, ann);
    handler = async (page, response) => {
      await ann.call('DELETE', `/v1/orgs/${ann.orgId}/api-tokens/${id}`);
      answered(page, response);
    };
    const stream = await opened(instance, { headers });
    expect((await stream.line())!.page).toBe(1);
    expect((await stream.line())!.end).toMatchObject({ success: false, code: 'authentication_failed' });
    expect(target.requests).toHaveLength(1);
  });

  test('end with the connection of the end user, also where they are one list', async () => {
    const instance = await listOf({}, { supports_connection: true, credential_schema: [KEY] });
    const [instanceId, endUserId] = [instance.instance_id, newEndUser()];
    await allow(ann, instanceId, [RETURN_TO]);
    let id = '';
    handler = async (page, response) => {
      await ann.call('DELETE', `${ann.home}/end-user-connections/${id}`);
      answered(page, response);
    };
    const end = { success: false, code: 'resource_not_found', pages: { count: 1, items: 2, ended: 'failed' } };
    id = await connectByKey(app, ann, { instanceId, endUserId, key: 'key-of-one' });
    const lines = linesIn((await asked(instance, { end_user_id: endUserId })).body);
    expect(lines).toMatchObject([{ page: 1 }, { end }]);
    id = await connectByKey(app, ann, { instanceId, endUserId, key: 'key-of-two' });
    const payload = { action: 'list', end_user_id: endUserId, max_pages: 5 };
    const whole = await ann.call('POST', `${instancesOf(ann)}/${instanceId}/execute`, payload);
    expect([whole.status, whole.body]).toMatchObject([200, { ...end, result: PAGES[0] }]);
    expect((await recordsOf()).map(({ metadata }) => metadata)).toMatchObject([{ code: end.code }, { code: end.code }]);
  });

  test('are agreed to first, where the action says so', async () => {
    const instance = await listOf({ requires_confirmation: true });
    const send = async (body: Json = {}) => linesIn((await asked(instance, body)).body);
    const [asking, ...others] = await send();
    expect([asking!.end!.code, others, target.requests]).toEqual(['confirmation_required', [], []]);
    const lines = await send({ confirmation: asking!.end!.confirmation });
    expect(lines.map(({ page }) => page)).toEqual([1, 2, 3, null]);
  });

  test.each([
    [{ pagination: { type: 'none' } }, 'the action has no pagination'],
    [{ method: 'POST' }, 'the action may change something, so it is called once, and not page by page'],
  ])('are those of a list: %j', async (action, message) => {
    const answer = await asked(await listOf(action));
    expect([answer.statusCode, placesOf(answer.json())]).toEqual([422, [['action', 'value_error']]]);
    expect(answer.body).toContain(message);
    expect(target.requests).toEqual([]);
  });

  test('are read for four clients of a user at once', async () => {
    const instance = await listOf();
    handler = () => undefined;
    const streams = [];
    for (let n = 0; n < 4; n++) streams.push(await opened(instance));
    expect((await asked(instance)).statusCode).toBe(429);
    for (const stream of streams) stream.leave();
    handler = answered;
    await waitUntil(async () => (await asked(instance)).statusCode === 200);
  });
});

test('a client that stands still is given up after the time of all pages, and told so once it reads', async () => {
  const ended: PagesEnd[] = [];
  const abort = new AbortController();
  const pages = (async function* (): AsyncGenerator<void, PagesEnd, void> {
    yield;
    return 'end';
  })();
  const stream = new StreamedPages(
    {
      called: { instance: { orgId: 'org_1' } } as never,
      reading: { count: 1, items: { take: () => ['one'] }, failure: null } as never,
      abort,
      pages,
      endOf: (_called, _reading, how) => {
        ended.push(how);
        return { code: how } as unknown as CallEnd;
      },
      finish: async (end) => end as never,
    },
    1,
  );
  await waitUntil(() => ended.length > 0);
  expect([ended, abort.signal.aborted]).toEqual([['time'], true]);
  expect(await stream.next()).toEqual({
    done: false,
    value: { orgId: 'org_1', page: null, items: null, end: { code: 'time' } },
  });
  expect(await stream.next()).toEqual({ done: true, value: undefined });
  await stream.return();
  expect(ended).toEqual(['time']);
});

test('items are told apart by long keys, too', () => {
  const items = new PageItems('id', OF_A_STREAM);
  const long = 'x'.repeat(1_000);
  const page = (from: number) => Array.from({ length: 100 }, (_, n) => ({ id: `${long}${from + n}` }));
  const taken: number[] = [];
  for (const from of [0, 100, 150]) {
    items.add(page(from));
    taken.push(items.take().length);
  }
  expect(taken).toEqual([100, 100, 50]);
});
