import { getIntrospectionQuery } from 'graphql';

/** An operation that somebody sends to see what it does to the service. */
export interface HostileDocument {
  what: string;
  query: string;
  variables?: string;
  operationName?: string;
  /** Whether it is answered: it then may cost the most that anything may. Everything else is refused before it runs. */
  isAnswered?: boolean;
}

const times = (count: number, text: (i: number) => string, between = ' ') =>
  Array.from({ length: count }, (_, i) => text(i)).join(between);
const nested = (levels: number, open: string, inside: string, close = '}') =>
  `${open.repeat(levels)}${inside}${close.repeat(levels)}`;
/** Fragments that each spread the next one so many times. */
const fragments = (levels: number, spreads: number, on: string, inside: string) =>
  `${times(levels, (i) => `fragment F${i} on ${on} { ${times(spreads, () => `...F${i + 1}`)} }`)} ` +
  `fragment F${levels} on ${on} { ${inside} }`;
const whole = getIntrospectionQuery({
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
});
const [wholeBody = ''] = /\{[\s\S]*?\n {4}\}/.exec(whole) ?? [];
const lists = (first: string, inside = 'id name description region createdAt updatedAt') =>
  `{ organizations(first: ${first}) { nodes { id name workspaces(first: ${first}) { nodes {
    ${inside} members(first: ${first}) { nodes { userId } } } } } } }`;

/** Documents about fragments: small texts that are large when they are written out. */
const spread: HostileDocument[] = [
  ...[18, 20, 22, 24, 200].map((levels) => ({
    what: `${levels} levels of doubled fragments`,
    query: `{ me { ...F0 } } ${fragments(levels, 2, 'User', 'id')}`,
  })),
  { what: 'fragments that spread the next ten times', query: `{ me { ...F0 } } ${fragments(40, 10, 'User', 'id')}` },
  { what: 'doubled fragments that nothing uses', query: `{ me { id } } ${fragments(24, 2, 'User', 'id')}` },
  { what: 'doubled fragments of the root', query: `{ ...F0 } ${fragments(24, 2, 'Query', 'me { id }')}` },
  {
    what: 'doubled fragments of the schema',
    query: `{ __schema { ...F0 } } ${fragments(24, 2, '__Schema', 'types { name }')}`,
  },
  { what: 'doubled inline fragments', query: `{ me ${nested(30, '{ ... on User ', '{ id }')} }`, isAnswered: true },
  { what: 'a fragment that spreads itself', query: '{ me { ...F } } fragment F on User { id ...F }' },
  {
    what: 'cycles through a hundred fragments',
    query: `{ me { ...F0 } }
      ${times(100, (i) => `fragment F${i} on User { ...F${i + 1} ...F0 }`)} fragment F100 on User { id }`,
  },
  { what: '280 unused fragments', query: `{ me { id } } ${times(280, (i) => `fragment F${i} on User { id }`)}` },
  {
    what: 'lists in fragments in lists',
    query: `{ organizations(first: 50) { nodes { ...A ...A } } } fragment A on Organization { workspaces(first: 50) {
      nodes { ...B ...B } } } fragment B on Workspace { members(first: 50) { nodes { userId } } }`,
  },
  {
    what: 'a chain of fragments as long as it may be',
    query: `{ me { ...F0 } } ${fragments(30, 1, 'User', 'id')}`,
    isAnswered: true,
  },
];

