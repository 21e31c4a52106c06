import type { IncomingMessage, ServerResponse } from 'node:http';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { certificate } from '../../support/certificate.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { CALLBACK } from './oauth-browser.ts';

type Reply = (response: ServerResponse, request: IncomingMessage) => unknown;

/** Servers of documents: many hosts at one port, because what is fetched from one host in a minute is limited. */
export interface DocumentHost {
  app: TestApp;
  target: TargetServer;
  /** The environment of a node that knows these hosts. */
  env: Record<string, string>;
  /** The address of a document at a host of its own, which answers with it. */
  publish(change?: Record<string, unknown>, headers?: Record<string, string>): string;
  /** The same for what is no such document. */
  serve(reply: Reply): string;
  /** From now on, an address answers otherwise. */
  change(clientId: string, reply: Reply): void;
  /** How often an address was asked. */
  asked(clientId: string): number;
  /** A client address of the network that nobody has used, for the budget of each. */
  from(): Record<string, string>;
  close(): Promise<void>;
}

const HOSTS = 130;
const json = (headers: Record<string, string> = {}) => ({ 'content-type': 'application/json', ...headers });

export const documentOf = (clientId: string, change: Record<string, unknown> = {}): string =>
  JSON.stringify({
    client_id: clientId,
    client_name: 'Helper',
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: 'none',
    ...change,
  });

export const answering =
  (text: string, headers: Record<string, string> = {}, status = 200): Reply =>
  (response) =>
    response.writeHead(status, json(headers)).end(text);

export async function startDocumentHost(): Promise<DocumentHost> {
  const replies = new Map<string, Reply>();
  const keyOf = (url: string) => url.slice('https://'.length);
  const target = await startTarget(
    (request, response) => {
      const reply = replies.get(`${request.headers.host}${request.url}`);
      return reply ? reply(response, request) : response.writeHead(404).end();
    },
    { isSecure: true },
  );
  const hosts = Array.from({ length: HOSTS }, (_, index) => `h${index}.good.test:${target.port}`);
  const env = {
    OAUTH_CLIENT_HOSTS: ['*', ...hosts].join(),
    OUTBOUND_ALLOW: `127.0.0.1:${target.port}`,
    TRUSTED_PROXIES: '127.0.0.1',
  };
  const names = { addresses: async (host: string) => [host.startsWith('inside') ? '10.0.0.7' : '127.0.0.1'] };
  const app = await startTestApp({ env, outbound: { ca: certificate.cert, names } });
  await app.listen();
  let used = 0;
  let clients = 0;
  const next = () => {
    if (used === hosts.length) throw new Error('There are too few hosts.');
    return `https://${hosts[used++]}/client.json`;
  };
  const change: DocumentHost['change'] = (clientId, reply) => void replies.set(keyOf(clientId), reply);
  return {
    app,
    target,
    env,
    change,
    publish(fields = {}, headers = {}) {
      const clientId = next();
      change(clientId, answering(documentOf(clientId, fields), headers));
      return clientId;
    },
    serve(reply) {
      const clientId = next();
      change(clientId, reply);
      return clientId;
    },
    asked: (clientId) =>
      target.requests.filter(({ headers, path }) => `${headers.host}${path}` === keyOf(clientId)).length,
    from: () => ({ 'x-forwarded-for': `203.0.113.${(clients += 1)}` }),
    async close() {
      await app.close();
      await target.close();
    },
  };
}
