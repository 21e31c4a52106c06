import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type TraceSpan, within } from '../kernel/spans.ts';
import { traceParentOf } from '../platform/tracing/trace-parent.ts';
import type { Tracing } from '../platform/tracing/tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Its span, if its trace is recorded. */
    span: TraceSpan | null;
  }
}

const W3C_ID = /^(?!0{32})[0-9a-f]{32}$/;

/** They are asked every few seconds, and nobody looks for their traces. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** Begins and ends the span of each request whose trace is recorded. All that the request does is a part of it. */
export function addRequestSpans(server: FastifyInstance, tracing: Tracing): void {
  server.decorateRequest('span', null);
  if (!tracing.isOn) return;
  server.addHook('onRequest', (request, reply, done) => {
    const span = begun(tracing, request);
    if (!span) return done();
    request.span = span;
    // a client that goes away gets no answer, and its request ends all the same
    reply.raw.once('close', () => end(span, reply));
    within(span, done);
  });
  // what follows the body runs in the context of its connection
  server.addHook('preValidation', (request, _reply, done) => {
    if (request.span) within(request.span, done);
    else done();
  });
  server.addHook('onResponse', (request, reply, done) => {
    if (request.span) end(request.span, reply);
    done();
  });
}

/** The operations of a WebSocket have traces of their own: it may be open for days. */
function begun(tracing: Tracing, request: FastifyRequest): TraceSpan | null {
  const { method, routeOptions, id, headers } = request;
  const route = routeOptions.config.template ?? routeOptions.url;
  if (headers.upgrade !== undefined || (route !== undefined && PROBES.has(route))) return null;
  const parent = headers.traceparent === undefined ? null : traceParentOf(headers.traceparent);
  const traceId = W3C_ID.test(id) ? id : undefined;
  const span = tracing.begin(route === undefined ? method : `${method} ${route}`, {
    kind: 'server',
    parent,
    isOfStranger: true,
    traceId,
    attributes: { 'http.request.method': method, ...(route === undefined ? {} : { 'http.route': route }) },
  });
  // a client may call its request as it likes: the log has that name, and the trace leads to it
  if (span && span.traceId !== id) span.set({ 'platform.trace_id': id });
  return span;
}

function end(span: TraceSpan, reply: FastifyReply): void {
  if (span.isEnded) return;
  const { statusCode, errorCode, raw } = reply;
  const isCut = !raw.writableFinished && raw.destroyed;
  if (!isCut) span.set({ 'http.response.status_code': statusCode });
  if (errorCode !== undefined) span.set({ 'platform.error_code': errorCode });
  if (isCut) span.end('client_gone');
  else span.end(statusCode >= 500 ? String(statusCode) : undefined);
}