/** Documents in which the same is said very often. */
const repeated: HostileDocument[] = [
  { what: '1,990 times the same field', query: `{ me { ${times(1990, () => 'id')} } }` },
  { what: '240 times the same field', query: `{ me { ${times(240, () => 'id')} } }`, isAnswered: true },
  { what: 'fields with the same arguments', query: `{ ${times(120, () => 'workspace(orgId: "a", id: "b") { id }')} }` },
  {
    what: 'objects that merge with one another',
    query: `{ ${times(170, () => 'me { id username email }')} }`,
  },
  {
    what: 'spreads that are compared with one another',
    query: `{ ${times(30, () => `me { ${times(8, (i) => `...F${i}`)} }`)} }
      ${times(8, (i) => `fragment F${i} on User { id username }`)}`,
    isAnswered: true,
  },
  { what: '31 aliases of a scalar', query: `{ me { ${times(31, (i) => `a${i}: id`)} } }` },
  {
    what: '30 aliases of a scalar in a list of lists',
    query: lists(
      '50',
      times(30, (i) => `a${i}: name`),
    ),
  },
  { what: 'conflicts of each with each', query: `{ ${times(14, (i) => `me { x: ${i % 2 ? 'id' : 'username'} }`)} }` },
  { what: '600 times the same argument', query: `{ node(${times(600, () => 'id: 1')}) { id } }` },
  { what: '600 directives', query: `{ me ${times(600, () => '@include(if: true)')} { id } }` },
  { what: 'unknown directives', query: `{ me ${times(45, (i) => `@d${i}`)} { id } }` },
  {
    what: '150 operations over one fragment',
    query: `${times(150, (i) => `query A${i} { ...F }`)} fragment F on Query { me { id } }`,
    operationName: 'A7',
    isAnswered: true,
  },
  {
    what: 'operations that are all large',
    query: `${times(60, (i) => `query A${i} { ...F }`)} fragment F on Query { ${times(250, () => 'me { id }')} }`,
    operationName: 'A7',
  },
  { what: '380 variables that nothing uses', query: `query (${times(380, (i) => `$v${i}: Int`)}) { me { id } }` },
  { what: 'variables that are not declared', query: `{ ${times(150, (i) => `node(id: $v${i}) { id }`)} }` },
];

/** Documents that are hard to read. */
const unreadable: HostileDocument[] = [
  { what: '65,000 open brackets', query: '['.repeat(65_000) },
  { what: 'an argument of 60,000 brackets', query: `{ node(id: ${'['.repeat(60_000)}) { id } }` },
  { what: 'an argument of 900 lists in lists', query: `{ node(id: ${nested(900, '[', '1', ']')}) { id } }` },
  { what: 'an argument of 300 objects in objects', query: `{ node(id: ${nested(300, '{a:', '1')}) { id } }` },
  { what: 'a wide list as an argument', query: `{ node(id: [${times(1_900, () => '1')}]) { id } }` },
  {
    what: 'a wide object as an argument',
    query: `mutation { createOrganization(input: {${times(600, (i) => `k${i}: 1`)}}) { id } }`,
  },
  { what: '900 fields in fields', query: nested(900, '{a', '') },
  { what: 'a name of 60,000 letters', query: `{ ${'x'.repeat(60_000)} }` },
  { what: '60,000 empty lines', query: `${'\n'.repeat(60_000)}{ me { id } }` },
  { what: 'unknown fields below 4,000 lines', query: `${'\n'.repeat(4_000)}{ ${times(1_900, (i) => `x${i}`)} }` },
  { what: '30,000 comments', query: `${'#\n'.repeat(30_000)}{ me { id } }` },
  { what: 'a comment of 64 KiB', query: `#${'x'.repeat(64 * 1024)}\n{ me { id } }` },
  { what: 'a block string of 30,000 lines', query: `{ node(id: """${'\n '.repeat(30_000)}""") { id } }` },
  // as long as an id may be
  { what: 'a text of 1,024 escapes', query: `{ node(id: "${'\\u0041'.repeat(1_024)}") { id } }`, isAnswered: true },
  { what: 'a text that does not end', query: `{ node(id: "${'x'.repeat(60_000)}` },
  { what: 'descriptions of types', query: times(300, (i) => `"""${'d'.repeat(100)}""" type T${i} { a: Int }`) },
  { what: '2,001 tokens', query: `{ me { ${times(1_997, () => 'id')} } }` },
  { what: '1,900 unknown fields', query: `{ ${times(1_900, (i) => `x${i}`)} }` },
  { what: '1,900 unknown fields with names nearly right', query: `{ ${times(1_900, (i) => `workspac${i}`)} }` },
  { what: 'a page of 1e400', query: '{ organizations(first: 1e400) { nodes { id } } }' },
  { what: 'a page of thirty digits', query: `{ organizations(first: ${'9'.repeat(30)}) { nodes { id } } }` },
];

