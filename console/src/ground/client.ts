import { createClient as createSocket } from 'graphql-ws';
import { Client, type CombinedError, fetchExchange, mapExchange, subscriptionExchange } from 'urql';
import { goToSignIn, serviceUrl } from './address';
import { cache } from './cache';
import { readWhenBack } from './read-when-back';
import { repeatOvertaken } from './repeat-overtaken';
import { streamState } from './stream-state';

const url = new URL('graphql', serviceUrl).href;

/** The ids of documents by their names, once the service has said that it takes no texts from browsers. */
let idsOfDocuments: Readonly<Record<string, string>> | null = null;

const nameIn = (text: string): string => /(?:query|mutation|subscription) (\w+)/.exec(text)?.[1] ?? '';

/** What names a document to the service: its text or, where browsers may not send texts, its id. */
const named = (query: string): { query: string } | { documentId: string } =>
  idsOfDocuments ? { documentId: idsOfDocuments[nameIn(query)] ?? '' } : { query };

/** Sends a request; one that is refused because of its text is sent again by its id, and so are all after it. */
async function sendNamed(input: RequestInfo | URL, init: RequestInit | undefined): Promise<Response> {
  if (typeof init?.body !== 'string') return fetch(input, init);
  const { query, ...rest } = JSON.parse(init.body) as { query: string };
  const send = () => fetch(input, { ...init, body: JSON.stringify({ ...rest, ...named(query) }) });
  const answer = await send();
  if (idsOfDocuments || answer.status !== 403) return answer;
  if (!(await answer.clone().text()).includes('DOCUMENT_NOT_REGISTERED')) return answer;
  idsOfDocuments = (await import('../generated/document-ids')).documentIds;
  return send();
}

/** Puts the trace id of an answer, which is in its headers, beside each of its errors: a reader can pass it on. */
async function tracedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const answer = await sendNamed(input, init);
  const traceId = answer.headers.get('x-trace-id');
  const text = await answer.text();
  const { status } = answer;
  const headers = { 'content-type': answer.headers.get('content-type') ?? 'application/json' };
  const hasErrors = !answer.ok || text.includes('"errors"');
  return new Response(hasErrors ? withTrace(text, traceId) : text, { status, headers });
}

interface RefusedOnArrival {
  error?: unknown;
  message?: unknown;
  details?: unknown;
}

/** What is refused before GraphQL gets it has the body of an error of REST. A server or proxy has words of its own. */
const errorsOf = ({ error, message, details }: RefusedOnArrival) =>
  typeof error === 'string' && /^[A-Z_]+$/.test(error) ? [{ message, extensions: { code: error, details } }] : null;

function withTrace(text: string, traceId: string | null): string {
  try {
    const body = JSON.parse(text) as (RefusedOnArrival & { errors?: { extensions?: object }[] }) | null;
    const errors = body?.errors ?? (body && errorsOf(body));
    if (!Array.isArray(errors)) return text;
    const traced = errors.map((error) => ({
      ...error,
      extensions: { ...error.extensions, ...(traceId && { traceId }) },
    }));
    return JSON.stringify({ ...body, errors: traced });
  } catch (error) {
    if (error instanceof SyntaxError) return text; // a proxy's own page
    throw error;
  }
}

const isSignedOut = (error: CombinedError) =>
  error.graphQLErrors.some(({ extensions }) => extensions.code === 'AUTHENTICATION_FAILED');

const socket = createSocket({
  url: url.replace(/^http/, 'ws'),
  retryAttempts: Number.POSITIVE_INFINITY,
  // a session that is over ends the socket with 4403: the next query leads to the page to sign in
  shouldRetry: (event) => !(event instanceof CloseEvent && event.code === 4403),
  keepAlive: 20_000,
  on: {
    connected: () => streamState.set('live'),
    closed: (event) => {
      streamState.set('away');
      if (event instanceof CloseEvent && event.code === 4403) goToSignIn();
    },
  },
});

const fetchOptions: RequestInit = { headers: { 'x-csrf': '1' }, credentials: 'same-origin' };

/** For a change that a page may be left right after: what is not on its way yet would be dropped with the page. */
export const outlivingPage = { fetchOptions: { ...fetchOptions, keepalive: true } };

/** The client of whoever holds the cookie. It has no token, and no storage. */
export const client = new Client({
  url,
  fetch: tracedFetch,
  fetchOptions,
  preferGetMethod: false,
  exchanges: [
    mapExchange({ onError: (error) => void (isSignedOut(error) && goToSignIn()) }),
    cache(),
    readWhenBack,
    repeatOvertaken,
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({
          unsubscribe: socket.subscribe(
            // the protocol demands a text, also beside an id
            { query: '', ...named(query ?? ''), ...(variables && { variables }) },
            { ...sink, next: ({ data = null, errors }) => sink.next({ data, ...(errors && { errors }) }) },
          ),
        }),
      }),
    }),
  ],
});

/** Sends a document past the cache: for values that must not stay in memory, and for searches. */
export async function askPastCache<Data, Variables>(
  document: { toString(): string; __apiType?: (variables: Variables) => Data },
  variables: Variables,
): Promise<{ data?: Data; problem?: string; code?: string; traceId?: string }> {
  const answer = await tracedFetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-csrf': '1' },
    credentials: 'same-origin',
    body: JSON.stringify({ query: document.toString(), variables }),
  });
  const body = (await answer.json()) as {
    data?: Data | null;
    errors?: { message: string; extensions?: { code?: string; traceId?: string } }[];
  };
  const [error] = body.errors ?? [];
  const { code, traceId } = error?.extensions ?? {};
  return {
    ...(body.data && { data: body.data }),
    ...(error && { problem: error.message }),
    ...(code && { code }),
    ...(traceId && { traceId }),
  };
}
