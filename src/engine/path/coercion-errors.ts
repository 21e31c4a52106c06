import { GraphQLError, type VariableDefinitionNode } from 'graphql';

const COERCION = /^Variable "\$(\w+)" got invalid value /;

/** Messages of graphql-js and our scalars that do not repeat the value. */
const REASONS = [
  /Field "\w+" of required type "[\w![\]]+" was not provided\.$/,
  /Field "\w+" is not defined by type "\w+"\.(?= Did you mean |$)/,
  /Expected type "\w+" to be an object\.$/,
  /Expected non-nullable type "[\w![\]]+" not to be null\.$/,
  /Input should be [\w ,'-]{1,100}$/,
  /(?:Int|Float|String|Boolean|ID) cannot represent (?:(?:a )?non[a-z0-9 -]{1,30} )?value(?=: )/,
];

/** What is said of a value that is none of an enum. */
const ENUMS = /^Value "[\s\S]*" does not exist in "(\w+)" enum\.|^Enum "(\w+)" cannot represent /;

/** The same for literals in the document: the message up to where it would repeat them. */
const LITERALS = [
  /^(Expected value of type "[^"]*"), found [\s\S]*$/,
  /^(.{1,200} cannot represent (?:[a-z0-9 -]{1,40} )?value): [\s\S]*$/,
  /^(Syntax Error: .{0,200}?\b(?:String|BlockString|Int|Float)) "[\s\S]*$/,
];

/**
 * The error without the values that were sent. graphql-js repeats the value of an invalid variable with everything in
 * it: passwords and secrets would end up in the logs of clients and proxies.
 */
export function withoutValue(error: GraphQLError): GraphQLError {
  const variable = COERCION.exec(error.message)?.[1];
  if (variable === undefined) return withoutLiteral(error);
  const { place, said } = partsOf(error, variable);
  const reason = REASONS.flatMap((pattern) => pattern.exec(said)?.[0] ?? []).at(0) ?? misfit(said);
  const message = `Variable "$${variable}" got an invalid value${place ? ` at "${place}"` : ''}; ${reason}`;
  return new GraphQLError(message, { nodes: error.nodes, extensions: error.extensions });
}

/** What is wrong with a value of which nothing else can be said without repeating it. */
function misfit(said: string): string {
  const [, unknown, wrong] = ENUMS.exec(said) ?? [];
  const type = unknown ?? wrong;
  return type === undefined ? 'it does not fit its type.' : `it is not a value of the enum "${type}".`;
}

/** The value may be as long as a body: only the outer ends of the message are read. */
const HALF = 2_000;

/** The message is the value with its path, a semicolon, and the reason: only the reason is from the original error. */
function partsOf({ message, originalError }: GraphQLError, variable: string): { place?: string; said: string } {
  const said = originalError?.message;
  if (said === undefined || !message.endsWith(`; ${said}`)) return { said: message.slice(-HALF) };
  const value = message.slice(0, -said.length).slice(-HALF);
  // field names and indices, below the name of the variable
  const place = new RegExp(` at "(${variable}[.[][\\w.[\\]]*)"; $`).exec(value)?.[1];
  return { ...(place ? { place } : {}), said: said.slice(0, HALF) };
}

function withoutLiteral(error: GraphQLError): GraphQLError {
  const message = LITERALS.flatMap((pattern) => pattern.exec(error.message)?.[1] ?? []).at(0);
  if (message === undefined) return error;
  const { nodes, source, positions, path, extensions } = error;
  return new GraphQLError(`${message}.`, { nodes, source, positions, path, extensions });
}

const MAX_TEXT = 1_000;

/**
 * The declared variables with long texts cut off. Whether a value fits its type does not depend on the rest, and
 * graphql-js prints the whole value for each error in it. Of the thousands of others that a request may send nothing is
 * read.
 */
export function clippedVariables(
  declared: readonly VariableDefinitionNode[],
  given: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const names = declared.map(({ variable }) => variable.name.value).filter((name) => Object.hasOwn(given, name));
  return Object.fromEntries(names.map((name) => [name, clipped(given[name])]));
}

function clipped(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT);
  if (Array.isArray(value)) return value.map(clipped);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.slice(0, MAX_TEXT), clipped(item)]));
}
