import type { Naming } from './naming.ts';
import { type PlainPlace, styles } from './places.ts';

/** A plain resource to be written. */
export interface NewResource {
  naming: Naming;
  /** The folder in `src`. */
  group: string;
  place: PlainPlace;
  /** The description of the type, a sentence. */
  about: string;
}

const idColumn = (property: string) => `${property.replace(/Id$/, '')}_id`;

/** The path from a resource's folder to a module of `src`. */
const from = (group: string, module: string): string =>
  module.startsWith(`${group}/`) ? `../${module.slice(group.length + 1)}` : `../../${module}`;

type Column = readonly [name: string, type: string, attributes?: string];

/** The columns as Prisma formats them. */
function aligned(columns: readonly Column[]): string[] {
  const widths = [0, 1].map((at) => Math.max(...columns.map((column) => column[at]!.length)));
  return columns.map(([name, type, attributes = '']) =>
    `  ${name.padEnd(widths[0]!)} ${type.padEnd(widths[1]!)} ${attributes}`.trimEnd(),
  );
}

/** The Prisma model. */
export function prismaModel({ naming, place, about }: NewResource): string {
  const { below, parent, root } = styles[place];
  const key = below.at(-1)!;
  const lines = aligned([
    ['id', 'String', '@id'],
    ...below.map((property): Column => [property, 'String', `@map("${idColumn(property)}")`]),
    ['name', 'String'],
    ['description', 'String?'],
    ['createdBy', 'String?', '@map("created_by")'],
    ['createdAt', 'DateTime', '@default(now()) @map("created_at") @db.Timestamptz(3)'],
    ['updatedAt', 'DateTime', '@default(now()) @updatedAt @map("updated_at") @db.Timestamptz(3)'],
    ['resourceVersion', 'Int', '@default(1) @map("resource_version")'],
  ]);
  lines.splice(-1, 0, '  /// Raised by a trigger with every change that is visible to clients.');
  const indexes = [`[${below.join(', ')}, id(sort: Desc)]`, ...(below.length > 1 ? [`[${key}]`] : [])];
  return `
/// ${about}
model ${naming.type} {
${lines.join('\n')}

  ${root} ${parent} @relation(fields: [${key}], references: [id], onDelete: Cascade)

${indexes.map((index) => `  @@index(${index})`).join('\n')}
  @@map("${naming.table}")
}
`;
}

/** What Prisma cannot express, at the end of the migration. */
export const migrationEnd = ({ naming }: NewResource): string => `
-- The version rises with every change that is visible to clients.
CALL keep_resource_version('${naming.table}');
`;

/** The rules of the resource. */
export function serviceSource({ naming, place }: NewResource): string {
  const { checked, below, kept } = styles[place];
  const { type, table, word, Lists, nouns } = naming;
  const key = below.at(-1)!;
  const rules = kept
    ? `, (tx) => tx.demand('${kept}', { id: place.${key} }, 'key share', () => notFound('${place}', place.${key}))`
    : '';
  return `import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, type FieldsOf, type NewFieldsOf, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { type ${type}, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ${checked}, Checked, Deleted } from '../../kernel/checked-place.ts';
${kept ? "import { notFound } from '../../kernel/errors.ts';\n" : ''}import { newId } from '../../kernel/ids.ts';

const ${naming.list} = {
  kind: '${word}',
  from: '${table}',
  columns: columnsOf(Object.values(Prisma.${type}ScalarFieldEnum)),
  below: [${below.map((column) => `'${column}'`).join(', ')}],
} as const;

/** ${Lists.charAt(0)}${nouns.slice(1)} of ${anOrA(place)}. */
export class ${type}Service {
  readonly reads: Reads<${type}, ${checked}>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, ${naming.list});
  }

${kept ? `  /** @throws RESOURCE_NOT_FOUND \`${place}\` */\n` : ''}\
  async create(caller: Caller, place: Checked<${checked}>, input: NewFieldsOf<'${table}'>): Promise<${type}> {
    return createRow(this.#deps, caller, ${naming.list}, { ...input, id: newId('${word}'), ...place }${rules});
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND */
  async update(caller: Caller, place: Checked<${checked}>, id: string, input: FieldsOf<'${table}'>): Promise<${type}> {
    return updateRow(this.#deps, caller, ${naming.list}, { id, ...place }, input, input);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<${checked}>, id: string): Promise<Deleted<${checked}>> {
    return deleteRow(this.#deps, caller, ${naming.list}, { id, ...place });
  }
}
`;
}

