import type { OperationDefinitionNode } from 'graphql';
import { directiveNode } from './directives.ts';
import { problemAt } from './documents.ts';
import { templateVariables } from './parameters.ts';

const SEGMENT = /^(?:[A-Za-z0-9._~-]+|\{[a-z][a-z0-9_]*\})$/;

/** Mistakes in the path template of an operation, given its variables. */
export function pathProblems(node: OperationDefinitionNode, path: string): string[] {
  const where = directiveNode(node, 'rest') ?? node;
  const problems: string[] = [];
  const declared = new Set(node.variableDefinitions?.map((definition) => definition.variable.name.value));
  const names = templateVariables(path);
  if (
    !path.startsWith('/') ||
    path.endsWith('/') ||
    !path
      .slice(1)
      .split('/')
      .every((segment) => SEGMENT.test(segment))
  ) {
    problems.push(
      problemAt(where, `'${path}' is no path template: '/', then segments that are plain or one {variable}.`),
    );
  }
  for (const name of new Set(names)) {
    if (!declared.has(name))
      problems.push(problemAt(where, `The path variable '{${name}}' is not declared as '$${name}'.`));
    if (names.indexOf(name) !== names.lastIndexOf(name))
      problems.push(problemAt(where, `The path has '{${name}}' twice.`));
  }
  return problems;
}

/** The template in Fastify's syntax. */
export const toUrl = (path: string): string => path.replace(/\{([^}]*)\}/g, ':$1');

/** A router cannot distinguish two routes with the same key: names of variables do not matter. */
export const routeKey = (method: string, path: string): string => `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`;
