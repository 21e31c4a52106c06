import type { CombinedError } from 'urql';

/** The service's own words: they say what is wrong and where. */
export function Problem({ error }: { error: CombinedError | undefined }) {
  if (!error) return null;
  const text = error.networkError
    ? 'The service cannot be reached.'
    : error.graphQLErrors.map(({ message }) => message).join(' ');
  return <p role="alert">{text}</p>;
}