/** \`an app\` */
export const anOrA = (noun: string): string => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;

/** What clients see of the resource. */
export function graphSource({ naming, group, place, about }: NewResource): string {
  const { parent, module, below, fields, args, authorize, root, refers } = styles[place];
  const { type, word, noun, list, property } = naming;
  const plural = list === `${property}s` ? '' : `\n  plural: '${list}',`;
  const a = anOrA(noun);
  const within = below.map((column) => `'${column}'`).join(', ');
  return `import { builder } from '../../graphql/builder.ts';
import { ${fields}, tracked } from '../../graphql/common-fields.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { ${args}, idArg } from '../../graphql/place-args.ts';
${refers ? "import { refersTo } from '../../graphql/references.ts';\n" : ''}\
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { ${parent} } from '${from(group, module)}';

const ${type} = builder.prismaObject('${type}', {
  description: '${about}',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
  }),
});
${fields}(${type}, '${word}');
tracked(${type});
${refers ? `refersTo(${type}, { ${refers} });\n` : ''}\
readable(${type}, {
  kind: '${word}',${plural}
  below: ${parent},
  reads: ({ ${list} }) => ${list}.reads,
});

/** The fields that clients may leave out, when they create ${a} and when they change one. */
const optional = (t: InputFields) => ({
  description: t.string({ constraints: bounds.description, description: 'Free text.' }),
});

const Create${type}Input = builder.inputType('Create${type}Input', {
  description: 'A new ${noun}.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    ...optional(t),
  }),
});

const Update${type}Input = builder.inputType('Update${type}Input', {
  description: 'The fields to change. Omitted fields stay as they are; \`null\` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    ...optional(t),
  }),
});

const target = () => ({ ...${args}(), ...idArg('The ${noun}.') });

const Delete${type}Payload = deletePayload('Delete${type}', { noun: '${noun}', in: [${within}] });

builder.mutationFields((t) => ({
  create${type}: t.field({
    type: ${type},
    description: 'Creates ${a}.',
    authorize: ${authorize(`${word}:create`)},
    emits: ['${word}.created'],
    args: { ...${args}(), ...inputArg(Create${type}Input, 'The ${noun}.') },
    resolve: ({ ${root} }, { input }, { caller, services }) => services.${list}.create(caller, ${root}, input),
  }),
  update${type}: t.field({
    type: ${type},
    description: 'Changes ${a}.',
    authorize: ${authorize(`${word}:update`)},
    emits: ['${word}.updated'],
    args: { ...target(), ...inputArg(Update${type}Input), ...versionArg() },
    resolve: ({ ${root} }, { id, input }, { caller, services }) =>
      services.${list}.update(caller, ${root}, id, input),
  }),
  delete${type}: t.field({
    type: Delete${type}Payload,
    description: 'Deletes ${a}.',
    authorize: ${authorize(`${word}:delete`)},
    emits: ['${word}.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ ${root} }, { id }, { caller, services }) => services.${list}.delete(caller, ${root}, id),
  }),
}));
`;
}

