import type { Constraints } from '../../kernel/constraints.ts';
import { ApiError } from '../../kernel/errors.ts';

/** What an app calls one of its end users: such a text can be in a header, and reads the same everywhere. */
export const endUserId = { minLength: 1, maxLength: 255, pattern: '[!-~]+' } as const satisfies Constraints;

const FORM = /^[!-~]{1,255}$/;

export const isEndUserId = (text: string): boolean => FORM.test(text);

/** Whoever names an end user means that one: no other connection is used instead. */
export const unknownEndUser = (toolInstanceId: string): ApiError =>
  new ApiError(
    'RESOURCE_NOT_FOUND',
    { resource_type: 'connection', resource_id: toolInstanceId, reason: 'unknown_end_user' },
    `The tool instance '${toolInstanceId}' has no connection of this end user: make a connect link for them.`,
  );
