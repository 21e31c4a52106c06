import { buildSchema, OperationTypeNode, parse } from 'graphql';
import { expect, it } from 'vitest';
import { declaredFailures, isPublic, rootFieldsOf } from '../../rest/root-fields.ts';

const schema = buildSchema(`
  type Query { health: String status: String secret: String }
  type Mutation { add(by: Int!): Int }
`);
const fields = { ...schema.getQueryType()!.getFields(), ...schema.getMutationType()!.getFields() };
Object.assign(fields.health!, {
  extensions: { access: 'public', mayFail: ['UPSTREAM_ERROR'] },
});
Object.assign(fields.status!, {
  extensions: { access: 'public', mayFail: ['UPSTREAM_TIMEOUT', 'UPSTREAM_ERROR'] },
});
Object.assign(fields.secret!, { extensions: { access: 'signed-in' } });

it('the root fields are all that a document selects, also in fragments', () => {
  const text = `
    fragment F on Query { status ...G }
    query A { health ... on Query { again: health ... { secret } } ...F ...Nowhere nothing }
    fragment G on Query { secret }
  `;
  const names = (document: string, type = OperationTypeNode.QUERY) =>
    rootFieldsOf(schema, parse(document), type).map((field) => field?.name);
  expect(names(text)).toEqual(['health', 'health', 'secret', 'status', 'secret', undefined]);
  expect(names('{ health }')).toEqual(['health']);
  expect(names('mutation A { add(by: 1) }', OperationTypeNode.MUTATION)).toEqual(['add']);
  expect(
    rootFieldsOf(buildSchema('type Query { a: Int }'), parse('mutation A { a }'), OperationTypeNode.MUTATION),
  ).toEqual([undefined]);
});

it('strangers may use an operation if they may use each of its root fields', () => {
  const { health, status, secret } = fields;
  expect([isPublic([health, status]), isPublic([health, secret]), isPublic([secret]), isPublic([undefined])]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

it('what root fields declare that may fail is told once', () => {
  const { health, status, secret } = fields;
  expect(declaredFailures([health, status, undefined, secret])).toEqual(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT']);
  expect(declaredFailures([secret])).toEqual([]);
});
