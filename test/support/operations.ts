import { Kind } from 'graphql';
import { Facade } from '../../rest/facade.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import { operationsDir } from '../../src/paths.ts';
import { wereChecked } from '../../src/platform/build-checks.ts';
import { schema } from '../../src/wiring/schema.ts';

/** The documents of the REST API, compiled once for all apps of the process. */
export const facade = new Facade(schema, operationsDir, (digest) => wereChecked('operations', digest));

/** Every route of the REST API, as the service itself compiles it: what is added tomorrow is in here tomorrow. */
export const { operations } = facade;

/** `GET /v1/users/{user_id}`, for titles and tables. */
export const routeOf = ({ method, path }: Pick<CompiledOperation, 'method' | 'path'>): string => `${method} ${path}`;

/** The operation of a route. @throws Error when there is none */
export function operationAt(method: string, path: string): CompiledOperation {
  const found = operations.find((operation) => operation.method === method && operation.path === path);
  if (!found) throw new Error(`There is no operation document for ${method} ${path}.`);
  return found;
}

/** Names of the variables of a path template, in order. */
export const pathVariables = (path: string): string[] => [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name!);

/**
 * Operations in an order in which each finds what it needs: reads first, then changes, then deletions from the
 * innermost outwards, and last what ends the caller's own session.
 */
export function gentlestFirst(list: readonly CompiledOperation[] = operations): CompiledOperation[] {
  const rank = ({ method, path }: CompiledOperation) =>
    path.endsWith('/logout') ? 1_000 : method === 'GET' ? 0 : method === 'DELETE' ? 100 - path.length / 100 : 10;
  return [...list].sort((a, b) => rank(a) - rank(b));
}

/** Name of the root field that an operation asks for. */
export function rootFieldOf({ document, name }: CompiledOperation): string {
  for (const node of document.definitions) {
    const [root] = node.kind === Kind.OPERATION_DEFINITION ? node.selectionSet.selections : [];
    if (root?.kind === Kind.FIELD) return root.name.value;
  }
  throw new Error(`Operation '${name}' asks for no root field.`);
}
