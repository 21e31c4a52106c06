import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EventStreams, formats, frameOf } from '../../rest/events.ts';
import { Frame, type Frames } from '../../src/engine/live/frames.ts';

const responses: ServerResponse[] = [];
afterEach(() => {
  for (const response of responses.splice(0)) response.emit('close');
});

/** A reply whose client reads everything, and what it has read. */
function replyOf(headers: Record<string, string> = {}) {
  let text = '';
  let isHijacked = false;
  const client = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += String(chunk);
      done();
    },
  });
  const raw = new ServerResponse(new IncomingMessage(new Socket()));
  raw.assignSocket(client as Socket);
  responses.push(raw);
  const reply = {
    raw,
    headers: (more: Record<string, string>) => Object.assign(headers, more),
    getHeaders: () => headers,
    hijack: () => (isHijacked = true),
  } as unknown as FastifyReply;
  return { reply, raw, text: () => text, isHijacked: () => isHijacked };
}

/** A source that a test feeds, and ends with `null`. */
function sourceOf() {
  const events = new PassThrough({ objectMode: true });
  const state = { isClosed: false };
  const frames: Frames = {
    take: async () =>
      new Promise((resolve, reject) => {
        events.once('data', (event: Frame | 'end' | Error) => {
          events.pause();
          if (event instanceof Error) reject(event);
          else resolve(event === 'end' ? null : event);
        });
        events.resume();
      }),
    return: async () => (state.isClosed = true),
  };
  return { frames, state, emit: (event: Frame | 'end' | Error) => events.write(event) };
}

const options = {
  status: 200,
  bytesOf: ({ text }: Frame) => Buffer.from(`data: ${text}\n\n`),
  farewell: (error: unknown) => Buffer.from(`event: error\ndata: ${(error as Error).message}\n\n`),
  onFault: () => undefined,
};
const turns = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
};
/** Whether it is over by now. */
const isOver = async (streams: EventStreams) => {
  let over = false;
  void streams.over().then(() => (over = true));
  await turns();
  return over;
};

