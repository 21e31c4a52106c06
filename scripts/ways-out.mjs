// The ways out of the process: what a module can use to reach another machine, and which modules may.
import { parseSync } from '@swc/core';

/**
 * Modules that may use a way out themselves. All others call through `src/platform/outbound`.
 * `from`: how the path of the built module begins.
 */
const EXCEPTIONS = [
  { from: 'src/platform/outbound/', uses: ['undici', 'node:dns/promises'], why: 'the one outbound client' },
  { from: 'src/platform/mail/', uses: ['nodemailer'], why: 'the mail server that the operator names' },
  { from: 'src/platform/postgres/', uses: ['pg', '@prisma/adapter-pg'], why: 'the database that the operator names' },
  { from: 'src/platform/redis/', uses: ['ioredis'], why: 'the Redis that the operator names' },
  {
    from: 'src/platform/storage/',
    uses: ['flydrive', '@aws-sdk/client-s3'],
    why: 'the store for files that the operator names',
  },
  {
    from: 'src/knowledge/indexing/text/',
    uses: ['node:worker_threads', 'unpdf', 'mammoth', 'globalThis'],
    why: 'parsers of files, which get bytes and no address, in a process without an environment, and its guard',
  },
  {
    from: 'src/knowledge/indexing/text/text-extraction.',
    uses: ['node:child_process'],
    why: 'starts that process',
  },
  { from: 'src/data/sql.', uses: ['pg'], why: 'a prepared statement is a class of the driver, run by the pool' },
  { from: 'src/platform/threads/', uses: ['node:worker_threads'], why: 'expensive work in threads, which call nobody' },
  { from: 'src/platform/postgres/', uses: ['node:child_process', 'import()'], why: 'the embedded database' },
  {
    from: 'src/platform/folder-lock.',
    uses: ['node:child_process'],
    why: 'asks the system which process holds a lock',
  },
  {
    from: 'src/platform/nodes/work',
    uses: ['node:cluster'],
    why: 'the workers of a node, which share its socket; a process calls nobody by it',
  },
  { from: 'src/platform/v8.', uses: ['node:v8'], why: 'settings of the engine, which call nobody' },
  { from: 'src/tools/connections/oauth-provider.', uses: ['openid-client'], why: 'OAuth, through the outbound client' },
  {
    from: 'src/identity/oauth/',
    uses: ['oidc-provider'],
    why: 'answers OAuth; the function that it would call others with refuses',
  },
  {
    from: 'src/identity/factors/',
    uses: ['@simplewebauthn/server'],
    why: 'checks passkeys; it would ask the addresses in certificates, and is given none',
  },
  { from: 'src/identity/sso/oidc/', uses: ['openid-client'], why: 'OpenID Connect, through the outbound client' },
  {
    from: 'src/platform/tracing/',
    uses: ['@opentelemetry/exporter-trace-otlp-http', '@opentelemetry/exporter-trace-otlp-proto'],
    why: 'the collector of traces that the operator names',
  },
  { from: 'src/platform/jobs/', uses: ['graphile-worker'], why: 'runs over the pool of the database' },
];

/** Modules of Node that reach nobody. What is on no list here is a way out. */
const HARMLESS_BUILTINS = new Set(
  (
    'assert async_hooks buffer crypto diagnostics_channel events fs fs/promises os path perf_hooks process stream ' +
    'stream/promises string_decoder timers timers/promises url util zlib'
  )
    .split(' ')
    .map((name) => `node:${name}`),
);

/** Packages that reach nobody by themselves. A new one goes here only after a look at what it can call. */
const HARMLESS_PACKAGES = new Set([
  '@modelcontextprotocol/server', // answers what it is given
  '@node-saml/node-saml', // writes and reads messages, and sends none
  '@fastify/cors',
  '@fastify/busboy', // reads the parts of forms
  '@fastify/swagger',
  '@fastify/swagger-ui',
  '@fastify/websocket',
  '@graphql-yoga/render-graphiql',
  '@node-rs/argon2',
  '@opentelemetry/api', // records nothing by itself
  '@opentelemetry/core',
  '@opentelemetry/resources', // reads variables
  '@opentelemetry/sdk-trace-base', // sends through the exporter that it is given
  '@pothos/core',
  '@pothos/plugin-prisma',
  '@zxcvbn-ts/language-common',
  'ajv', // loads schemas only through a function that it is given
  'croner', // computes times
  'dataloader',
  'fastify',
  'file-type', // looks at the bytes that it is given
  'gpt-tokenizer',
  'eld',
  'graphql',
  'graphql-ws',
  'graphql-yoga',
  'helmet',
  'htmlparser2',
  'ipaddr.js',
  'lru-cache',
  'otpauth', // computes codes
  'pino',
  'prom-client',
  'qr', // draws
  'rate-limiter-flexible',
  're2js',
  'uuidv7',
  'yaml', // parses texts
  'zod',
]);

