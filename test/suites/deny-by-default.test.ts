import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import SchemaBuilder from '@pothos/core';
import {
  type GraphQLArgument,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isScalarType,
  specifiedScalarTypes,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { permissionTable } from '../../src/access/permissions.ts';
import '../../src/graphql/plugins/access-plugin.ts';
import type { Requirement } from '../../src/graphql/plugins/access-plugin.ts';
import { projectRoot } from '../../src/paths.ts';
import { schema } from '../../src/wiring/schema.ts';

// the Prisma plugin's types want their options of every builder; this one has only the plugin that is tried
const newBuilder = () =>
  new SchemaBuilder<{ DefaultFieldNullability: false }>({
    plugins: ['access'],
    defaultFieldNullability: false,
  } as never);

function schemaWith(authorize: Requirement | undefined) {
  const builder = newBuilder();
  builder.queryType({
    fields: (t) => ({ secret: t.string({ ...(authorize ? { authorize } : {}), resolve: () => 'x' }) }),
  });
  return () => builder.toSchema();
}

function schemaWithNested(
  make: 'column' | 'computed' | 'object' | 'object column',
  authorize: Requirement | undefined,
) {
  const builder = newBuilder();
  const Inner = builder
    .objectRef<{ name: string }>('Inner')
    .implement({ fields: (t) => ({ name: t.exposeString('name') }) });
  const asked = authorize ? { authorize } : {};
  const Outer = builder.objectRef<{ name: string; inner: { name: string } }>('Outer').implement({
    fields: (t) => ({
      field:
        make === 'column'
          ? t.exposeString('name', asked)
          : make === 'computed'
            ? t.string({ ...asked, resolve: (o) => o.name })
            : make === 'object column'
              ? t.expose('inner', { type: Inner, ...asked })
              : t.field({ type: Inner, ...asked, resolve: (o) => o.inner }),
    }),
  });
  builder.queryType({
    fields: (t) => ({
      outer: t.field({ type: Outer, authorize: 'public', resolve: () => ({ name: 'x', inner: { name: 'x' } }) }),
    }),
  });
  return () => builder.toSchema();
}

/** An interface with a field that has a resolver of its own, and an object that takes it over. */
function schemaWithInterface(authorize: Requirement | undefined) {
  const builder = newBuilder();
  const Named = builder.interfaceRef<{ name: string }>('Named').implement({
    fields: (t) => ({
      name: t.exposeString('name'),
      initial: t.string({ ...(authorize ? { authorize } : {}), resolve: ({ name }) => name.slice(0, 1) }),
    }),
  });
  const Thing = builder.objectRef<{ name: string }>('Thing').implement({ interfaces: [Named] });
  builder.queryType({
    fields: (t) => ({ thing: t.field({ type: Thing, authorize: 'public', resolve: () => ({ name: 'x' }) }) }),
  });
  return () => builder.toSchema();
}

describe('a field that does not say what it asks of its caller does not build', () => {
  test('on a root type', () => {
    expect(schemaWith(undefined)).toThrow(/Query\.secret does not say what it asks of its caller/);
    expect(schemaWith('signedIn')).not.toThrow();
  });

  test('one with a resolver of its own, and one that leads to an object; a plain column belongs to its object', () => {
    expect(schemaWithNested('computed', undefined)).toThrow(/Outer\.field does not say/);
    expect(schemaWithNested('object', undefined)).toThrow(/Outer\.field does not say/);
    expect(schemaWithNested('object column', undefined)).toThrow(/Outer\.field does not say/);
    expect(schemaWithNested('computed', 'inherited')).not.toThrow();
    expect(schemaWithNested('object column', 'inherited')).not.toThrow();
    expect(schemaWithNested('column', undefined)).not.toThrow();
  });

  test('on an interface, and so on each type that takes the field over', () => {
    expect(schemaWithInterface(undefined)).toThrow(/\.initial does not say/);
    expect(schemaWithInterface('inherited')).not.toThrow();
  });
});

describe('a root field whose permission is about a place that it does not name does not build', () => {
  const schemaAsking = (authorize: Requirement, names: Record<string, boolean>) => {
    const builder = newBuilder();
    const args = builder.args((t) =>
      Object.fromEntries(Object.entries(names).map(([name, required]) => [name, t.id({ required })])),
    );
    builder.queryType({ fields: (t) => ({ thing: t.string({ authorize, args, resolve: () => 'x' }) }) });
    return () => builder.toSchema();
  };
  test.each<[string, Requirement, Record<string, boolean>, string | null]>([
    ['no argument', { organization: 'organization:access' }, {}, 'orgId'],
    ['an argument that may be left out', { organization: 'organization:access' }, { orgId: false }, 'orgId'],
    ['an `id` that is not declared to be the place', { organization: 'organization:access' }, { id: true }, 'orgId'],
    ['an `id` that is', { organization: 'organization:access', by: 'id' }, { id: true }, null],
    ['no workspace', { workspace: 'workspace:read' }, { orgId: true, id: true }, 'workspaceId'],
    ['a workspace without its organization', { workspace: 'workspace:read' }, { workspaceId: true }, 'orgId'],
    ['both', { workspace: 'workspace:read' }, { orgId: true, workspaceId: true }, null],
    ['a workspace by its `id`', { workspace: 'workspace:read', by: 'id' }, { orgId: true, id: true }, null],
  ])('%s', (_title, authorize, names, missing) => {
    const build = schemaAsking(authorize, names);
    if (missing)
      expect(build).toThrow(`Query.thing asks for a permission and needs the required argument '${missing}'.`);
    else expect(build).not.toThrow();
  });
});

const named = Object.values(schema.getTypeMap()).filter(
  (type) => !isIntrospectionType(type) && !specifiedScalarTypes.some(({ name }) => name === type.name),
);
const objects = named.filter((type) => isObjectType(type) || isInterfaceType(type));
const roots = new Set(['Query', 'Mutation', 'Subscription']);

test('every field but a plain column says what it asks; a permission is one of the table', () => {
  for (const type of objects) {
    for (const field of Object.values(type.getFields())) {
      const leadsToObject = isObjectType(getNamedType(field.type)) || isInterfaceType(getNamedType(field.type));
      const isColumn = field.extensions.pothosExposedField !== undefined && !leadsToObject;
      if (!roots.has(type.name) && isColumn) continue;
      const { authorize: access } = field.extensions.pothosOptions as { authorize?: Requirement };
      const where = `${type.name}.${field.name}`;
      expect(access, where).toBeDefined();
      if (roots.has(type.name)) expect(access, where).not.toBe('inherited');
      if (typeof access === 'object') expect(Object.keys(permissionTable), where).toContain(Object.values(access)[0]);
    }
  }
});

test('every type, field, argument and input field is described', () => {
  const silent: string[] = [];
  for (const type of named) {
    if (!type.description) silent.push(type.name);
    if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      if (!field.description) silent.push(`${type.name}.${field.name}`);
      const args: readonly GraphQLArgument[] = 'args' in field ? (field.args as readonly GraphQLArgument[]) : [];
      silent.push(
        ...args.filter(({ description }) => !description).map(({ name }) => `${type.name}.${field.name}(${name})`),
      );
    }
  }
  expect(silent).toEqual([]);
  expect(named.some((type) => isScalarType(type))).toBe(true);
});

test('every .graph.ts file is part of the schema', () => {
  const src = path.join(projectRoot, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.graph.ts'));
  const list = readFileSync(path.join(src, 'wiring', 'schema.ts'), 'utf8');
  expect(files.length).toBeGreaterThan(3);
  expect(files.filter((file) => !list.includes(`'../${file.split(path.sep).join('/')}'`))).toEqual([]);
});
