import type { IncomingHttpHeaders } from 'node:http';
import { startTarget, type TargetServer } from './target-server.ts';
import { waitUntil } from './wait.ts';

/** A span as a collector gets it. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  attributes: Record<string, unknown>;
  /** 2: failed. */
  status: number;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

interface Exported {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: (Omit<CollectedSpan, 'attributes' | 'status'> & {
        attributes: Attribute[];
        status: { code?: number };
      })[];
    }[];
  }[];
}

/** A collector of traces: it keeps what it gets by OTLP over HTTP, as JSON. */
export interface TraceCollector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** What names the sender. */
  readonly resource: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders[];
  /** Everything that it was sent, as it came. */
  bytes(): string;
  /** The spans of a trace, as soon as there is one of this name: the last one to end. */
  trace(traceId: string, last: string): Promise<CollectedSpan[]>;
  close(): Promise<void>;
}

const valuesOf = (attributes: Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** Starts a collector. @param status what it answers */
export async function startCollector(status = 200): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const resource: Record<string, unknown> = {};
  const target: TargetServer = await startTarget((request, response, body) => {
    response.statusCode = status;
    response.end('{}');
    if (request.headers['content-type'] !== 'application/json') return;
    for (const sent of (JSON.parse(body) as Exported).resourceSpans) {
      Object.assign(resource, valuesOf(sent.resource.attributes));
      for (const span of sent.scopeSpans.flatMap((scope) => scope.spans))
        spans.push({
          ...span,
          parentSpanId: span.parentSpanId || undefined,
          attributes: valuesOf(span.attributes),
          status: span.status.code ?? 0,
        });
    }
  });
  return {
    url: `http://127.0.0.1:${target.port}`,
    spans,
    resource,
    get headers() {
      return target.requests.map(({ headers }) => headers);
    },
    bytes: () => target.requests.map(({ path, headers, body }) => JSON.stringify([path, headers, body])).join('\n'),
    async trace(traceId, last) {
      const ofTrace = () => spans.filter((span) => span.traceId === traceId);
      await waitUntil(() => ofTrace().some(({ name }) => name === last), {
        what: () => `the span '${last}' beside ${JSON.stringify(ofTrace().map(({ name }) => name))}`,
      });
      return ofTrace();
    },
    close: () => target.close(),
  };
}