/** Names that reach nobody, of modules that are ways out otherwise. */
const HARMLESS_NAMES = new Map([
  ['node:http', ['STATUS_CODES', 'METHODS']],
  ['node:net', ['BlockList', 'isIP', 'isIPv4', 'isIPv6', 'Server']],
  // not createRemoteJWKSet, which fetches
  [
    'jose',
    [
      'compactVerify',
      'createLocalJWKSet',
      'decodeJwt',
      'decodeProtectedHeader',
      'errors',
      'exportJWK',
      'generateKeyPair',
      'importJWK',
      'jwtVerify',
      'SignJWT',
    ],
  ],
]);

/** Globals that reach out, and those through which they can be had. */
const GLOBALS = new Set(
  'fetch WebSocket EventSource XMLHttpRequest globalThis global require eval Function'.split(' '),
);
/** Properties that give any module of Node. */
const PROPERTIES = new Set(['getBuiltinModule', 'binding', '_linkedBinding', 'createRequire']);

/**
 * The ways out that a module uses, whether it may or not.
 * @param {string} code JavaScript
 * @returns {Set<string>} names of modules and globals; `import()` for an import whose name is computed
 */
export function waysOut(code) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {unknown} value */
  const visit = (value) => {
    if (value === null || typeof value !== 'object') return;
    const way = 'type' in value ? wayOf(/** @type {Relevant} */ (value)) : null;
    if (way !== null) found.add(way);
    for (const child of Object.values(value)) visit(child);
  };
  visit(parseSync(code, { syntax: 'ecmascript', target: 'es2022' }).body);
  return found;
}

/**
 * The nodes of a syntax tree that can be a way out.
 * @typedef {import('@swc/core').ImportDeclaration | import('@swc/core').ExportAllDeclaration |
 *   import('@swc/core').ExportNamedDeclaration | import('@swc/core').CallExpression |
 *   import('@swc/core').Identifier} Relevant
 */

/**
 * @param {Relevant} node
 * @returns {string | null}
 */
function wayOf(node) {
  if (node.type === 'ImportDeclaration') return moduleOut(node.source.value, node.specifiers.map(importedName));
  if (node.type === 'ExportAllDeclaration') return moduleOut(node.source.value, ['*']);
  if (node.type === 'ExportNamedDeclaration')
    return node.source ? moduleOut(node.source.value, node.specifiers.map(exportedName)) : null;
  if (node.type === 'CallExpression') {
    if (node.callee.type !== 'Import') return null;
    const name = node.arguments[0]?.expression;
    return name?.type === 'StringLiteral' ? moduleOut(name.value, ['*']) : 'import()';
  }
  if (node.type !== 'Identifier') return null;
  // the parser gives `optional` to what names a variable, and not to names of properties
  return ('optional' in node ? GLOBALS : PROPERTIES).has(node.value) ? node.value : null;
}

/**
 * @param {string} source of an import
 * @param {string[]} names what is imported; `*` = everything
 * @returns {string | null} the module, if this import is a way out
 */
function moduleOut(source, names) {
  if (/^[./]/.test(source)) return null;
  const [scope = '', name = ''] = source.split('/');
  const module = source.startsWith('node:') ? source : scope.startsWith('@') ? `${scope}/${name}` : scope;
  if (HARMLESS_BUILTINS.has(module) || HARMLESS_PACKAGES.has(module)) return null;
  const harmless = HARMLESS_NAMES.get(module) ?? [];
  return names.length > 0 && names.every((imported) => harmless.includes(imported)) ? null : module;
}

/**
 * @param {import('@swc/core').ImportSpecifier} specifier
 * @returns {string}
 */
const importedName = (specifier) =>
  specifier.type === 'ImportSpecifier' ? (specifier.imported ?? specifier.local).value : '*';

/**
 * @param {import('@swc/core').ExportSpecifier} specifier
 * @returns {string}
 */
const exportedName = (specifier) => (specifier.type === 'ExportSpecifier' ? specifier.orig.value : '*');

/**
 * What is wrong with the ways out of the built modules.
 * @param {{ path: string, code: string }[]} modules paths like `src/platform/mail/mail.js`
 * @returns {string[]} modules that use a way out and may not, and exceptions that nobody uses
 */
export function forbiddenWaysOut(modules) {
  const unused = new Set(EXCEPTIONS.flatMap(({ from, uses }) => uses.map((use) => `${from} ${use}`)));
  const forbidden = modules.flatMap(({ path, code }) =>
    [...waysOut(code)]
      .filter((way) => {
        const exception = EXCEPTIONS.find(({ from, uses }) => path.startsWith(from) && uses.includes(way));
        if (exception) unused.delete(`${exception.from} ${way}`);
        return !exception;
      })
      .map((way) => `no-other-way-out: ${path} uses ${way}; calls go through src/platform/outbound`),
  );
  return [...forbidden, ...[...unused].map((exception) => `exception of ways-out.mjs that nobody uses: ${exception}`)];
}
