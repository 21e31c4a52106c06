import type { FieldNode, GraphQLResolveInfo } from 'graphql';

/** The arguments of a root field that were read from a request and found valid, before the operation runs. */
export interface ReadArguments {
  /** The field in the document of the operation. */
  node: FieldNode;
  /** The values that were compared with each other. */
  compared: object;
}

/** By the context of the operation. */
const read = new WeakMap<object, ReadArguments>();

/**
 * Remembers for the operation that runs with this context that the arguments of its root field need no other check.
 * Only for the façade, with what it has read itself: `npm run arrows` restricts who imports this.
 */
export const markRead = (context: object, input: ReadArguments): void => void read.set(context, input);

/**
 * What was compared, if the façade has read and checked the arguments of exactly this field for this operation;
 * otherwise `null`, and they must be checked.
 */
export function readArguments(context: object, { fieldNodes }: GraphQLResolveInfo): object | null {
  const known = read.get(context);
  return known && fieldNodes.length === 1 && fieldNodes[0] === known.node ? known.compared : null;
}
