import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/errors.ts';

/** What an operation gets that asks for more than it may. */
export const tooLarge = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'OPERATION_TOO_LARGE' satisfies ErrorCode } });
