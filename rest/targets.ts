import type { DocumentNode, GraphQLInputType, GraphQLSchema, ValueNode } from 'graphql';
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isScalarType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { type Constraints, constraintsOf } from '../src/kernel/constraints.ts';
import { snakeCase } from '../src/kernel/snake-case.ts';
import { isWords } from './names.ts';

/** The schema's data on the argument or input field that a variable feeds. */
export interface VariableTarget {
  constraints: Constraints;
  description: string;
  defaultValue: unknown;
}

/** The targets of each variable, through arguments, object literals and list literals. */
export function targetsOf(schema: GraphQLSchema, document: DocumentNode): Map<string, VariableTarget[]> {
  const targets = new Map<string, VariableTarget[]>();
  const info = new TypeInfo(schema);
  const walk = (value: ValueNode, type: GraphQLInputType, target: VariableTarget): void => {
    const nullable = getNullableType(type);
    if (value.kind === Kind.VARIABLE) {
      const known = targets.get(value.name.value) ?? [];
      targets.set(value.name.value, [...known, target]);
    } else if (value.kind === Kind.LIST && isListType(nullable)) {
      for (const item of value.values)
        walk(item, nullable.ofType as GraphQLInputType, {
          ...target,
          constraints: target.constraints.item ?? {},
          defaultValue: undefined,
        });
    } else if (value.kind === Kind.OBJECT && isInputObjectType(nullable)) {
      for (const { name, value: child } of value.fields) {
        const field = nullable.getFields()[name.value];
        if (field) walk(child, field.type, targetOf(field));
      }
    }
  };
  visit(
    document,
    visitWithTypeInfo(info, {
      Argument(node) {
        const argument = info.getDirective() ? null : info.getArgument();
        if (argument) walk(node.value, argument.type, targetOf(argument));
      },
    }),
  );
  return targets;
}

interface Element {
  type: GraphQLInputType;
  extensions: Readonly<Record<string, unknown>>;
  description?: string | null;
  defaultValue?: unknown;
}

function targetOf(element: Element): VariableTarget {
  return {
    constraints: constraintsOf(element),
    description: element.description ?? '',
    defaultValue: externalDefault(element),
  };
}

/** The default of a schema element in the form that a client would send; `undefined` without one. */
export function externalDefault({ type, defaultValue }: Element): unknown {
  return defaultValue === undefined ? undefined : external(defaultValue, type);
}

function external(value: unknown, type: GraphQLInputType): unknown {
  const nullable = getNullableType(type);
  if (value === null) return null;
  if (isListType(nullable)) return [value].flat().map((item) => external(item, nullable.ofType as GraphQLInputType));
  if (isEnumType(nullable)) {
    const name = String(nullable.serialize(value));
    return isWords(nullable) ? name : snakeCase(name);
  }
  if (!isInputObjectType(nullable)) return isScalarType(nullable) ? nullable.serialize(value) : value;
  const given = value as Record<string, unknown>;
  const fields = Object.values(nullable.getFields()).filter((field) => given[field.name] !== undefined);
  return Object.fromEntries(fields.map((field) => [snakeCase(field.name), external(given[field.name], field.type)]));
}

/** The JSON value of a literal, as REST writes it. */
export function plain(node: ValueNode): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.ENUM:
      return snakeCase(node.value);
    case Kind.LIST:
      return node.values.map(plain);
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map((field) => [field.name.value, plain(field.value)]));
    case Kind.NULL:
    case Kind.VARIABLE: // never inside a default
      return null;
  }
}
