import { GraphQLError } from 'graphql';

const COERCION = /^Variable "\$(\w+)" got invalid value /;

/** What graphql-js and our scalars say is wrong, where that repeats nothing of the value. */
const REASONS = [
  /Field "\w+" of required type "[\w![\]]+" was not provided\.$/,
  /Field "\w+" is not defined by type "\w+"\.(?= Did you mean |$)/,
  /Expected type "\w+" to be an object\.$/,
  /Expected non-nullable type "[\w![\]]+" not to be null\.$/,
  /Input should be [\w ,'-]{1,100}$/,
  /(?:Int|Float|String|Boolean|ID) cannot represent (?:(?:a )?non[a-z0-9 -]{1,30} )?value(?=: )/,
];

/** The same for values that stand in the document itself: the message up to where it would repeat them. */
const LITERALS = [
  /^(Expected value of type "[^"]*"), found [\s\S]*$/,
  /^(.{1,200} cannot represent (?:[a-z0-9 -]{1,40} )?value): [\s\S]*$/,
  /^(Syntax Error: .{0,200}?\b(?:String|BlockString|Int|Float)) "[\s\S]*$/,
];

/**
 * The error without what was sent. graphql-js repeats the value of a variable that does not fit, with everything beside
 * it: passwords and secrets, which then stand in the logs of clients and of what is between.
 */
export function withoutValue(error: GraphQLError): GraphQLError {
  const variable = COERCION.exec(error.message)?.[1];
  if (variable === undefined) return withoutLiteral(error);
  const { place, said } = partsOf(error, variable);
  const reason = REASONS.flatMap((pattern) => pattern.exec(said)?.[0] ?? []).at(0);
  const message = `Variable "$${variable}" got an invalid value${place ? ` at "${place}"` : ''}; ${reason ?? 'it does not fit its type.'}`;
  return new GraphQLError(message, { nodes: error.nodes, extensions: error.extensions });
}

/** The value may be as long as a body: only the ends of the message's two halves are read. */
const HALF = 2_000;

/**
 * The message is the value with its place, a semicolon, and what is wrong with it: that alone is the original error's.
 */
function partsOf({ message, originalError }: GraphQLError, variable: string): { place?: string; said: string } {
  const said = originalError?.message;
  if (said === undefined || !message.endsWith(`; ${said}`)) return { said: message.slice(-HALF) };
  const value = message.slice(0, -said.length).slice(-HALF);
  // names of fields and numbers, below the variable's own
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
 * A copy of variables in which no text is long. Whether a value fits its type does not depend on the rest of it, and
 * graphql-js prints the whole value for each thing that is wrong in it.
 */
export function clipped(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT);
  if (Array.isArray(value)) return value.map(clipped);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.slice(0, MAX_TEXT), clipped(item)]));
}
