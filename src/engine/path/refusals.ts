import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../kernel/errors.ts';

/** The error for an operation that is over a limit. */
export const tooLarge = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'OPERATION_TOO_LARGE' satisfies ErrorCode } });
