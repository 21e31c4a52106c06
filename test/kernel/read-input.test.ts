import { type FieldNode, type GraphQLResolveInfo, type OperationDefinitionNode, parse } from 'graphql';
import { expect, it } from 'vitest';
import { markRead, readArguments } from '../../src/kernel/read-input.ts';

const fieldsOf = (text: string) =>
  (parse(text).definitions[0] as OperationDefinitionNode).selectionSet.selections as readonly FieldNode[];
const info = (...fieldNodes: FieldNode[]) => ({ fieldNodes }) as unknown as GraphQLResolveInfo;

it('arguments are read for one context and one field of one document', () => {
  const [node, beside] = fieldsOf('{ list(first: $n) { name } other }');
  const [same] = fieldsOf('{ list(first: $n) { name } }');
  const context = {};
  const compared = { first: 5 };
  expect(readArguments(context, info(node!))).toBeNull();
  markRead(context, { node: node!, compared });
  expect(readArguments(context, info(node!))).toBe(compared);
  const inner = node!.selectionSet!.selections[0] as FieldNode;
  for (const other of [[same!], [beside!], [inner], [node!, same!], [same!, node!], [node!, node!]])
    expect(readArguments(context, info(...other))).toBeNull();
  expect(readArguments({}, info(node!))).toBeNull();
});
