import type { GraphQLInputType, VariableDefinitionNode } from 'graphql';
import { isScalarType } from 'graphql';
import type { Constraints } from '../src/kernel/constraints.ts';
import { oneOfOf, rangeOf } from './directives.ts';

/** Receives a mistake in a document. */
export type Report = (message: string) => void;

/** The bounds that `@range` and `@oneOf` set on a variable whose type, or item type, is `item`. */
export function ownConstraints(node: VariableDefinitionNode, item: GraphQLInputType, problem: Report): Constraints {
  const range = rangeOf(node);
  const oneOf = oneOfOf(node);
  const scalar = isScalarType(item) ? item.name : '';
  const own: Constraints = {};
  if (range) {
    if (scalar !== 'Int' && scalar !== 'Float') problem('@range needs an Int or a Float.');
    if (range.min !== null && range.min !== undefined) own.min = range.min;
    if (range.max !== null && range.max !== undefined) own.max = range.max;
    if (own.min === undefined && own.max === undefined) problem('@range needs min, max or both.');
    if ((own.min ?? -Infinity) > (own.max ?? Infinity)) problem('@range has a min above its max.');
  }
  if (oneOf) {
    if (scalar !== 'String' && scalar !== 'ID') problem('@oneOf needs a String or an ID.');
    if (oneOf.values.length === 0 || new Set(oneOf.values).size < oneOf.values.length)
      problem('@oneOf needs distinct values, at least one.');
    own.oneOf = oneOf.values;
  }
  return own;
}

/** A default must obey the variable's own bounds. */
export function checkDefault(value: unknown, own: Constraints, problem: Report): void {
  if (typeof value === 'number' && (value < (own.min ?? -Infinity) || value > (own.max ?? Infinity)))
    problem('the default is outside of @range.');
  for (const text of [value].flat()) {
    if (typeof text === 'string' && own.oneOf && !own.oneOf.includes(text))
      problem(`the default '${text}' is not in @oneOf.`);
  }
}

/** Combines both sets of bounds. */
export function tightest(a: Constraints, b: Constraints): Constraints {
  const both: Constraints = { ...a, ...b };
  const lower = (key: 'min' | 'minLength' | 'minItems') =>
    bound(both, key, Math.max(a[key] ?? -Infinity, b[key] ?? -Infinity));
  const upper = (key: 'max' | 'maxLength' | 'maxItems' | 'maxBytes') =>
    bound(both, key, Math.min(a[key] ?? Infinity, b[key] ?? Infinity));
  lower('min');
  lower('minLength');
  lower('minItems');
  upper('max');
  upper('maxLength');
  upper('maxItems');
  upper('maxBytes');
  const [x, y] = [a.oneOf, b.oneOf];
  if (x && y) both.oneOf = y.filter((value) => x.includes(value));
  if (a.item && b.item) both.item = tightest(a.item, b.item);
  if (a.sensitive) both.sensitive = true;
  return both;
}

function bound(
  constraints: Constraints,
  key: 'min' | 'minLength' | 'minItems' | 'max' | 'maxLength' | 'maxItems' | 'maxBytes',
  value: number,
): void {
  if (Number.isFinite(value)) constraints[key] = value;
}
