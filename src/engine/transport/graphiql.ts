import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { prefersHtml } from './answer-type.ts';

const QUERY = `# Who am I, and what is mine? Put your access token in the "Headers" tab below, then press the button.
query Welcome {
  me {
    id
    username
    organizations {
      nodes {
        id
        name
        role
        workspaces(first: 5) {
          nodes {
            id
            name
          }
        }
      }
    }
  }
}
`;

const HEADERS = JSON.stringify({ authorization: 'Bearer <access token>' }, null, 2);

interface GraphiqlPage {
  /** Compressed once: it is several megabytes, and the same for everybody. */
  gzipped: Buffer;
  plain: Buffer;
  policy: string;
}

/** Only the page's own script runs, its editor's workers are blobs, and it connects only to this service. */
const policyOf = (script: string) =>
  [
    "default-src 'none'",
    `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

async function makePage(): Promise<GraphiqlPage> {
  // as text it takes 35 MiB of memory, and it may never be requested
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const html = renderGraphiQL({
    title: 'Platform management',
    defaultQuery: QUERY,
    defaultHeaders: HEADERS,
    headers: HEADERS,
    defaultEditorToolsVisibility: 'headers',
    isHeadersEditorEnabled: true,
  }).trimStart();
  // the page's only script: other such tags in the text are strings inside its JavaScript
  const script = html.slice(html.indexOf('<script>') + '<script>'.length, html.lastIndexOf('</script>'));
  const plain = Buffer.from(html);
  return { plain, gzipped: await promisify(gzip)(plain), policy: policyOf(script) };
}

/** Whether a browser requests the page, rather than a client an answer. */
export const wantsPage = ({ method, headers }: FastifyRequest): boolean =>
  method === 'GET' && prefersHtml(headers.accept ?? '');

/** GraphiQL with all its assets: it loads nothing from other hosts. */
export function graphiqlPage(): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  let page: Promise<GraphiqlPage> | undefined;
  return async (request, reply) => {
    page ??= makePage();
    const { plain, gzipped, policy } = await page;
    const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
    reply.headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer', vary: 'accept-encoding' });
    if (isGzipped) reply.header('content-encoding', 'gzip');
    return reply.type('text/html; charset=utf-8').send(isGzipped ? gzipped : plain);
  };
}
