import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/kernel/caller.ts';
import type { OutboundRequest } from '../../../src/platform/outbound/outbound.ts';
import { OutboundResponse } from '../../../src/platform/outbound/outbound-response.ts';
import { shownAnswer } from '../../../src/tools/tool-actions/action-answer.ts';
import { checkedArguments } from '../../../src/tools/tool-actions/action-arguments.ts';
import { ActionCalls, type CalledAction } from '../../../src/tools/tool-actions/action-calls.ts';
import { differenceFrom } from '../../../src/tools/tool-actions/output-check.ts';
import { MASK, Redactor, withMask } from '../../../src/tools/tool-actions/redactor.ts';
import { requestFor } from '../../../src/tools/tool-instances/action-request.ts';
import type { ToolAction } from '../../../src/tools/tool-instances/effective-actions.ts';
import { waitFor } from '../../support/wait.ts';

/** Each of these took seconds to minutes, in which the process did nothing else. */
describe('what strangers made costly', () => {
  test('a long secret that repeats itself, in a long answer that does, too', () => {
    const secret = `${'a'.repeat(300)}b${'a'.repeat(60_000)}`;
    const text = 'a'.repeat(1024 * 1024);
    expect(new Redactor([secret]).clean(text)).toBe(text);
    expect(new Redactor([secret]).clean(`${text}b${text}`)).toBe(
      `${'a'.repeat(1024 * 1024 - 300)}${MASK}${'a'.repeat(1024 * 1024 - 60_000)}`,
    );
  });

  test('a long enumeration for each element of a list', () => {
    const values = Array.from({ length: 20_000 }, (_, at) => `v${at}`);
    const list = Array.from({ length: 400_000 }, () => 'v19999');
    const schema = { type: 'array', items: { enum: values } };
    expect(differenceFrom(schema, list)).toBeNull();
    expect(differenceFrom(schema, ['v1', 'x'])).toBe('[1] is none of the values of its enumeration');
    const action: ToolAction = {
      name: 'run',
      parameters: [
        { name: 'list', type: 'array', enum: values },
        { name: 'parts', type: 'array', items: { enum: values } },
      ],
    };
    const given = { list, parts: list.slice(0, 30_000) };
    expect(checkedArguments(action, {}, given, [])).toEqual(given);
    expect(() => checkedArguments(action, {}, { list: ['v1', 'x'] }, [])).toThrow();
    expect(() => checkedArguments(action, {}, { parts: given.parts.map(() => 'x') }, [])).toThrow();
  });

  test('many properties for each element of a list', () => {
    const properties = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`p${at}`, { type: 'string' }]));
    const list = Array.from({ length: 20_000 }, () => ({}));
    expect(differenceFrom({ items: { type: 'object', properties } }, list)).toBeNull();
    const parameters = [{ name: 'list', type: 'array', items: { type: 'object', properties } }];
    expect(() => checkedArguments({ name: 'run', parameters }, {}, { list }, ['input'])).toThrow(
      'the arguments have too many parts to check',
    );
  });
});

test('a secret of any length is masked where the engine would find it', () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const textOf = (length: number) => Array.from({ length }, () => 'ab'[random(12) === 0 ? 1 : 0]).join('');
  for (let n = 0; n < 500; n++) {
    const part = textOf(1 + random(40));
    const secret = n % 2 === 0 ? textOf(60 + random(60)) : part.repeat(Math.ceil((60 + random(60)) / part.length));
    const text = Array.from({ length: 12 }, () => [secret, secret.slice(1 + random(9)), part, textOf(30)][random(4)]);
    expect(withMask(text.join(''), secret)).toBe(text.join('').replaceAll(secret, MASK));
  }
});

describe('a credential', () => {
  const SECRET = 'sk/live+a=b ü?';
  const redactor = new Redactor([SECRET, '123456789012345678', '1234.50']);
  const escaped = [...SECRET].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const answerOf = (status: number, body: string) =>
    new OutboundResponse({ status, headers: new Headers(), body: Buffer.from(body), url: 'http://target/' });

  test.each([
    ['as in a path', encodeURIComponent(SECRET).replaceAll('%2F', '/')],
    ['in hexadecimal capitals', Buffer.from(SECRET).toString('hex').toUpperCase()],
    ['with escaped slashes', SECRET.replaceAll('/', '\\/')],
    ['with escaped characters', escaped],
  ])('is masked %s', (_title, spelling) => {
    expect(redactor.clean(`<b>${spelling}</b>`)).toBe(`<b>${MASK}</b>`);
  });

  test('is masked as a number and in the JSON of a refusal, and nothing else is changed', () => {
    expect(redactor.cleanJson({ a: [Number('123456789012345678'), 1234.5, 1234, true, null] })).toEqual({
      a: [MASK, MASK, 1234, true, null],
    });
    const json = { a: [1, '\\/ \\u0041'] };
    expect(redactor.cleanJson(json)).toBe(json);
    const excerptOf = (body: string) => shownAnswer({ name: 'run' }, answerOf(400, body), redactor).excerpt;
    expect(excerptOf(`{"a": "${escaped}", "b": 1.2345e3}`)).toBe(`{"a":"${MASK}","b":"${MASK}"}`);
    expect(excerptOf(`{"a": "${escaped}", "a": 1}`)).toBe(`{"a": "${MASK}", "a": 1}`);
    expect(excerptOf('{"a": "\\u0041"}')).toBe('{"a": "\\u0041"}');
    const many = new Redactor(Array.from({ length: 40 }, (_, at) => `secret ${at}`));
    expect(many.cleanJson({ a: [1234, true] })).toEqual({ [MASK]: [MASK, true] });
  });
});

