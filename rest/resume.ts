import { type FieldNode, type OperationDefinitionNode, type VariableDefinitionNode, visit } from 'graphql';
import { has } from './directives.ts';
import { problemAt } from './documents.ts';
import type { ResponseBody } from './operation.ts';

/** Mistakes in `@eventId` and `@lastEventId`: a stream has both, in the right places, or neither. */
export function resumeProblems(operation: OperationDefinitionNode, { eventId }: ResponseBody): string[] {
  const ids: FieldNode[] = [];
  const last: VariableDefinitionNode[] = [];
  visit(operation, {
    Field: (node) => void (has(node, 'eventId') && ids.push(node)),
    VariableDefinition: (node) => void (has(node, 'lastEventId') && last.push(node)),
  });
  const [id, ...moreIds] = ids;
  const [variable, ...moreVariables] = last;
  if (!id && !variable) return [];
  const node = id ?? variable;
  if (operation.operation !== 'subscription') return [problemAt(node, 'Only a subscription has frames with an id.')];
  if (!id)
    return [problemAt(node, '@lastEventId needs a field with @eventId: the client sends the value of that field.')];
  if (!variable) return [problemAt(node, '@eventId needs a variable with @lastEventId, which receives the value.')];
  const problems = [...moreIds, ...moreVariables].map((more) => problemAt(more, 'A frame has one id.'));
  if (eventId === null) problems.push(problemAt(id, '@eventId stands on a plain field of the @body object.'));
  if (variable.directives?.some(({ name }) => name.value === 'header'))
    problems.push(problemAt(variable, '@header and @lastEventId exclude each other.'));
  return problems;
}
