import type { GraphQLInputType } from 'graphql';
import { getNamedType, getNullableType, isInputObjectType, isListType } from 'graphql';
import { constraintsOf } from '../src/kernel/constraints.ts';
import type { ReadArguments } from '../src/kernel/read-input.ts';
import { snakeCase } from '../src/kernel/snake-case.ts';
import { readerOf } from './coerce.ts';
import type { Echo } from './issues.ts';
import { at, echoOf, Issues } from './issues.ts';
import type { Parameter, Parameters } from './parameters.ts';

/** The parts of a request that an operation reads. `body` is `undefined` when none was sent. */
export interface RequestParts {
  params: unknown;
  query: unknown;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
}

export interface OperationInput {
  variables: Record<string, unknown>;
  /** All failures, in the order path, query, header, body. The variables may be used only when it is empty. */
  issues: Issues;
  /** Set when the arguments of the root field were compared and all are valid. */
  checked?: ReadArguments;
}

type Variables = Record<string, unknown>;
type ReadPart = (request: RequestParts, variables: Variables, issues: Issues) => void;

/**
 * Compiles the variables of an operation into one function that reads and validates a request. `echo` prepares values
 * for later errors by the same rules.
 */
export function inputReader({ parameters, body }: Parameters): {
  read: (request: RequestParts) => OperationInput;
  echo: Echo;
} {
  const echo = echoOf(sensitiveNames({ parameters, body }));
  const steps: ReadPart[] = parameters.map(parameterStep);
  if (body) {
    const where = at(null, 'body');
    const read = readerOf(body.type, {});
    steps.push((request, variables, issues) => {
      const isMissing = body.isRequired && (request.body === undefined || request.body === null);
      if (isMissing) issues.add(where, 'missing', 'Field required', null);
      else if (request.body !== undefined) variables[body.name] = read(request.body, where, issues);
    });
  }
  const readAll = (request: RequestParts): OperationInput => {
    const variables: Variables = {};
    const issues = new Issues(echo);
    for (const step of steps) step(request, variables, issues);
    return { variables, issues };
  };
  return { read: readAll, echo };
}

const container = { path: 'params', query: 'query', header: 'headers' } as const;

function parameterStep(parameter: Parameter): ReadPart {
  const { name, wireName, isRequired } = parameter;
  const where = at(at(null, parameter.in), wireName);
  const read = readerOf(parameter.type, parameter.constraints);
  const text = textOf(parameter);
  const from = container[parameter.in];
  return (request, variables, issues) => {
    const raw = (request[from] as Variables | undefined)?.[wireName] as string | string[] | undefined;
    if (raw !== undefined) variables[name] = read(text(raw), where, issues);
    else if (isRequired) issues.add(where, 'missing', 'Field required', null);
  };
}

/** A repeated parameter is a list where a list is expected; otherwise the last value counts. */
function textOf({ type, isCommaList }: Parameter): (raw: string | string[]) => unknown {
  const last = (raw: string | string[]) => (Array.isArray(raw) ? raw.at(-1) : raw);
  if (!isListType(getNullableType(type))) return last;
  if (!isCommaList) return (raw) => [raw].flat();
  return (raw) => {
    const items = (last(raw) ?? '').split(',').map((item) => item.trim());
    return items.filter((item) => item !== '');
  };
}

/** Names of the values that the schema marks as sensitive. */
function sensitiveNames({ parameters, body }: Parameters): string[] {
  const own = parameters.filter((parameter) => parameter.constraints.sensitive).map((parameter) => parameter.wireName);
  return body ? [...own, ...sensitiveFields(body.type)] : own;
}

function sensitiveFields(type: GraphQLInputType): string[] {
  const named = getNamedType(type);
  if (!isInputObjectType(named)) return [];
  return Object.values(named.getFields()).flatMap((field) => {
    const { sensitive, shape } = constraintsOf(field);
    if (sensitive) return [snakeCase(field.name)];
    return [...(shape?.sensitive ?? []), ...sensitiveFields(field.type)];
  });
}
