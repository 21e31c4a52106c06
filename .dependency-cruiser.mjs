/**
 * The import rules: which modules may import which. `npm run arrows` checks them.
 *
 * `imports` counts every import, type imports included, and reads the sources. `runtime` counts the imports that remain
 * when types are erased, and reads the build: the parser for TypeScript 7's sources does not distinguish the two.
 */

/** What declares GraphQL types: it delegates to services and holds no rules. */
const GRAPH = '\\.(graph|inputs|args|enums)\\.ts$';
/**
 * The ground and the groups on it, from the lowest level to the highest. A folder imports those of lower levels: not
 * those above it, and not others of its own level. What a lower one must cause in a higher one goes through a hook that
 * the lower one declares and the wiring collects (`src/tenancy/removals.ts`, tasks, retention).
 */
export const LEVELS = [
  ['kernel'],
  ['platform'],
  ['data'],
  ['access'],
  ['graphql'],
  ['engine'],
  ['tenancy'],
  ['vault'],
  ['identity', 'tools', 'knowledge', 'models', 'delivery'],
  ['pipelines'],
  ['insight', 'live'],
  ['wiring', 'http', 'mcp'],
];
/** The folders of resources. */
export const GROUPS = LEVELS.slice(
  LEVELS.findIndex((units) => units.includes('tenancy')),
  LEVELS.findIndex((units) => units.includes('wiring')),
).flat();
/** Files beside the folders that anybody may import: they import the kernel and the platform. */
export const ROOT_FILES = ['config', 'setting', 'paths', 'shutdown', 'start-fault'];
const RESOURCES = `^src/(${GROUPS.join('|')})/`;

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const upwards = LEVELS.flatMap((units, level) =>
  units.map((unit) => ({
    name: 'one-way',
    comment: 'Arrows between folders go one way, types included: see LEVELS.',
    severity: 'error',
    from: { path: `^src/${unit}/` },
    to: {
      path: `^src/(${LEVELS.slice(level)
        .flat()
        .filter((other) => other !== unit)
        .concat('app\\.ts$', 'main\\.ts$', 'commands')
        .map((other) => (other.endsWith('$') ? other : `${other}/`))
        .join('|')})`,
    },
  })),
);

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
export const imports = [
  ...upwards,
  {
    name: 'facade-knows-the-schema-only',
    comment: 'rest/ reaches the product through GraphQL documents, never through a service: one path of authorization.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^src/', pathNot: '^src/(kernel|engine/(execution|live))/' },
  },
  {
    name: 'facade-libraries',
    comment: 'rest/ needs GraphQL and the HTTP server, nothing that talks to the outside.',
    severity: 'error',
    from: { path: '^rest/' },
    to: { path: '^node_modules/', pathNot: '^node_modules/(graphql|fastify|@fastify/[^/]+)/' },
  },
  {
    name: 'mcp-knows-the-schema-only',
    comment: 'src/mcp reaches the product through GraphQL documents too, with the rights of its caller.',
    severity: 'error',
    from: { path: '^src/mcp/' },
    to: { path: RESOURCES },
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
    name: 'no-circles',
    comment: 'A circle has no beginning, types included.',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'services-know-no-graphql',
    comment: 'The rules of a resource do not depend on how they are asked for, types included.',
    severity: 'error',
    from: { path: RESOURCES, pathNot: GRAPH },
    to: { path: ['^src/(graphql|engine|http)/', GRAPH, '^node_modules/(@pothos|graphql-yoga|fastify)/'] },
  },
  {
    name: 'plans-and-streams-know-the-kernel-only',
    comment: 'What runs queries and sends streams is of GraphQL, not of this product; the façade uses it too.',
    severity: 'error',
    from: { path: '^src/engine/(execution|live)/' },
    to: { path: '^(src|rest)/', pathNot: '^src/(kernel|engine/(execution|live))/' },
  },
  {
    name: 'data-needs-the-database-only',
    severity: 'error',
    from: { path: '^src/data/' },
    to: { path: '^src/(platform/(?!postgres/)|[^/]+\\.ts$)' },
  },
  {
    name: 'ground-knows-few-files-beside-it',
    severity: 'error',
    from: { path: '^src/(platform|access)/' },
    to: { path: '^src/[^/]+\\.ts$', pathNot: '^src/(config|setting|paths)\\.ts$' },
  },
  {
    name: 'files-beside-the-folders-lead-nowhere',
    comment: 'Else any arrow could go around the levels through one of them.',
    severity: 'error',
    from: { path: `^src/(${ROOT_FILES.join('|')})\\.ts$` },
    to: { path: '^(src|rest)/', pathNot: `^src/(kernel/|platform/|(${ROOT_FILES.join('|')})\\.ts$)` },
  },
  {
    name: 'kernel-imports-nothing',
    severity: 'error',
    from: { path: '^src/kernel/' },
    to: { path: '^(src|rest)/', pathNot: '^src/kernel/' },
  },
  {
    name: 'only-the-gate-marks-places',
    comment: 'What takes a checked place can trust it.',
    severity: 'error',
    from: { path: '^(src|rest)/', pathNot: '^src/(kernel/(checked|root)-place|graphql/row-places)\\.ts$' },
    to: { path: '^src/kernel/mark-checked\\.ts$' },
  },
  {
    name: 'only-the-facade-marks-input',
    comment: 'What it marks is not checked again.',
    severity: 'error',
    from: { path: '^(src|rest)/', pathNot: '^(rest/(input|plugin)|src/graphql/plugins/constraints-plugin)\\.ts$' },
    to: { path: '^src/kernel/read-input\\.ts$' },
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
    name: 'only-the-gate-makes-root-places',
    comment: 'Whoever makes one has a checked place; others name its type.',
    severity: 'error',
    from: { path: '^dist/src/', pathNot: '^dist/src/graphql/plugins/access-plugin\\.js$' },
    to: { path: '^dist/src/kernel/root-place\\.js$' },
  },
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
