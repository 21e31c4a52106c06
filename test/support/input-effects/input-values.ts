import {
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql';
import type { Constraints } from '../../../src/kernel/constraints.ts';
import type { RootField } from '../root-fields.ts';
import { constraintsOf, sampleInput } from '../samples.ts';
import type { World } from '../world.ts';
import { found, holds } from './input-leaves.ts';

type Json = Record<string, unknown>;

/** Leaves a field out of an input. */
export const leftOut = Symbol('left out');

/** Values of single fields by their path below the mutation, such as `input.kind`, in place of the samples. */
export type Overrides = Readonly<Record<string, unknown>>;

interface Making {
  before: unknown;
  overrides: Overrides;
  next: () => number;
}

/**
 * All arguments of a mutation that name no place, each with a value unlike any other and unlike what was read before.
 * A field without a sample is left out.
 */
export function otherValues(root: RootField, world: World, before: unknown, overrides: Overrides): Json {
  let count = 10;
  const making: Making = { before, overrides, next: () => ++count };
  const source = withManyMarkers(world);
  const given: Json = {};
  for (const { name, type, extensions } of root.field.args) {
    const named = getNamedType(type);
    const sample = isInputObjectType(named) ? sampleInput(named, source) : named.name === 'Boolean' ? true : undefined;
    const value = other(name, type, constraintsOf({ extensions }), sample, making);
    if (value !== undefined) given[name] = value;
  }
  return given;
}

/** The same world with another marker whenever one is asked for: no two values of free JSON are the same. */
function withManyMarkers(world: World): World {
  return {
    ...world,
    get marker() {
      return `${world.marker}n${world.next()}`;
    },
  };
}

function other(
  path: string,
  type: GraphQLInputType,
  constraints: Constraints,
  sample: unknown,
  making: Making,
): unknown {
  if (path in making.overrides) {
    const value = making.overrides[path];
    return value === leftOut ? undefined : value;
  }
  const nullable = getNullableType(type);
  const named = getNamedType(type);
  if (!isInputObjectType(named))
    return sample === undefined ? undefined : otherLeaf(path, type, constraints, sample, making);
  const isWanted = Object.entries(making.overrides).some(
    ([known, value]) => known.startsWith(`${path}.`) && value !== leftOut,
  );
  if (sample === undefined && !isWanted) return undefined;
  const [inner = {}] = [sample].flat() as Json[];
  const made = Object.fromEntries(
    Object.values(named.getFields()).flatMap((field) => {
      const value = other(`${path}.${field.name}`, field.type, constraintsOf(field), inner[field.name], making);
      return value === undefined ? [] : [[field.name, value]];
    }),
  );
  return isListType(nullable) ? [made] : made;
}

/** Another value of the same kind. What is no number, truth, time or word of a closed set is unique as it was made. */
function otherLeaf(path: string, type: GraphQLInputType, c: Constraints, sample: unknown, making: Making): unknown {
  const read = found(making.before, path);
  const named = getNamedType(type);
  if (isListType(getNullableType(type)) || typeof sample === 'object') return sample;
  if (typeof sample === 'boolean') return read !== true;
  if (typeof sample === 'number') return otherNumber(named.name === 'Float', c, making.next());
  if (named.name === 'DateTime') return new Date(Date.now() + making.next() * 86_400_000).toISOString();
  const words = c.oneOf ?? (isEnumType(named) ? named.getValues().map(({ name }) => name) : undefined);
  return words ? words.find((word) => !holds(read, word)) : sample;
}

function otherNumber(isFraction: boolean, { min = 1, max = Number.MAX_SAFE_INTEGER }: Constraints, n: number): number {
  return Math.min(max, isFraction ? min + n / 100 : min + n);
}
