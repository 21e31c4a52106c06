import type { GraphQLError } from 'graphql';
import { Kind } from 'graphql';
import type { InputIssue } from '../src/kernel/errors.ts';
import { ValidationFailure } from './errors.ts';
import type { RequestParts } from './input.ts';
import type { Echo } from './issues.ts';
import { Issues } from './issues.ts';
import type { Locator } from './locate.ts';

/**
 * The error to throw for the errors of an execution: a REST answer never carries partial data. The first error in path
 * order wins. If it concerns the input, all errors that concern the input are collected.
 */
export function failureOf(
  errors: readonly GraphQLError[],
  locator: Locator,
  echo: Echo,
  request: RequestParts,
): unknown {
  const sorted = locator.sort(errors);
  const [first] = sorted;
  if (!first) throw new Error('An execution failed without an error.');
  if (!isInputError(first)) return causeOf(first);
  const issues = new Issues(echo);
  for (const error of sorted.filter(isInputError)) {
    for (const { loc, type, msg, input, ctx } of locator.locate(error, issuesOf(error, locator), request))
      issues.addAt(loc, type, msg, input, ctx);
  }
  return new ValidationFailure(issues.items);
}

/** graphql-js refused a variable that the façade had accepted; no field was executed. */
const refusedVariable = (error: GraphQLError): string | undefined => {
  const node = error.path ? undefined : error.nodes?.[0];
  return node?.kind === Kind.VARIABLE_DEFINITION ? node.variable.name.value : undefined;
};

const isInputError = (error: GraphQLError): boolean =>
  error.extensions?.code === 'VALIDATION_ERROR' || refusedVariable(error) !== undefined;

function issuesOf(error: GraphQLError, locator: Locator): InputIssue[] {
  const variable = refusedVariable(error);
  if (variable === undefined) return (error.extensions.details as { issues: InputIssue[] }).issues;
  const path = locator.variable(variable, []) ?? [variable];
  return [
    { path: path.slice(1), type: 'value_error', msg: 'Value error, invalid value', ctx: { error: 'invalid value' } },
  ];
}

/** The error as thrown, without the errors that graphql-js wrapped around it. */
function causeOf(error: GraphQLError): unknown {
  let cause: Error & { originalError?: Error | undefined } = error;
  while (cause.originalError) cause = cause.originalError;
  return cause;
}
