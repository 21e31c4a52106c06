import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Account } from '../api.ts';
import { reportAttack } from '../beside.ts';
import type { Rounds } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';

const PINGS = '50,000 pings with payload';
const PAIRS = '2,000 subscribe and complete';
const SOCKETS = 5;
/** Messages that are written before the event loop has a look at what came back. */
const AT_ONCE = 500;

const ping = () => JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(300) } });
const pair = (n: number) => [
  JSON.stringify({ type: 'subscribe', id: String(n), payload: { query: '{ me { id } }' } }),
  JSON.stringify({ type: 'complete', id: String(n) }),
];

/** The messages of one socket. */
export const messagesOf = (what: string): string[] =>
  what === PINGS ? Array.from({ length: 50_000 }, ping) : Array.from({ length: 2_000 }, (_, n) => pair(n)).flat();

/**
 * What the messages of one user's sockets do to the requests of another one. The service closes such a socket (4429),
 * and a new one is opened at once. `BENCH_ONLY=hostile npm run bench` has it.
 */
export async function hostileSockets(
  product: ServerProcess,
  [attacker, account]: readonly [Account, Account],
  rounds: Rounds,
): Promise<void> {
  for (const inFlight of [1, SOCKETS])
    for (const of of [PINGS, PAIRS]) {
      const title = `${of} on ${inFlight} socket${inFlight > 1 ? 's' : ''}`;
      const victim = { product, account, path: '/v1/auth/me', rounds };
      await reportAttack(title, victim, attacker, { what: 'messages', of, inFlight });
    }
}

/** Sends messages until the service closes the socket. @returns the code */
export async function flood(
  { url }: Pick<ServerProcess, 'url'>,
  { token }: Account,
  messages: readonly string[],
): Promise<number> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/graphql`, GRAPHQL_TRANSPORT_WS_PROTOCOL);
  const closed = once(socket, 'close') as Promise<[number]>;
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await Promise.race([once(socket, 'message'), closed]);
  for (const [n, message] of messages.entries()) {
    if (socket.readyState !== WebSocket.OPEN) break;
    socket.send(message);
    if (n % AT_ONCE === 0) await setImmediate();
  }
  socket.close();
  const [code] = await closed;
  return code;
}
