/**
 * The arrows of the house: who may import whom. `npm run arrows` holds them.
 *
 * `imports` counts every import, of types too, and reads the sources. `runtime` counts what is left when types are erased, and reads the
 * build: the parser that understands TypeScript 7's sources does not tell the two apart.
 */

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
export const imports = [
  {
    name: 'facade-knows-the-schema-only',
    comment: 'rest/ reaches the product through GraphQL documents, never through a service: one path of authorization.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^src/', pathNot: '^src/graphql/(errors|constraints|json-shape)\\.ts$' },
  },
  {
    name: 'facade-libraries',
    comment: 'rest/ needs GraphQL and the HTTP server, nothing that talks to the outside.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^node_modules/', pathNot: '^node_modules/(graphql|graphql-jit|fastify|@fastify/[^/]+)/' },
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
    name: 'graph-files-drive-no-database',
    severity: 'error',
    from: { path: '\\.graph\\.ts$' },
    to: { path: ['^node_modules/(pg|@prisma)/', '^src/infra/(database|sql)\\.ts$'] },
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
    name: 'infra-knows-no-resource',
    comment:
      'Resources build on infra/ and access/, never the other way round. The catalogue of errors is everybody’s.',
    severity: 'error',
    from: { path: '^dist/src/infra/' },
    to: { path: '^dist/', pathNot: '^dist/src/(infra/|generated/|config\\.js|paths\\.js|graphql/errors\\.js)' },
  },
  {
    name: 'access-knows-no-resource',
    severity: 'error',
    from: { path: '^dist/src/access/' },
    to: {
      path: '^dist/',
      pathNot:
        '^dist/src/(access/|infra/|generated/|config\\.js|paths\\.js|graphql/(errors|constraints|json-shape)\\.js)',
    },
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
  parser: 'swc', // the default parser needs an API that TypeScript 7 lacks: it would read nothing and find nothing wrong
  doNotFollow: { path: '^node_modules' },
  exclude: { path: '^(src|rest)/generated/' },
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['import', 'node', 'default', 'types'],
    extensions: ['.ts', '.js', '.mjs', '.json'],
  },
};
