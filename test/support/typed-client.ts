import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { type DirectiveNode, Kind, print, visit } from 'graphql';
import { isFacadeDirective } from '../../rest/directives.ts';
import type { TestApp } from './app.ts';

/** Sends a generated operation to `/graphql` as a typed client would; the façade's directives mean nothing there. */
export async function ask<Result, Variables extends object>(
  app: TestApp,
  headers: Record<string, string>,
  document: TypedDocumentNode<Result, Variables>,
  variables: Variables,
): Promise<Result> {
  const query = print(
    visit(document, { [Kind.DIRECTIVE]: (node: DirectiveNode) => (isFacadeDirective(node) ? null : undefined) }),
  );
  const answer = await app.server.inject({ method: 'POST', url: '/graphql', headers, payload: { query, variables } });
  const { data, errors } = answer.json<{ data: Result; errors?: unknown[] }>();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}
