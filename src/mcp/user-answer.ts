import type { InputRequiredResult } from '@modelcontextprotocol/server';
import type { McpCall } from './tool.ts';

/** What a user answered to a question of this call: `none` if nobody was asked yet. */
export function userAnswer({
  asksUser,
  context,
  library,
}: McpCall): { kind: 'none' | 'no' } | { kind: 'yes'; state: string } {
  if (!asksUser) return { kind: 'none' };
  const answer = library.inputResponse(context.mcpReq.inputResponses, 'confirm');
  if (answer.kind === 'missing') return { kind: 'none' };
  if (answer.kind !== 'elicit' || answer.action !== 'accept') return { kind: 'no' };
  const state: unknown = context.mcpReq.requestState();
  const isAgreed = (answer.content as { confirm?: unknown } | undefined)?.confirm === true;
  return isAgreed && typeof state === 'string' ? { kind: 'yes', state } : { kind: 'no' };
}

/** Has the client ask its user. @param state what the call comes back with */
export const askUser = ({ library }: McpCall, message: string, state: string): InputRequiredResult =>
  library.inputRequired({
    inputRequests: {
      confirm: library.inputRequired.elicit({
        message,
        requestedSchema: {
          type: 'object',
          properties: { confirm: { type: 'boolean', title: 'Yes, do it' } },
          required: ['confirm'],
        },
      }),
    },
    requestState: state,
  });