/** Questions about the schema. */
const introspective: HostileDocument[] = [
  { what: 'a whole introspection', query: whole, isAnswered: true },
  {
    what: 'an introspection twice',
    query: whole.replace(wholeBody, `{ a: ${wholeBody.slice(1, -1)} b: ${wholeBody.slice(1)}`),
  },
  {
    what: '30 aliases of all types',
    query: `{ ${times(30, (i) => `a${i}: __schema { types { name fields { name args { name } } } }`)} }`,
  },
  {
    what: 'descriptions 29 times',
    query: `{ __schema { types { fields { ${times(29, (i) => `a${i}: description`)} } } } }`,
  },
  {
    what: 'one large type 30 times',
    query: `{ ${times(
      30,
      (i) => `a${i}: __type(name: "Mutation") { fields { description args { description type { description } } } }`,
    )} }`,
  },
  {
    what: 'fields of types of fields',
    query: '{ __schema { types { fields { description type { fields { description args { description } } } } } } }',
    isAnswered: true,
  },
  {
    what: 'the types behind 30 wrappers',
    query: `{ __schema { types { fields { type ${nested(24, '{ ofType ', '{ name }')} } } } }`,
    isAnswered: true,
  },
];

const fifty = `mutation ($i: UpdateWorkspaceInput!) { updateWorkspace(orgId: "a", id: "b", input: $i) { id } }`;

/** Variables that are more than the document. */
const filled: HostileDocument[] = [
  { what: 'lists of lists, by variables', query: `query ($n: Int!) ${lists('$n')}`, variables: '{"n":200}' },
  { what: 'lists of lists, by a default', query: `query ($n: Int! = 200) ${lists('$n')}` },
  {
    what: 'a page by a variable of thirty digits',
    query: `query ($n: Int) { organizations(first: $n) { nodes { id } } }`,
    variables: `{"n":${'9'.repeat(30)}}`,
  },
  {
    what: 'unknown keys beside a long text',
    query: fifty,
    variables: `{"i":{${times(60, (i) => `"k${i}":1`, ',')},"name":"${'x'.repeat(30_000)}"}}`,
  },
  {
    what: 'unknown keys beside a text of 900 KB',
    query: fifty,
    variables: `{"i":{${times(60, (i) => `"k${i}":1`, ',')},"name":"${'x'.repeat(900_000)}"}}`,
  },
  { what: '100,000 wrong items', query: fifty, variables: `{"i":{"tags":[${times(100_000, () => '5', ',')}]}}` },
  { what: 'a value of 400,000 brackets', query: fifty, variables: `{"i":{"name":${nested(400_000, '[', '1', ']')}}}` },
  { what: 'wrong items', query: fifty, variables: `{"i":{"tags":[${times(20_000, () => '5', ',')}]}}` },
  { what: 'a deep value', query: fifty, variables: `{"i":{"name":${nested(10_000, '[', '1', ']')}}}` },
  {
    what: 'many variables that nobody asked for',
    query: '{ me { id } }',
    variables: `{${times(4_000, (i) => `"v${i}":${i}`, ',')}}`,
    isAnswered: true,
  },
  {
    what: 'keys of the prototype',
    query: fifty,
    variables: '{"__proto__":{"i":1},"i":{"__proto__":{"name":1},"constructor":{"prototype":1}}}',
  },
];

/** Operations that read as much as is allowed. */
const large: HostileDocument[] = [
  { what: 'the widest lists that are let through', query: lists('20'), isAnswered: true },
  { what: 'wide lists of lists', query: lists('50') },
  {
    what: 'many root fields',
    query: `{ ${times(29, (i) => `a${i}: organizations(first: 50) { nodes { id } }`)} }`,
    isAnswered: true,
  },
];

/** The whole corpus. Documents that are longer than a URL or a message may be are refused for that, too. */
export const hostileDocuments: readonly HostileDocument[] = [
  ...spread,
  ...repeated,
  ...unreadable,
  ...introspective,
  ...filled,
  ...large,
];