test('an argument in a form adds no pair to it, unless it is the whole form', () => {
  const bodyOf = (body_template: string, parameters: Record<string, unknown>) =>
    requestFor({
      action: {
        name: 'run',
        method: 'POST',
        url_template: 'https://target/',
        headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
        body_template,
      },
      parameters,
      configuration: {},
      secrets: {},
      credentials: [],
    }).body;
  const text = 'hi&to=mallory +%';
  expect(bodyOf('to=ann&text={{text}}', { text })).toBe('to=ann&text=hi%26to%3Dmallory%20%2B%25');
  expect(bodyOf('{{text}}=1&b={{b}}', { text })).toBe('hi%26to%3Dmallory%20%2B%25=1');
  expect(bodyOf(' {{ text }} ', { text: 'a=1&b=2' })).toBe(' a=1&b=2 ');
  expect(bodyOf('{"a":"{{text}}"}', { text })).toBe(`{"a":"${text}"}`);
});

test('a parameter that was not given may be of the configuration, and is no secret', () => {
  const urlFor = (given: object) =>
    requestFor({
      action: {
        name: 'run',
        url_template: 'https://target/{{place}}',
        query_params_template: { key: '{{key}}', other: '{{other}}' },
        parameters: [{ name: 'place' }, { name: 'key' }],
      },
      parameters: {},
      configuration: { place: 'here' },
      secrets: { key: 'a key of theirs', other: 'named by the action' },
      credentials: [],
      ...given,
    }).url;
  expect(String(urlFor({}))).toBe('https://target/here?other=named+by+the+action');
  expect(String(urlFor({ parameters: { key: 'mine' } }))).toContain('key=mine');
  expect(() => urlFor({ configuration: {}, secrets: { place: 'a secret' } })).toThrow("needs a value of 'place'");
});

test('actions leave room for other calls of the organization and of all, and do not wait without end', async () => {
  const open: (() => void)[] = [];
  const requests: OutboundRequest[] = [];
  const outbound = {
    request: async (request: OutboundRequest) => {
      requests.push(request);
      await new Promise<void>((resolve) => open.push(resolve));
      return new OutboundResponse({
        status: 200,
        headers: new Headers(),
        body: Buffer.alloc(0),
        url: 'http://target/',
      });
    },
  };
  const calls = new ActionCalls({ outbound } as unknown as ConstructorParameters<typeof ActionCalls>[0]);
  const run = (orgId: string, seconds = 300) => {
    const action = { name: 'run', url_template: 'https://target/', timeout_seconds: seconds };
    const credentials = [{ placement: { in: 'header', name: 'x-key' }, value: 'a key' }];
    const parts = { action, parameters: {}, configuration: {}, secrets: {}, credentials };
    const called = { instance: { id: orgId, orgId }, tool: { name: 'T' }, action, namespaceId: null, parts };
    return calls.make(
      { principal: { userId: 'usr', token: null }, request: {} } as Caller,
      called as unknown as CalledAction,
    );
  };
  const ofOne = Array.from({ length: 58 }, () => run('one'));
  await waitFor(() => expect(requests).toHaveLength(8));
  expect(await run('one')).toMatchObject({ success: false, code: 'busy' });
  const ofTwo = run('two', 1);
  await waitFor(() => expect(requests.map(({ owner }) => owner)).toEqual([...Array(8).fill('one'), 'two']));
  // one that waits gives up at its own limit
  open.shift()!();
  await waitFor(() => expect(requests).toHaveLength(10));
  expect(await run('one', 0.02)).toMatchObject({ success: false, code: 'timeout' });
  const others = Array.from({ length: 100 }, (_, at) => run(`other ${at}`));
  await waitFor(() => expect(requests.length - 1).toBe(96));
  const ended = Promise.all([...ofOne, ofTwo, ...others]);
  await waitFor(() => {
    for (const answer of open.splice(0)) answer();
    expect(requests).toHaveLength(159);
  });
  for (const answer of open.splice(0)) answer();
  expect((await ended).map(({ code }) => code)).toEqual(Array(159).fill('ok'));
});
