/**
 * The import rules: which modules may import which. `npm run arrows` checks them.
 *
 * `imports` counts every import, type imports included, and reads the sources. `runtime` counts the imports that remain
 * when types are erased, and reads the build: the parser for TypeScript 7's sources does not distinguish the two.
 */

/** What declares GraphQL types: it delegates to services and holds no rules. */
const GRAPH = '\\.(graph|inputs|args)\\.ts$';
/** The folders of resources. */
const RESOURCES = '^src/(?!core/|data/|access/|platform/|graphql/|http/|generated/)[^/]+/';

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
export const imports = [
  {
    name: 'facade-knows-the-schema-only',
    comment: 'rest/ reaches the product through GraphQL documents, never through a service: one path of authorization.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^src/', pathNot: '^src/core/' },
  },
  {
    name: 'facade-libraries',
    comment: 'rest/ needs GraphQL and the HTTP server, nothing that talks to the outside.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^node_modules/', pathNot: '^node_modules/(graphql|fastify|@fastify/[^/]+)/' },
  },
  {
    name: 'only-the-app-mounts-the-facade',
    severity: 'error',
    from: { path: '^src/', pathNot: '^src/app\\.ts$' },
    to: { path: '^rest/' },
  },
  {
    name: 'product-knows-no-test',
    severity: 'error',
    from: { path: '^(src|rest)/' },
    to: { path: '^(test|bench|scripts)/|^codegen\\.ts$' },
  },
  {
    name: 'no-long-circles',
    comment: 'Two files that name each other’s types can be read together; a longer circle has no beginning.',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'services-know-no-graphql',
    comment: 'The rules of a resource do not depend on how they are asked for, types included.',
    severity: 'error',
    from: { path: RESOURCES, pathNot: GRAPH },
    to: { path: ['^src/(graphql|http)/', GRAPH, '^node_modules/(@pothos|graphql-yoga|fastify)/'] },
  },
  {
    name: 'core-imports-nothing',
    severity: 'error',
    from: { path: '^src/core/' },
    to: { path: '^(src|rest)/', pathNot: '^src/core/' },
  },
  {
    name: 'data-knows-no-resource',
    severity: 'error',
    from: { path: '^src/data/' },
    to: { path: '^(src|rest)/', pathNot: '^src/(core|data|access|platform/postgres|generated)/' },
  },
  {
    name: 'access-knows-no-resource',
    severity: 'error',
    from: { path: '^src/access/' },
    to: { path: '^(src|rest)/', pathNot: '^src/(core|data|access|platform|generated)/|^src/config\\.ts$' },
  },
  {
    name: 'platform-knows-no-product',
    comment: 'What talks to the outside knows neither resources nor who asks.',
    severity: 'error',
    from: { path: '^src/platform/' },
    to: { path: '^(src|rest)/', pathNot: '^src/(core|data|platform|generated)/|^src/(config|setting|paths)\\.ts$' },
  },
  {
    name: 'graphql-knows-no-resource',
    comment: 'The builder and its plugins serve every resource; `schema.ts` alone collects them.',
    severity: 'error',
    from: { path: '^src/graphql/', pathNot: '^src/graphql/(schema|context)\\.ts$' },
    to: { path: RESOURCES },
  },
  {
    name: 'only-the-gate-marks-places',
    comment: 'What takes a checked place can trust it.',
    severity: 'error',
    from: { path: '^(src|rest)/', pathNot: '^src/(access/|graphql/row-places\\.ts$)' },
    to: { path: '^src/access/mark-checked\\.ts$' },
  },
  {
    name: 'only-the-wiring-makes-services',
    comment: 'Everything else takes what it needs as types.',
    severity: 'error',
    from: { path: RESOURCES },
    to: { path: '^src/(services|runtime|app|main)\\.ts$' },
  },
  {
    name: 'graph-files-drive-no-database',
    severity: 'error',
    from: { path: GRAPH },
    to: { path: ['^node_modules/(pg|@prisma)/', '^src/(platform/postgres/|data/sql\\.ts$)'] },
  },
];

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
export const runtime = [
  { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  {
    name: 'graph-files-hold-no-client',
    comment: 'A .graph.ts may name the types of Prisma, and nothing else of it.',
    severity: 'error',
    from: { path: '\\.graph\\.js$' },
    to: { path: '^dist/src/generated/' },
  },
  {
    name: 'no-development-packages',
    comment: 'What runs in production is a dependency, not a development dependency.',
    severity: 'error',
    from: {},
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  },
];

/** @type {import('dependency-cruiser').ICruiseOptions} */
export const options = {
  // the default parser needs an API that TypeScript 7 lacks: it would read nothing and report nothing
  parser: 'swc',
  doNotFollow: { path: '^node_modules' },
  exclude: { path: '^(src|rest)/generated/' },
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['import', 'node', 'default', 'types'],
    extensions: ['.ts', '.js', '.mjs', '.json'],
  },
};