describe('the event streams of a server', () => {
  it('are answered by the status and the headers of the reply, and begin with how soon to come again', async () => {
    const { reply, raw, text, isHijacked } = replyOf({ 'x-trace-id': 't1' });
    const { frames, emit } = sourceOf();
    expect(new EventStreams().send(reply, frames, { ...options, status: 203 })).toBe(reply);
    emit(new Frame({ data: { a: 1 } }, '1'));
    emit('end');
    await turns();
    expect([isHijacked(), raw.statusCode, raw.writableEnded]).toEqual([true, 203, true]);
    expect(text()).toMatch(/^HTTP\/1\.1 203 /);
    for (const line of [
      'x-trace-id: t1',
      'cache-control: no-cache, no-transform',
      'x-accel-buffering: no',
      'content-type: text/event-stream; charset=utf-8',
    ])
      expect(text()).toContain(`\r\n${line}\r\n`);
    expect(text()).toMatch(/\r\n\r\nretry: 3000\n\ndata: {"data":{"a":1}}\n\n$/);
  });

  it('say farewell when their source fails', async () => {
    const { reply, text } = replyOf();
    const { frames, emit } = sourceOf();
    new EventStreams().send(reply, frames, options);
    emit(new Error('it broke'));
    await turns();
    expect(text()).toContain('event: error\ndata: it broke\n\n');
  });

  it('keep an idle connection open by a comment', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { reply, raw, text } = replyOf();
      new EventStreams().send(reply, sourceOf().frames, options);
      await turns();
      vi.advanceTimersByTime(15_000);
      await turns();
      expect(text()).toMatch(/\n\n: ping\n\n$/);
      raw.emit('close');
    } finally {
      vi.useRealTimers();
    }
  });

  it('keep an idle connection of lines open by a blank, which no reader of JSON sees', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { reply, raw, text } = replyOf();
      const { frames, emit } = sourceOf();
      const bytesOf = ({ text: json }: Frame) => Buffer.from(`${json}\n`);
      new EventStreams().send(reply, frames, { ...options, bytesOf, format: formats.lines });
      const bodyOf = () => text().slice(text().indexOf('\r\n\r\n') + 4);
      for (const at of [1, 2]) {
        vi.advanceTimersByTime(15_000);
        await turns();
        emit(new Frame({ data: { at } }, undefined));
        await turns();
      }
      expect(bodyOf()).toMatch(/^ .+\n .+\n$/);
      const lines = bodyOf().trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([{ data: { at: 1 } }, { data: { at: 2 } }]);
      raw.emit('close');
    } finally {
      vi.useRealTimers();
    }
  });

  it('are over when the last of them is', async () => {
    const streams = new EventStreams();
    expect(await isOver(streams)).toBe(true);
    const [one, two] = [replyOf(), replyOf()];
    streams.send(one.reply, sourceOf().frames, options);
    streams.send(two.reply, sourceOf().frames, options);
    let over = false;
    void streams.over().then(() => (over = true));
    one.raw.emit('close');
    await turns();
    expect([over, await isOver(streams)]).toEqual([false, false]);
    two.raw.emit('close');
    await turns();
    expect([over, await isOver(streams)]).toEqual([true, true]);
  });

  it('do not wait for a client that had left before', async () => {
    const streams = new EventStreams();
    const { reply, raw } = replyOf();
    raw.destroy();
    await turns();
    const { frames, state } = sourceOf();
    streams.send(reply, frames, options);
    expect(await isOver(streams)).toBe(true);
    expect(state.isClosed).toBe(true);
  });

  it('all end when the server closes, after what has been written', async () => {
    const streams = new EventStreams();
    const [one, two] = [replyOf(), replyOf()];
    const first = sourceOf();
    streams.send(one.reply, first.frames, options);
    streams.send(two.reply, sourceOf().frames, options);
    first.emit(new Frame({ data: { last: 1 } }, '1'));
    await turns();
    streams.close();
    await turns();
    expect([one.raw.writableEnded, two.raw.writableEnded]).toEqual([true, true]);
    expect(one.text()).toContain('data: {"data":{"last":1}}\n\n');
  });
});

describe('a frame', () => {
  it('has an id and a name where the event has them', () => {
    expect(frameOf({ at: '7-1', type: 'made', a: 1 }, 'at')).toBe(
      'id: 7-1\nevent: made\ndata: {"type":"made","a":1}\n\n',
    );
    expect(frameOf({ at: 7, type: 8 }, 'at')).toBe('id: 7\nevent: 8\ndata: {"type":8}\n\n');
    expect(frameOf({ at: null, type: { a: 1 } }, 'at')).toBe('data: {"type":{"a":1}}\n\n');
    expect(frameOf({ a: 1 }, 'at')).toBe('data: {"a":1}\n\n');
  });

  it('keeps all of an event that has no id', () => {
    expect(frameOf({ at: '7-1', type: 'made' }, null)).toBe('event: made\ndata: {"at":"7-1","type":"made"}\n\n');
  });

  it('of what is no object is the value, and of nothing it is null', () => {
    expect(frameOf('text', 'at')).toBe('data: "text"\n\n');
    expect(frameOf([1, 2], null)).toBe('data: [1,2]\n\n');
    expect(frameOf(5, null)).toBe('data: 5\n\n');
    expect(frameOf(undefined, 'at')).toBe('data: null\n\n');
    expect(frameOf(null, null)).toBe('data: null\n\n');
  });

  it('has each value in its line', () => {
    expect(frameOf({ at: 'a\rb\nc\0d', type: 'e\n\nf' }, 'at')).toBe(
      'id: a b c d\nevent: e  f\ndata: {"type":"e\\n\\nf"}\n\n',
    );
  });
});
