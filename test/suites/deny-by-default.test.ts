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
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { describe, expect, test } from 'vitest';
import { jitSchema } from '../../rest/jit.ts';
import { permissionTable } from '../../src/access/permissions.ts';
import '../../src/graphql/access-plugin.ts';
import type { Requirement } from '../../src/graphql/access-plugin.ts';
import { schema } from '../../src/graphql/schema.ts';
import { projectRoot } from '../../src/paths.ts';
import { operations, routeOf } from '../support/operations.ts';

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

function schemaWithNested(make: 'column' | 'computed' | 'object', authorize: Requirement | undefined) {
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

describe('a field that does not say what it asks of its caller does not build', () => {
  test('on a root type', () => {
    expect(schemaWith(undefined)).toThrow(/Query\.secret does not say what it asks of its caller/);
    expect(schemaWith('signedIn')).not.toThrow();
  });

  test('one with a resolver of its own, and one that leads to an object; a plain column belongs to its object', () => {
    expect(schemaWithNested('computed', undefined)).toThrow(/Outer\.field does not say/);
    expect(schemaWithNested('object', undefined)).toThrow(/Outer\.field does not say/);
    expect(schemaWithNested('computed', 'inherited')).not.toThrow();
    expect(schemaWithNested('column', undefined)).not.toThrow();
  });
});

const named = Object.values(schema.getTypeMap()).filter(
  (type) => !isIntrospectionType(type) && !specifiedScalarTypes.some(({ name }) => name === type.name),
);
const objects = named.filter((type) => isObjectType(type) || isInterfaceType(type));
const roots = new Set(['Query', 'Mutation', 'Subscription']);

test('every field on a root type, and every one that leads to an object, says what it asks; a permission is one of the table', () => {
  for (const type of objects) {
    for (const field of Object.values(type.getFields())) {
      const leadsToObject = isObjectType(getNamedType(field.type)) || isInterfaceType(getNamedType(field.type));
      if (!roots.has(type.name) && !leadsToObject) continue;
      const access = field.extensions.access as Requirement | undefined;
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
  const list = readFileSync(path.join(src, 'graphql', 'schema.ts'), 'utf8');
  expect(files.length).toBeGreaterThan(3);
  expect(files.filter((file) => !list.includes(`'../${file.split(path.sep).join('/')}'`))).toEqual([]);
});

test.each(
  operations.filter(({ type }) => type === 'query').map((operation) => [routeOf(operation), operation] as const),
)('%s compiles with graphql-jit', (_title, { document }) => {
  expect(isCompiledQuery(compileQuery(jitSchema(schema), document))).toBe(true);
});
