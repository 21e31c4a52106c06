import { useCallback, useRef } from 'react';
import {
  type AnyVariables,
  type OperationResult,
  type TypedDocumentNode,
  useMutation,
  useQuery,
  useSubscription,
} from 'urql';
import { isPassing } from './passing';

/** A generated document: its text, with the types of its variables and its data. */
export interface Text<Data, Variables> {
  toString(): string;
  __apiType?: (variables: Variables) => Data;
}

/** A document as urql takes it: a text is one, with types that it does not have by itself. */
export const textOf = <Data, Variables extends AnyVariables>(document: Text<Data, Variables>) =>
  document.toString() as unknown as TypedDocumentNode<Data, Variables>;

/**
 * The answer to a query, from the cache if it is there. It stays while the same is asked again. When an event takes
 * away a part of what is under way, the cache answers without data and without an error, and asks again: it stays then,
 * too, and while the service is away.
 */
export function useAnswer<Data, Variables extends AnyVariables>(
  document: Text<Data, Variables>,
  variables: Variables,
  { isWaiting = false, isFresh = true }: { isWaiting?: boolean; isFresh?: boolean } = {},
) {
  const requestPolicy = isFresh ? 'cache-and-network' : 'cache-first';
  const [{ data: latest, error, operation }, ask] = useQuery<Data, AnyVariables>({
    query: textOf(document) as unknown as TypedDocumentNode<Data, AnyVariables>,
    variables,
    pause: isWaiting,
    requestPolicy,
  });
  const whole = useRef<{ key: number; data: Data } | undefined>(undefined);
  if (latest && operation) whole.current = { key: operation.key, data: latest };
  else if (error && !isPassing(error)) whole.current = undefined;
  const data = latest ?? (whole.current?.key === operation?.key ? whole.current?.data : undefined);
  const again = useCallback(() => ask({ requestPolicy: 'network-only' }), [ask]);
  return { data, error, isLoading: !data && !error && !isWaiting, again };
}

/** Sends a change. Its result has the error, if there is one. */
export function useChange<Data, Variables extends AnyVariables>(
  document: Text<Data, Variables>,
): (variables: Variables) => Promise<OperationResult<Data, Variables>> {
  return useMutation(textOf(document))[1];
}

/** Follows a stream. What it brings goes into the cache; the latest event is returned. */
export function useStream<Data, Variables extends AnyVariables>(
  document: Text<Data, Variables>,
  variables: Variables,
  onEvent?: (data: Data) => void,
): Data | undefined {
  const [{ data }] = useSubscription<Data, Data, AnyVariables>(
    { query: textOf(document) as unknown as TypedDocumentNode<Data, AnyVariables>, variables },
    (_, event) => {
      onEvent?.(event);
      return event;
    },
  );
  return data;
}
