import { CombinedError } from 'urql';

/** A refusal that needs no request, in the form of those of the service. @param place of what is wrong in the input */
export const refusedHere = (place: readonly string[], msg: string): CombinedError => {
  const issues = [{ path: ['input', ...place], msg }];
  return new CombinedError({
    graphQLErrors: [{ message: msg, extensions: { code: 'VALIDATION_ERROR', details: { issues } } }],
  });
};
