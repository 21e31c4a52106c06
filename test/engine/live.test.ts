import { buildSchema, type GraphQLSchema, isObjectType, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { showsEventOnly } from '../../src/engine/live/event-selection.ts';
import { Frame } from '../../src/engine/live/frames.ts';
import { LiveStream, subscribeLive } from '../../src/engine/live/live-stream.ts';
import { StateStream } from '../../src/kernel/state-stream.ts';

const sdl = /* GraphQL */ `
  type Query { unused: String }
  type Actor { id: ID! secret: String }
  type Data { size: Int }
  union Either = Data | Actor
  type Event {
    id: ID!
    type: String!
    plain: String
    scaled(by: Int): Int
    gated: String
    shared: String
    data: Data
    actor: Actor
    either: Either
    more: Event
  }
  type Subscription { events(id: ID): Event! other: Event! time: String }
`;

/** Fields that the tests say are columns, or the same for everybody. */
function eventSchema(subscribe?: () => AsyncIterable<unknown>): GraphQLSchema {
  const schema = buildSchema(sdl);
  const extend = (typeName: string, extensions: Record<string, object>) => {
    const type = schema.getType(typeName);
    if (!isObjectType(type)) throw new Error(typeName);
    for (const [name, values] of Object.entries(extensions)) type.getFields()[name]!.extensions = values as never;
    return type.getFields();
  };
  const column = { pothosExposedField: 'x' };
  extend('Event', {
    id: column,
    type: column,
    scaled: column,
    gated: { ...column, gate: {} },
    shared: { sameForAll: true },
    data: { sameForAll: true },
    either: { sameForAll: true },
    more: { sameForAll: true },
  });
  extend('Data', { size: column });
  extend('Actor', { id: column });
  const root = extend('Subscription', { events: { sameForAll: true, gate: {} }, time: column });
  if (subscribe) root.events!.subscribe = subscribe;
  return schema;
}

describe('a selection', () => {
  const schema = eventSchema();
  const isShared = (text: string, name?: string) => showsEventOnly(schema, parse(text), name);

  it.each([
    'subscription { events { id type } }',
    'subscription { events(id: "1") { __typename id } }',
    'subscription { __typename events { id } }',
    'subscription { events { shared data { size } } }',
    'subscription { events { ... { id } ... on Event { type } ...Parts } } fragment Parts on Event { id }',
    'subscription { events { ...A ...A more { ...A } } } fragment A on Event { id }',
  ])('of the event alone is the same for everybody: %s', (text) => expect(isShared(text)).toBe(true));

  it.each([
    'subscription { events { id plain } }',
    'subscription { events { plain id } }',
    'subscription { events { id @include(if: true) } }',
    'subscription { events @skip(if: false) { id } }',
    'subscription { events { ... @include(if: true) { id } } }',
    'subscription { events { scaled(by: 2) } }',
    'subscription { events { scaled } }',
    'subscription { events { gated } }',
    'subscription { events { actor { id } } }',
    'subscription { events { data { size @include(if: true) } } }',
    'subscription { events { more { plain } } }',
    'subscription { events { either { ... on Actor { secret } } } }',
    'subscription { events { ...P } } fragment P on Event { id plain }',
    'subscription { events { ...Q } }',
    'subscription { events { ... on Either { __typename } } }',
    'subscription { events { unknown } }',
    'subscription { other { id } }',
    'subscription { time }',
    'query { unused }',
  ])('of anything that depends on the reader is not: %s', (text) => expect(isShared(text)).toBe(false));

  it('is that of the named operation', () => {
    const text = 'subscription A { events { id } } subscription B { events { plain } }';
    expect([isShared(text, 'A'), isShared(text, 'B'), isShared(text, 'C'), isShared(text)]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('needs a schema with subscriptions', () => {
    const other = buildSchema('type Query { a: Int }');
    expect(showsEventOnly(other, parse('subscription { a }'))).toBe(false);
  });
});

describe('a frame', () => {
  it('is one event of GraphQL over SSE, with its cursor if it has one', () => {
    const frame = new Frame({ data: { a: 'é\n' } }, 'evt_1');
    expect(frame.text).toBe('{"data":{"a":"é\\n"}}');
    expect(String(frame.serverSent)).toBe('event: next\nid: evt_1\ndata: {"data":{"a":"é\\n"}}\n\n');
    expect(String(new Frame({ data: null }, undefined).serverSent)).toBe('event: next\ndata: {"data":null}\n\n');
  });

  it('is serialised once', () => {
    let times = 0;
    const data = { toJSON: () => ++times };
    const frame = new Frame({ data: data as never }, undefined);
    expect([frame.text, frame.text]).toEqual(['{"data":1}', '{"data":1}']);
    expect(frame.serverSent).toBe(frame.serverSent);
  });
});

async function* listed(events: unknown[]) {
  yield* events;
}

interface Context {
  reader: string;
  asNobody?: () => object;
}

describe('a live stream', () => {
  const text = 'subscription { events { id } }';
  const start = (schema: GraphQLSchema, contextValue: Context, query = text) =>
    subscribeLive({ schema, document: parse(query), contextValue }, (result) => ({
      ...result,
      extensions: { masked: true },
    }));

  async function streamOf(schema: GraphQLSchema, context: Context, query?: string): Promise<LiveStream> {
    const stream = await start(schema, context, query);
    if (!(stream instanceof LiveStream)) throw new Error(JSON.stringify(stream));
    return stream;
  }

  it('gives the result of each event, and ends with them', async () => {
    const stream = await streamOf(
      eventSchema(() => listed([{ events: { id: '1' } }, { events: { id: '2' } }])),
      { reader: 'a' },
    );
    const results = [];
    for await (const result of stream) results.push(result);
    expect(results).toEqual([
      { data: { events: { id: '1' } }, extensions: { masked: true } },
      { data: { events: { id: '2' } }, extensions: { masked: true } },
    ]);
    expect(await stream.take()).toBeNull();
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it('that cannot start is one result', async () => {
    const schema = eventSchema(() => {
      throw new Error('no');
    });
    expect(await start(schema, { reader: 'a' })).toMatchObject({ errors: [{ message: 'no' }] });
  });

  it('gives each event the cursor that the source has for it', async () => {
    const source = Object.assign(listed([{ events: { id: '1' } }]), {
      cursorOf: (event: { events: { id: string } }) => `c${event.events.id}`,
    });
    const stream = await streamOf(
      eventSchema(() => source),
      { reader: 'a' },
    );
    expect((await stream.take())?.id).toBe('c1');
  });

  it('ends its source, also when it is told of an error', async () => {
    let ended = 0;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.resolve({ done: false, value: {} }),
        return: () => Promise.resolve({ done: true, value: ++ended }),
      }),
    };
    const stream = await streamOf(
      eventSchema(() => source as never),
      { reader: 'a' },
    );
    expect(await stream.return()).toEqual({ done: true, value: undefined });
    await expect(stream.throw(new Error('x'))).rejects.toThrow('x');
    expect(ended).toBe(2);
    const endless = await streamOf(
      eventSchema(() => ({ [Symbol.asyncIterator]: () => ({ next: () => null }) }) as never),
      {
        reader: 'a',
      },
    );
    expect(await endless.return()).toEqual({ done: true, value: undefined });
  });

  it('of a state is sent only when what is selected of it has changed', async () => {
    const events = ['1', '1', '2', '1'].map((id, at) => ({ events: { id, type: `${at}` } }));
    const open = async (text: string, showsChanges: boolean) => {
      const schema = eventSchema(() => listed(events));
      schema.getSubscriptionType()!.getFields().events!.extensions = { showsChanges };
      const args = { schema, document: parse(text), contextValue: {} };
      return (await subscribeLive(args, (result) => result)) as LiveStream;
    };
    const idsOf = async (stream: LiveStream) => {
      const ids: unknown[] = [];
      for await (const { data } of stream) ids.push((data!.events as { id: string }).id);
      return ids;
    };
    expect(await idsOf(await open('subscription { events { id } }', true))).toEqual(['1', '2', '1']);
    expect(await idsOf(await open('subscription { events { id type } }', true))).toEqual(['1', '1', '2', '1']);
    expect(await idsOf(await open('subscription { events { id } }', false))).toEqual(['1', '1', '2', '1']);
  });

  describe('that shows the event alone', () => {
    const event = { events: { id: '1' } };
    const reading = (events: unknown[], resolve?: (context: Context) => string) => {
      const schema = eventSchema(() => listed(events));
      const type = schema.getType('Event');
      if (resolve && isObjectType(type))
        type.getFields().id!.resolve = (_source, _args, context: Context) => resolve(context);
      return schema;
    };
    const nobody = { reader: 'nobody' };
    const shared = (reader: string): Context => ({ reader, asNobody: () => nobody });

    it('is executed once, for nobody, however many streams there are', async () => {
      const seen: string[] = [];
      const schema = reading([event], ({ reader }) => {
        seen.push(reader);
        return reader;
      });
      const document = parse(text);
      const open = async (reader: string) => {
        const stream = await subscribeLive({ schema, document, contextValue: shared(reader) }, (result) => result);
        return stream as LiveStream;
      };
      const [first, second] = [await open('a'), await open('b')];
      const frames = await Promise.all([first.take(), second.take()]);
      expect(frames[0]).toBe(frames[1]);
      expect(frames[0]?.result).toEqual({ data: { events: { id: 'nobody' } } });
      expect(await (await open('c')).take()).toBe(frames[0]);
      expect(seen).toEqual(['nobody']);
    });

    it('is executed for each reader where it fails for nobody', async () => {
      const schema = reading([event], ({ reader }) => {
        if (reader === 'nobody') throw new Error('who are you?');
        return reader;
      });
      const document = parse(text);
      for (const reader of ['a', 'b']) {
        const stream = await subscribeLive({ schema, document, contextValue: shared(reader) }, (result) => result);
        expect((await (stream as LiveStream).take())?.result).toEqual({ data: { events: { id: reader } } });
      }
    });

    it('is not shared where no context without a caller can be had, or for another operation', async () => {
      const own = await streamOf(
        reading([event], ({ reader }) => reader),
        { reader: 'a' },
      );
      expect((await own.take())?.result.data).toEqual({ events: { id: 'a' } });
      const document = parse(`subscription A { events { id } } subscription B { events { id plain } }`);
      const schema = reading([event], ({ reader }) => reader);
      const open = async (operationName: string) => {
        const args = { schema, document, operationName, contextValue: shared('a') };
        return (await ((await subscribeLive(args, (result) => result)) as LiveStream).take())?.result.data;
      };
      expect(await open('A')).toEqual({ events: { id: 'nobody' } });
      expect(await open('B')).toEqual({ events: { id: 'a', plain: null } });
    });

    it('is not shared where the event is no object', async () => {
      const stream = await streamOf(reading(['x']), shared('a'));
      expect((await stream.take())?.result).toMatchObject({ extensions: { masked: true } });
    });
  });
});

describe('a stream of a state', () => {
  it('begins with the state, and goes on after each event about it', async () => {
    const read = (event: number | null) => Promise.resolve(`after ${event}`);
    const stream = new StateStream(listed([1, 2, 3]) as AsyncGenerator<number>, (event) => event !== 2, read);
    const states: string[] = [];
    for await (const state of stream) states.push(state);
    expect(states).toEqual(['after null', 'after 1', 'after 3']);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it('does not send a state again that an event left as it was', async () => {
    const half = (event: number | null) => Promise.resolve(Math.floor((event ?? 0) / 2));
    const same = (before: number, after: number) => before === after;
    const events = listed([1, 2, 3, 4, 1]) as AsyncGenerator<number>;
    const states: number[] = [];
    for await (const state of new StateStream(events, () => true, half, same)) states.push(state);
    expect(states).toEqual([0, 1, 2, 0]);
  });

  it('ends its source', async () => {
    let ended = false;
    async function* events() {
      try {
        yield 1;
        yield 2;
      } finally {
        ended = true;
      }
    }
    const stream = new StateStream(
      events(),
      () => true,
      (event) => Promise.resolve(event),
    );
    await stream.next();
    await stream.next();
    expect(await stream.return()).toEqual({ done: true, value: undefined });
    expect(ended).toBe(true);
  });
});
