import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { certificate } from './certificate.ts';

/** A server that a test calls. */
export interface TargetServer {
  port: number;
  /** Connections that it saw. */
  connections: number;
  /** How many of them are open. */
  open: () => number;
  /** Closes those that are open, and takes others. */
  cut: () => void;
  /** Requests that it got, in order. */
  requests: { method: string; path: string; headers: http.IncomingHttpHeaders; body: string }[];
  close(): Promise<void>;
}

/** Answers the requests that a target gets. */
export type Answering = (request: http.IncomingMessage, response: http.ServerResponse, body: string) => unknown;

/** An HTTP server on 127.0.0.1 and a free port, or elsewhere, or with TLS and the tests' certificate. */
export async function startTarget(
  answer: Answering,
  { isSecure = false, host = '127.0.0.1', port = 0 } = {},
): Promise<TargetServer> {
  const target: Seen = { connections: 0, requests: [] };
  const receive: (...given: Parameters<http.RequestListener>) => Promise<void> = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    target.requests.push({ method: request.method!, path: request.url!, headers: request.headers, body });
    await answer(request, response, body);
  };
  const onRequest: http.RequestListener = (request, response) => void receive(request, response);
  const server = isSecure ? https.createServer(certificate, onRequest) : http.createServer(onRequest);
  return listening(server, target, host, port);
}

/** A server that does with each connection what the test says, below HTTP. */
export async function startRawTarget(onConnection: (socket: net.Socket) => void): Promise<TargetServer> {
  return listening(net.createServer(onConnection), { connections: 0, requests: [] });
}

/** What a server has seen. */
type Seen = Pick<TargetServer, 'connections' | 'requests'>;

async function listening(server: net.Server, target: Seen, host = '127.0.0.1', port = 0): Promise<TargetServer> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket) => {
    target.connections += 1;
    sockets.add(socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)));
  });
  server.listen(port, host);
  await once(server, 'listening');
  return Object.assign(target, {
    port: (server.address() as AddressInfo).port,
    open: () => sockets.size,
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  });
}