/** The routes of the resource. */
export function restSource({ naming, place }: NewResource): string {
  const { below, path } = styles[place];
  const { type, word, Lists, list, property } = naming;
  const variables = below.map((column) => `$${idColumn(column)}: ID!`).join(', ');
  const args = below.map((column) => `${column}: $${idColumn(column)}`).join(', ');
  const folder = `${path}/${naming.folder}`;
  const one = `${folder}/{${word}_id}`;
  const id = `$${word}_id: ID!`;
  const whole = `@body { ...${type} }`;
  return `fragment ${type} on ${type} @whole {
  resourceVersion @etag
  ${word}_id: id
  ${below.join('\n  ')}
}

query List${Lists}(${variables}, $limit: Int! = 50 @range(min: 1, max: 200), $cursor: String)
@rest(method: GET, path: "${folder}", errors: B) {
  ${list}(${args}, first: $limit, after: $cursor) @body {
    total: totalCount
    pageInfo @flatten { ...Page }
    ${naming.table}: nodes { ...${type} }
  }
}

mutation Create${type}(${variables}, $body: Create${type}Input! @body)
@rest(method: POST, path: "${folder}", errors: B, status: 201) {
  create${type}(${args}, input: $body) ${whole}
}

query Get${type}(${variables}, ${id}) @rest(method: GET, path: "${one}", errors: B) {
  ${property}(${args}, id: $${word}_id) ${whole}
}

mutation Update${type}(${variables}, ${id}, $body: Update${type}Input! @body)
@rest(method: PATCH, path: "${one}", errors: B) {
  update${type}(${args}, id: $${word}_id, input: $body) ${whole}
}

mutation Delete${type}(${variables}, ${id})
@rest(method: DELETE, path: "${one}", errors: B, status: 204) {
  delete${type}(${args}, id: $${word}_id) @body { id }
}
`;
}

/** A test of what the suites cannot know: exact bodies, events and records. */
export function testSource({ naming, place }: NewResource): string {
  const { below, made } = styles[place];
  const { word, type, nouns, table, folder } = naming;
  const values: Record<string, string> = {
    orgId: 'who.orgId',
    workspaceId: 'who.workspaceId',
    namespaceId: 'namespace_id',
    appId: 'app_id',
  };
  const ids = below.map((column) => [idColumn(column), values[column]!] as const);
  const placed = ids.map(([name, value]) => (name === value ? name : `${name}: ${value}`)).join(',\n    ');
  const home = place === 'organization' ? `/v1/orgs/\${who.orgId}` : `\${who.home}`;
  const making = made
    ? `const made = await who.call<{ ${made.id}: string }>('POST', \`\${who.home}/${made.folder}\`, ${made.body});
  const { ${made.id} } = made.body;`
    : '';
  const url = made ? `\${who.home}/${made.folder}/\${${made.id}}` : home;
  return `import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface ${type} {
  ${word}_id: string;
  [field: string]: unknown;
}

test('creates, lists, changes and deletes ${nouns}, with their events and records', async () => {
  const who = await register(app);
  ${making}
  const url = \`${url}/${folder}\`;
  const { status, body } = await who.call<${type}>('POST', url, { name: 'First', description: 'Of a test.' });
  expect(status).toBe(201);
  expect(body).toEqual({
    ${word}_id: expect.stringMatching(/^${naming.prefix}_/),
    ${placed},
    name: 'First',
    description: 'Of a test.',
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = \`\${url}/\${body.${word}_id}\`;
  const list = await who.call<{ ${table}: ${type}[]; total: number }>('GET', url);
  expect([list.body.total, list.body.${table}]).toEqual([1, [body]]);
  const changed = { ...body, description: null, updated_at: expect.any(String) };
  expect((await who.call('PATCH', one, { description: null })).body).toEqual(changed);
  expect((await who.call('GET', one)).body).toEqual(changed);
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect((await who.call('GET', one)).status).toBe(404);
  expect(await eventsOf(app, body.${word}_id)).toEqual(['${word}.created', '${word}.updated', '${word}.deleted']);
  expect((await changesOf(app, body.${word}_id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', {}],
    ['update', { fields: ['description'] }],
    ['delete', {}],
  ]);
});
`;
}

/** The declaration in the table of resources. */
export const declaration = ({ naming, place }: NewResource): string => `  ${naming.word}: {
    prefix: '${naming.prefix}',
    in: '${place}',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
`;
