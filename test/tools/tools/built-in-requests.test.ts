import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../../src/paths.ts';
import type { OutboundRequest } from '../../../src/platform/outbound/outbound.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { exchange, initiate } from '../connections/connecting.ts';
import { instancesOf, type Json, newInstance } from '../tool-instances/instances.ts';

/*
 * What each built-in tool sends, and what it makes of the answer. Each has a file of calls beside this one, as the
 * documentation of its API describes them: the requests with their addresses, headers and bodies, and the answers.
 */

const dir = path.join(projectRoot, 'test', 'tools', 'tools', 'built-in');
const tools = readdirSync(path.join(projectRoot, 'src', 'tools', 'tools', 'built-in'));

interface Exchange {
  request: { method: string; url: string; headers?: Record<string, string>; body?: unknown };
  response: { status: number; headers?: Record<string, string>; body?: unknown };
}
interface Documented {
  documentation: string;
  configuration: Json;
  /** What the token endpoint answers, for a tool without another credential. */
  oauth?: Json;
  custom_actions?: Json[];
  calls: { action: string; parameters: Json; max_pages?: number; exchanges: Exchange[]; result: unknown }[];
}

let app: TestApp;
let server: TargetServer;
let ann: Person;
/** What the providers answer, the next one first. */
let answers: Exchange['response'][] = [];
beforeAll(async () => {
  server = await startTarget((_request, response) => {
    const { status, headers = {}, body } = answers.shift() ?? { status: 599 };
    const text = body === undefined ? undefined : JSON.stringify(body);
    response.writeHead(status, { ...(text && { 'content-type': 'application/json' }), ...headers }).end(text);
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  const { outbound } = app.services;
  const request = outbound.request.bind(outbound);
  // all providers are one server here: which one was meant is in a header
  outbound.request = (given: OutboundRequest) => {
    const url = new URL(given.url);
    const headers = { ...given.headers, 'x-meant': url.origin };
    return request({ ...given, headers, url: `http://127.0.0.1:${server.port}${url.pathname}${url.search}` });
  };
  ann = await register(app);
});
afterAll(async () => {
  await app.close();
  await server.close();
});

async function instanceOf(slug: string, { configuration, oauth, custom_actions = [] }: Documented): Promise<string> {
  const { body: tool } = await ann.call<{ tool_id: string }>('GET', `/v1/orgs/${ann.orgId}/tools/slug/${slug}`);
  const client = oauth && { auth_mode: 'oauth2', connection_credentials: { client_id: 'a-client' } };
  const given = { configuration, custom_actions, ...client };
  const { instance_id: id } = await newInstance(ann, tool.tool_id, given);
  if (!oauth) return id;
  const { state } = await initiate(ann, `${ann.home}/connections`, id);
  answers = [
    { status: 200, body: oauth },
    { status: 200, body: {} },
  ];
  const { status, body } = await exchange(ann, 'a-code', state);
  expect(status, JSON.stringify(body)).toBe(200);
  return id;
}

/** Runs an action, and agrees to it if it asks. */
async function run(id: string, body: Json): Promise<Json> {
  const url = `${instancesOf(ann)}/${id}/execute`;
  const { status, body: first } = await ann.call<Json>('POST', url, body);
  expect(status, JSON.stringify(first)).toBe(200);
  if (first.code !== 'confirmation_required') return first;
  return (await ann.call<Json>('POST', url, { ...body, confirmation: first.confirmation })).body;
}

/** An address with the parameters of its query in the order of their names: no API asks for another one. */
function inOrder(url: string): string {
  const ordered = new URL(url);
  ordered.searchParams.sort();
  return ordered.href;
}

const parsedBody = (text: string, type = ''): unknown =>
  type.startsWith('application/json') ? JSON.parse(text) : text;

test.each(tools)('%s is called as its documentation says', async (file) => {
  const documented = JSON.parse(readFileSync(path.join(dir, file), 'utf8')) as Documented;
  const id = await instanceOf(file.replace('.json', ''), documented);
  for (const { action, parameters, max_pages, exchanges, result } of documented.calls) {
    answers = exchanges.map(({ response }) => response);
    server.requests.length = 0;
    const answer = await run(id, { action, parameters, max_pages });
    expect(answer, action).toMatchObject({ success: true, code: 'ok', result });
    expect(answers, action).toEqual([]);
    const sent = server.requests.map(({ method, path: at, headers, body }) => ({
      method,
      url: inOrder(`${String(headers['x-meant'])}${at}`),
      headers,
      ...(body !== '' && { body: parsedBody(body, headers['content-type']) }),
    }));
    expect(sent, action).toEqual(
      exchanges.map(({ request: { headers = {}, url, ...request } }) => ({
        ...request,
        url: inOrder(url),
        headers: expect.objectContaining(headers) as unknown,
      })),
    );
  }
});

test('every file of calls is of a tool, and each tool has one', () => {
  expect(readdirSync(dir).sort()).toEqual([...tools].sort());
});
