import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyPluginAsync } from 'fastify';
import type { OpenApiDocument } from './openapi.ts';

export interface DocsOptions {
  title: string;
  /** Asked for when somebody reads it: most starts make none. */
  document: () => OpenApiDocument;
}

/** The product's logo, and the logo with its name beside it. */
const mark =
  '<rect width="40" height="40" rx="9" fill="#0b5cad"/><path d="M20 7 33 14 20 21 7 14Z" fill="#fff"/>' +
  '<path d="M7 20l13 7 13-7M7 26l13 7 13-7" fill="none" stroke="#9cc9ff" stroke-width="2.6" stroke-linejoin="round"/>';
const svg = (width: number, content: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="40" viewBox="0 0 ${width} 40">${content}</svg>`;
const escaped = (text: string) => text.replace(/[<&]/g, (sign) => (sign === '<' ? '&lt;' : '&amp;'));
const wordmark = 'font-family="system-ui, sans-serif" font-size="20" font-weight="600" fill="#fff"';
const logo = (title: string) =>
  svg(
    56 + title.length * 11,
    `${mark}<text x="52" y="27" textLength="${title.length * 11}" lengthAdjust="spacingAndGlyphs" ${wordmark}>` +
      `${escaped(title)}</text>`,
  );

/** Long paths wrap, so that a phone shows all of them. */
const css = `
.swagger-ui .topbar { background: #10273d; }
.swagger-ui .opblock-summary-path { word-break: break-word; }
@media (max-width: 640px) {
  .swagger-ui .topbar .download-url-wrapper { display: none; }
  .swagger-ui .wrapper { padding: 0 10px; }
  .swagger-ui .opblock-tag { flex-wrap: wrap; }
  .swagger-ui .opblock-tag small { flex: 1 0 calc(100% - 4rem); padding: 0; }
  .swagger-ui .opblock-tag a { flex: 1 0 100%; }
}
`;

/**
 * Serves `/openapi.json`, serialised once, and the API reference at `/docs/api`, which loads nothing from other hosts.
 */
export const docsPlugin: FastifyPluginAsync<DocsOptions> = async (server, { title, document }) => {
  let text: string | undefined;
  server.get('/openapi.json', { config: { isPublic: true } }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send((text ??= JSON.stringify(document()))),
  );
  // it is written as JSON or YAML, by nothing but this
  const specification = { document: { toJSON: document } as never };
  await server.register(swagger, { mode: 'static', specification });
  await server.register(swaggerUi, {
    routePrefix: '/docs/api',
    uiConfig: { docExpansion: 'none', deepLinking: true, validatorUrl: null },
    logo: { type: 'image/svg+xml', content: logo(title) },
    theme: {
      title: `${title}: reference`,
      favicon: [{ filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: svg(40, mark) }],
      css: [{ filename: 'reference.css', content: css }],
    },
    staticCSP: true,
    // its own policy allows other hosts, and would break plain HTTP
    transformStaticCSP: (policy) =>
      policy.replace(/ (?:https:|validator\.swagger\.io)(?=[ ;])/g, '').replace(/ ?upgrade-insecure-requests;/, ''),
  });
};
