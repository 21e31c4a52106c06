import { get, type IncomingMessage, request } from 'node:http';
import { WebSocket } from 'ws';

/** An open stream. Counts what arrives and keeps only the last text. */
export interface Reader {
  count: number;
  last: string;
  close(): void;
}

export type Open = () => Promise<Reader>;

/** An open stream that says when its last event came, and may stop reading. */
export interface LiveReader extends Reader {
  /** Time of the last event, from `performance.now()`. */
  at: number;
  stall(): void;
}

export type OpenLive = () => Promise<LiveReader>;

const CONNECTING = 50;

/** Opens many readers, a few at a time. */
export async function openAll<R extends Reader>(opens: readonly (() => Promise<R>)[]): Promise<R[]> {
  const readers: R[] = [];
  for (let at = 0; at < opens.length; at += CONNECTING)
    readers.push(...(await Promise.all(opens.slice(at, at + CONNECTING).map((open) => open()))));
  return readers;
}

/** A subscription over WebSocket. Counts the `next` messages. */
export const subscribeWs = (url: string, token: string, query: string, id: string): Open =>
  reader(
    `${url.replace('http', 'ws')}/graphql`,
    (socket, text, last) => {
      if (text.startsWith('{"type":"connection_ack"'))
        socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }));
      else if (text.includes('"type":"next"')) return true;
      else if (!text.includes('"type":"p')) throw new Error(`${text} after ${last}`);
      return false;
    },
    (socket) => socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
  );

/** A bare WebSocket. Counts every message. */
export const listenWs = (url: string): Open =>
  reader(
    `${url.replace('http', 'ws')}/websocket`,
    () => true,
    () => undefined,
  );

function reader(
  url: string,
  isCounted: (socket: WebSocket, text: string, last: string) => boolean,
  onOpen: (socket: WebSocket) => void,
): Open {
  return () =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(url, 'graphql-transport-ws', { perMessageDeflate: false });
      const self: Reader = { count: 0, last: '', close: () => socket.terminate() };
      socket.on('message', (data: Buffer) => {
        const text = data.toString();
        if (!isCounted(socket, text, self.last)) return;
        self.count++;
        self.last = text;
      });
      socket.once('error', reject);
      socket.once('close', (code, reason) => reject(new Error(`closed: ${code} ${String(reason)}`)));
      socket.once('open', () => {
        onOpen(socket);
        resolve(self);
      });
    });
}

/** A subscription over SSE. Counts the `next` events. */
export const subscribeSse = (url: string, token: string, query: string): Open =>
  sse(
    (onAnswer) =>
      request(
        `${url}/graphql`,
        {
          method: 'POST',
          agent: false,
          headers: {
            'content-type': 'application/json',
            accept: 'text/event-stream',
            authorization: `Bearer ${token}`,
          },
        },
        onAnswer,
      ).end(JSON.stringify({ query })),
    'event: next',
  );

/** The stream of REST. Counts the events of its workspace. */
export const watchRest = (url: string, token: string): OpenLive =>
  sse(
    (onAnswer) => get(url, { agent: false, headers: { authorization: `Bearer ${token}` } }, onAnswer),
    /event: (?:thread\.created|workspace\.updated)/,
  );

/** A bare SSE connection that counts the same. */
export const watchBare = (url: string): OpenLive =>
  sse((onAnswer) => get(`${url}/sse`, { agent: false }, onAnswer), 'event: thread.created');

/** A bare SSE connection. Counts the same as for the product. */
export const listenSse = (url: string): Open =>
  sse((onAnswer) => get(`${url}/sse`, { agent: false }, onAnswer), 'event: next');

function sse(
  open: (onAnswer: (answer: IncomingMessage) => void) => {
    on(name: 'error', f: (error: Error) => void): void;
    destroy(): void;
  },
  mark: string | RegExp,
): OpenLive {
  return () =>
    new Promise((resolve, reject) => {
      const sent = open((answer) => {
        if (answer.statusCode !== 200) return reject(new Error(`${answer.statusCode}`));
        answer.setEncoding('utf8');
        self.stall = () => answer.pause();
        answer.on('data', (text: string) => {
          if (text.includes('"errors"')) reject(new Error(text));
          const more = text.split(mark).length - 1;
          self.count += more;
          if (more > 0) self.at = performance.now();
          self.last = text;
          resolve(self);
        });
      });
      const self: LiveReader = {
        count: 0,
        last: '',
        at: 0,
        stall: () => undefined,
        close: () => sent.destroy(),
      };
      sent.on('error', reject);
    });
}
