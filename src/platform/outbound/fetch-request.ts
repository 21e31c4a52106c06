import { OutboundError } from './outbound-error.ts';

/** What client libraries pass to `fetch`. */
export interface FetchInit {
  method?: string | undefined;
  headers?: ConstructorParameters<typeof Headers>[0];
  body?: unknown;
  redirect?: 'follow' | 'manual' | 'error' | undefined;
  signal?: AbortSignal | null | undefined;
}

/** The arguments of `fetch` as an outbound request. @throws OutboundError invalid_request */
export function requestOf(url: string | URL, { method, body, redirect, signal, ...init }: FetchInit) {
  const headers = new Headers(init.headers);
  if (body instanceof URLSearchParams && !headers.has('content-type'))
    headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8');
  return {
    url,
    method,
    headers: Object.fromEntries(headers),
    body: bodyOf(body),
    redirect,
    signal: signal ?? undefined,
  };
}

function bodyOf(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  if (body instanceof URLSearchParams) return body.toString();
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new OutboundError('invalid_request');
}
