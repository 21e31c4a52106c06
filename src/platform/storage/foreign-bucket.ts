import { Readable } from 'node:stream';
import type { Outbound } from '../outbound/outbound.ts';
import type { OutboundResponse } from '../outbound/outbound-response.ts';

/** A new object in a bucket of somebody else. */
export interface NewObject {
  endpoint: string;
  region: string;
  bucket: string;
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  key: string;
  body: Uint8Array;
  contentType: string;
}

/** A request as the client of the store has signed it. */
interface SignedRequest {
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  query: Record<string, string | string[] | null>;
  method: string;
  headers: Record<string, string>;
  body?: unknown;
}

interface PutCall {
  owner: string;
  signal: AbortSignal;
  timeoutMs: number;
}

/** The connection sets these itself, to what was signed. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['host', 'content-length', 'expect', 'connection']);

const nothing = () => undefined;
const silence = { trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

/**
 * Stores an object in a bucket that a tenant names, if there is none with its key (412 otherwise). The call is made by
 * the outbound client, under its rules, once.
 * @returns the answer, of any status @throws OutboundError
 */
export async function putNewObject(outbound: Outbound, object: NewObject, call: PutCall): Promise<OutboundResponse> {
  const { PutObjectCommand, S3Client } = await import('@aws-sdk/client-s3');
  let answer: OutboundResponse | null = null;
  const client = new S3Client({
    region: object.region,
    endpoint: object.endpoint,
    credentials: object.credentials,
    forcePathStyle: true,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 1,
    logger: silence,
    requestHandler: {
      async handle(request: SignedRequest) {
        // some names of buckets make the client ask for a session first: nothing else is sent to an address of others
        if (request.method !== 'PUT') throw new Error('The client of the store sends something other than an object.');
        answer = null;
        answer = await outbound.request({
          method: request.method,
          url: urlOf(request),
          headers: Object.fromEntries(
            Object.entries(request.headers).filter(([name]) => !OF_CONNECTION.has(name.toLowerCase())),
          ),
          body: object.body,
          redirect: 'error',
          ...call,
        });
        const headers = Object.fromEntries(answer.headers);
        return { response: { statusCode: answer.status, headers, body: Readable.from([answer.body]) } };
      },
      destroy: nothing,
    },
  });
  const { bucket: Bucket, key: Key, body: Body, contentType: ContentType } = object;
  try {
    await client.send(new PutObjectCommand({ Bucket, Key, Body, ContentType, IfNoneMatch: '*' }));
  } catch (error) {
    // a refusal is an answer, which the caller reads
    if (answer === null) throw error;
  } finally {
    client.destroy();
  }
  if (answer === null) throw new Error('The client of the store has sent nothing.');
  return answer;
}

function urlOf({ protocol, hostname, port, path, query }: SignedRequest): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, one ?? ''] as [string, string]),
  );
  const search = new URLSearchParams(given).toString();
  return `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}${search && `?${search}`}`;
}
