import { buildSchema, type FieldNode, Kind, type OperationDefinitionNode, parse, Source, visit } from 'graphql';
import { expect, it } from 'vitest';
import { bodyFieldOf, misplaced } from '../../rest/body-field.ts';

const schema = buildSchema(`
  interface Named { name: String }
  type Owner implements Named { name: String fullName: String }
  type Item implements Named { name: String owner: Owner! owners: [Owner!]! anybody: Anybody any: Named }
  union Anybody = Owner | Item
  type Query { health: String item: Item someItems: [Item!]! }
`);

/** What is found in a document, and the mistakes in it, with their places. */
function found(text: string) {
  const [operation] = parse(new Source(text, 'x.graphql')).definitions;
  const problems: string[] = [];
  const field = bodyFieldOf(schema, operation as OperationDefinitionNode, problems);
  const path = field?.path.map(({ key, type }) => `${key}: ${type.toString()}`);
  return { problems, field: field && { name: field.node.name.value, type: field.type.toString(), path } };
}
const only = (name: string, type: string, path: string[]) => ({ problems: [], field: { name, type, path } });

it('the body is the field that is marked, wherever it is', () => {
  expect(found('query A { health @body }')).toEqual(only('health', 'String', ['health: String']));
  expect(found('query A { item { name owner { fullName @body } } health }')).toEqual(
    only('fullName', 'String', ['item: Item', 'owner: Owner!', 'full_name: String']),
  );
  expect(found('query A { health found: item @body { name } }')).toEqual(only('item', 'Item', ['found: Item']));
});

it('a list may be the body, but nothing in it', () => {
  expect(found('query A { someItems @body { name } }')).toEqual(
    only('someItems', '[Item!]!', ['some_items: [Item!]!']),
  );
  expect(found('query A { item { owners @body { name } } }').problems).toEqual([]);
  expect(found('query A {\n someItems { owner { name @body } } }').problems).toEqual([
    'x.graphql:2:2 @body cannot stand below a list.',
  ]);
  expect(found('query A { item { owners { name @body } } }').problems).toEqual([
    'x.graphql:1:18 @body cannot stand below a list.',
  ]);
});

it('the root field is the one that leads to it', () => {
  const [operation] = parse('{ health item { name @body } }').definitions;
  expect(bodyFieldOf(schema, operation as OperationDefinitionNode, [])?.root.name).toBe('item');
});

it('inline fragments are looked into, with and without a condition', () => {
  const named = only('name', 'String', ['item: Item', 'any: Named', 'name: String']);
  expect(found('query A { ... on Query { item { any { ... on Owner { name @body } } } } }')).toEqual(named);
  expect(found('query A { ... { item { any { ... { name @body } } } } }')).toEqual(named);
  expect(found('query A { item { anybody { ... on Owner { fullName @body } } } }')).toEqual(
    only('fullName', 'String', ['item: Item', 'anybody: Anybody', 'full_name: String']),
  );
});

it('fragments of other places are not, nor what does not exist', () => {
  const none = { problems: ["x.graphql:1:1 Operation 'A' has no @body field."], field: null };
  for (const text of [
    'query A { ...F } fragment F on Query { health @body }',
    'query A { ...health @body } fragment health on Query { item { name } }',
    'query A { nothing @body }',
    'query A { __typename @body }',
    'query A { ... on Nothing { health @body } }',
    'query A { health { name @body } }',
    'query A { item { anybody { name @body } } }',
  ])
    expect(found(text)).toEqual(none);
  expect(found('query A { ...F item { nothing { name } ... on Nothing { name } name @body } }')).toEqual(
    only('name', 'String', ['item: Item', 'name: String']),
  );
  expect(found('query A { item @body }')).toEqual(only('item', 'Item', ['item: Item']));
});

it('there is one, not none and not two', () => {
  expect(found('query A { health }')).toEqual({
    problems: ["x.graphql:1:1 Operation 'A' has no @body field."],
    field: null,
  });
  expect(found('{ health }').problems).toEqual(["x.graphql:1:1 Operation '' has no @body field."]);
  const three = found('query A { item @body { name @body owner { name @body } } }');
  expect(three.field?.path).toEqual(['item: Item']);
  expect(three.problems).toEqual([
    "x.graphql:1:24 Operation 'A' has more than one @body field.",
    "x.graphql:1:43 Operation 'A' has more than one @body field.",
  ]);
});

it('@flatten cannot stand on the way to it', () => {
  const problem = (column: number) => `x.graphql:1:${column} @flatten changes nothing on the way to the @body field.`;
  expect(found('query A { item @flatten { name @body } }').problems).toEqual([problem(11)]);
  expect(found('query A { item { owner @body @flatten { name } } }').problems).toEqual([problem(18)]);
  expect(found('query A { item @body { owner @flatten { name } } }').problems).toEqual([]);
});

it('a schema without such operations has none, which others report', () => {
  expect(found('mutation A { change @body }')).toEqual({ problems: [], field: null });
});

it('marks that mean another operation at each use cannot stand in a fragment', () => {
  const text =
    'fragment F on Query { a @body b @empty c @nothing d @redirect e @eventId f @etag g @flatten h i @body @empty }';
  const problems: string[] = [];
  visit(parse(new Source(text, 'x.graphql')), {
    [Kind.FIELD]: (node: FieldNode) => void problems.push(...misplaced(node)),
  });
  expect(problems).toEqual([
    'x.graphql:1:25 @body cannot stand in a fragment.',
    'x.graphql:1:33 @empty cannot stand in a fragment.',
    'x.graphql:1:42 @nothing cannot stand in a fragment.',
    'x.graphql:1:53 @redirect cannot stand in a fragment.',
    'x.graphql:1:65 @eventId cannot stand in a fragment.',
    'x.graphql:1:97 @body cannot stand in a fragment.',
    'x.graphql:1:103 @empty cannot stand in a fragment.',
  ]);
});
