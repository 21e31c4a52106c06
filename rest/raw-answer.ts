import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** An answer as it goes over the wire. */
interface SerializedResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Becomes JSON. */
  body: object;
}

/** Writes an answer to a connection without a parsed request, and ends the connection. */
export function writeAnswer(socket: Duplex, { status, headers, body }: SerializedResponse): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const text = JSON.stringify(body);
  const all = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${text}`);
}
