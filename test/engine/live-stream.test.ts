import { type ExecutionResult, GraphQLObjectType, GraphQLSchema, GraphQLString, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { showsEventOnly } from '../../src/engine/live/event-selection.ts';
import { LiveStream, subscribeLive } from '../../src/engine/live/live-stream.ts';
import { Context } from '../../src/graphql/context.ts';
import { cursorOf, type Position } from '../../src/live/events/position.ts';
import { schema as product } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

describe('a selection', () => {
  const stream = 'workspaceEvents(orgId: "o", workspaceId: "w")';
  it.each([
    ['columns', `{ ${stream} { id type data timestamp } }`],
    ['what says that it is the same for all', `{ ${stream} { cursor actor { principalId username } __typename } }`],
    [
      'the same by fragments',
      `{ ...S } fragment S on Subscription { ${stream} { ...E ... { type } ...E } } fragment E ` +
        'on WorkspaceEvent { id actor { ...A } } fragment A on EventActor { username }',
    ],
    [
      'another name, and arguments of the stream itself',
      `S($o: ID!) { a: workspaceEvents(orgId: $o, workspaceId: "w") { b: id } }`,
    ],
  ])('of %s shows the event alone', (_what, text) => {
    expect(showsEventOnly(product, parse(`subscription ${text}`))).toBe(true);
  });

  it.each([
    ['a directive', `{ ${stream} { id type @include(if: true) } }`],
    ['a directive on a fragment', `{ ${stream} { ...E @skip(if: false) } } fragment E on WorkspaceEvent { id }`],
    ['a directive on the stream', `S($x: Boolean!) { ${stream} @include(if: $x) { id } }`],
    ['a fragment on what is no object', `{ ${stream} { ... on Node { id } } }`],
    ['no subscription', '{ nothing { id } }'],
  ])('with %s does not', (_what, text) => {
    expect(showsEventOnly(product, parse(`subscription ${text}`))).toBe(false);
  });
});

describe('the streams of one document', () => {
  const resolve = vi.fn(({ name }: { name: string }) => name);
  const leaf = (extensions: Record<string, unknown>, read: unknown = resolve) => ({
    type: GraphQLString,
    extensions,
    resolve: read as never,
  });
  const Event = new GraphQLObjectType<unknown, Context>({
    name: 'Event',
    fields: {
      column: leaf({ pothosExposedField: 'name' }),
      same: leaf({ sameForAll: true }),
      own: leaf({}, (_event: object, _args: object, { anyCaller }: Context) => anyCaller.principal?.userId),
      wrong: leaf(
        { sameForAll: true },
        (_event: object, _args: object, { caller }: Context) => caller.principal.userId,
      ),
    },
  });
  let sources: { name: string }[][] = [];
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        events: {
          type: Event,
          extensions: { sameForAll: true },
          subscribe: async function* () {
            yield* sources.shift() ?? [];
          },
          resolve: (event: unknown) => event,
        },
      },
    }),
  });
  const mask = (result: ExecutionResult) => result;
  /** What two readers, who share their events, are told. */
  async function read(text: string): Promise<ExecutionResult[][]> {
    resolve.mockClear();
    const document = parse(text);
    const events = [{ name: 'one' }, { name: 'two' }];
    sources = [events, events];
    const told = ['usr_1', 'usr_2'].map(async (userId) => {
      const contextValue = new Context({ principal: { userId } } as never, {} as never);
      const stream = await subscribeLive({ schema, document, contextValue }, mask);
      if (!(stream instanceof LiveStream)) throw new Error(JSON.stringify(stream));
      const results: ExecutionResult[] = [];
      for await (const result of stream) results.push(result);
      return results;
    });
    return JSON.parse(JSON.stringify(await Promise.all(told))) as ExecutionResult[][];
  }
  const data = (event: object) => ({ data: { events: event } });

  it('share one execution of each event where they show it alone', async () => {
    const expected = [data({ column: 'one', same: 'one' }), data({ column: 'two', same: 'two' })];
    expect(await read('subscription { events { column same } }')).toEqual([expected, expected]);
    expect(resolve).toHaveBeenCalledTimes(4);
  });

  it('have executions of their own where they show more', async () => {
    const expected = (own: string) => [data({ column: 'one', own }), data({ column: 'two', own })];
    expect(await read('subscription { events { column own } }')).toEqual([expected('usr_1'), expected('usr_2')]);
    expect(resolve).toHaveBeenCalledTimes(4);
  });

  it('are never told what a field shows another reader, though it says that it is the same for all', async () => {
    const expected = (wrong: string) => [data({ wrong }), data({ wrong })];
    expect(await read('subscription { events { wrong } }')).toEqual([expected('usr_1'), expected('usr_2')]);
  });
});

describe('the bytes of an event', () => {
  let app: TestApp;
  let user: Person;
  let url: string;
  beforeAll(async () => {
    app = await startTestApp();
    user = await register(app);
    url = await app.listen();
  });
  afterAll(() => app.close());

  const query = () =>
    `subscription { workspaceEvents(orgId: "${user.orgId}", workspaceId: "${user.workspaceId}", ` +
    'types: ["namespace.created"]) { cursor type resourceId actor { username } } }';
  const open = (streams: number) => waitFor(() => expect(app.services.tail.size).toBe(streams));
  const shown = async () => {
    const { rows } = await app.database.pool.query(
      `select xid, seq, resource_id as id from events
        where workspace_id = $1 and type = 'namespace.created' order by seq desc limit 1`,
      [user.workspaceId],
    );
    const { id, ...position } = rows[0] as Position & { id: string };
    const cursor = cursorOf(position, app.services.tail.epoch);
    const payload =
      `{"data":{"workspaceEvents":{"cursor":"${cursor}","type":"namespace.created",` +
      `"resourceId":"${id}","actor":{"username":"${user.username}"}}}}`;
    return { cursor, payload };
  };
  const change = () => user.call('POST', `${user.home}/namespaces`, { name: 'x' });

  it('are those of the protocol: over WebSocket with the operation’s id, over SSE with the cursor', async () => {
    const texts: string[] = [];
    const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    socket.on('message', (message: Buffer) => texts.push(message.toString()));
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify({ type: 'connection_init', payload: user.headers }));
    await waitFor(() => expect(texts).toHaveLength(1));
    for (const id of ['a "1"', 'b'])
      socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query: query() } }));
    const answer = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { ...user.headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: query() }),
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    await open(3);
    await change();
    await waitFor(() => expect(texts).toHaveLength(3));
    const { cursor, payload } = await shown();
    expect(texts.slice(1).sort()).toEqual([
      `{"id":"a \\"1\\"","type":"next","payload":${payload}}`,
      `{"id":"b","type":"next","payload":${payload}}`,
    ]);
    let read = '';
    while (!read.includes('namespace.created')) read += (await reader.read()).value ?? '';
    expect(read).toBe(`:\n\nevent: next\nid: ${cursor}\ndata: ${payload}\n\n`);
    socket.send('{"id":"b","type":"complete"}');
    await open(2);
    await reader.cancel();
    socket.close();
    await open(0);
  });
});
