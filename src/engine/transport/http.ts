import type { WebsocketHandler } from '@fastify/websocket';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { ApiError } from '../../kernel/errors.ts';
import { overloadOf, VALUES_PER_KEY } from '../../kernel/json-shape.ts';
import { tooLarge } from '../path/refusals.ts';
import {
  answerTypeOf,
  byWeight,
  isAcceptable,
  NO_STREAM,
  NOT_ACCEPTABLE,
  RESPONSE_TYPE,
  statusOf,
} from './answer-type.ts';
import { jsonBounds, MAX_ANSWER_LENGTH } from './bounds.ts';
import type { GraphQLEndpoint } from './endpoint.ts';
import { graphiqlPage, wantsPage } from './graphiql.ts';
import { type PlainAnswer, plainPost } from './plain-post.ts';
import { type PlainReader, parsedBodyOf } from './plain-request.ts';
import { plainStream } from './plain-stream.ts';
import { answerWithFrames, framesOf } from './server-sent-events.ts';

/**
 * Enough for a document, and for variables with the largest possible input. The operator's limit for bodies applies if
 * it is lower.
 */
const MAX_BODY_BYTES = 1024 * 1024;

/** Content types that a form of a foreign page can send without a preflight request. */
const FORM = /^\s*(?:multipart\/|application\/x-www-form-urlencoded)/i;

/** Streaming answers. */
const STREAM = /^(?:text\/event-stream|multipart\/mixed)/;

const refused = (message: string) => ({ errors: [tooLarge(message).toJSON()] });
const OVERLOADED = refused(
  `A request may hold lists and objects ${jsonBounds.maxDepth} levels deep, and ${jsonBounds.maxValues} values ` +
    `in all, where each key counts as ${VALUES_PER_KEY} more.`,
);
const TOO_LONG = refused(`The answer is longer than ${MAX_ANSWER_LENGTH} characters. Ask for smaller pages.`);

interface HttpTransportOptions {
  endpoint: GraphQLEndpoint;
  read: PlainReader;
  socket: WebsocketHandler;
  bodyLimitBytes: number;
  graphiql: boolean;
}

/** `/graphql`: POST, GET for queries, subscriptions as SSE and over WebSocket, GraphiQL for browsers. */
export function addGraphQL(
  server: FastifyInstance,
  { endpoint, read, socket, bodyLimitBytes, graphiql }: HttpTransportOptions,
): void {
  const plain = plainPost(endpoint, read);
  const live = plainStream(endpoint, read);
  const bodyLimit = Math.min(MAX_BODY_BYTES, bodyLimitBytes);
  const page = graphiql ? graphiqlPage() : null;
  void server.register(async (scope) => {
    // read here, as text; yoga answers malformed requests as GraphQL over HTTP requires
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (request, body, done) => {
      const isForm = FORM.test(request.headers['content-type'] ?? '');
      done(isForm ? new ApiError('UNSUPPORTED_MEDIA_TYPE', { expected: 'application/json' }) : null, body);
    });
    const handler = async (req: FastifyRequest, reply: FastifyReply) => {
      if (page && wantsPage(req)) return page(req, reply);
      const { accept } = req.headers;
      // before anything runs: yoga would find out afterwards
      if (accept && !isAcceptable(accept)) return reply.status(406).send(NOT_ACCEPTABLE);
      if (accept) req.headers.accept = byWeight(accept);
      if (overloadOf(jsonOf(req), jsonBounds)) return reply.status(400).type(refusalTypeOf(req)).send(OVERLOADED);
      const answer = req.method === 'POST' ? await plain(req) : null;
      if (answer) return sendText(reply, answer);
      const started = req.method === 'POST' ? await live(req) : null;
      if (started) return answerWithFrames(reply, started);
      const response = await endpoint.fetch(requestOf(endpoint, req), { req, reply });
      reply.status(response.status);
      response.headers.forEach((value, name) => {
        reply.header(name, value);
      });
      const frames = framesOf(req);
      if (frames) return answerWithFrames(reply, frames);
      const type = response.headers.get('content-type') ?? '';
      if (STREAM.test(type)) return reply.send(response.body);
      if (response.status === 406) return reply.type(refusalTypeOf(req)).send(NO_STREAM);
      const text = await response.text();
      // only the type that has such statuses costs another look, and only where errors come first
      const isLook = response.status === 200 && type.startsWith(RESPONSE_TYPE) && text.startsWith('{"errors"');
      const status = isLook ? statusOf(type, JSON.parse(text) as ExecutionResult) : response.status;
      return sendText(reply, { status, type, text });
    };
    scope.route({ url: '/graphql', method: 'GET', exposeHeadRoute: false, handler, wsHandler: socket });
    scope.route({ url: '/graphql', method: ['POST', 'OPTIONS'], handler });
  });
}

function sendText(reply: FastifyReply, { status, type, text }: PlainAnswer): FastifyReply {
  const isTooLong = text.length > MAX_ANSWER_LENGTH;
  reply.status(isTooLong ? statusOf(type, TOO_LONG) : status).header('content-type', type);
  return reply.send(isTooLong ? JSON.stringify(TOO_LONG) : text);
}

/** The type of a refusal, to which streams are no alternative. */
const refusalTypeOf = ({ headers }: FastifyRequest): string =>
  `${answerTypeOf(headers.accept) ?? 'application/json'}; charset=utf-8`;

/** The part of a request that is parsed as JSON. */
function jsonOf({ method, body, query }: FastifyRequest): string {
  if (method === 'POST') return typeof body === 'string' ? body : '';
  const { variables, extensions } = query as Record<string, unknown>;
  return [variables, extensions]
    .flat()
    .filter((part) => typeof part === 'string')
    .join(' ');
}

/**
 * The request for yoga, created here: with Node's request, it would inspect each byte of a body to find out whether
 * there is one.
 */
function requestOf({ fetchAPI }: GraphQLEndpoint, incoming: FastifyRequest): Request {
  const { method, url, headers, body } = incoming;
  const request = new fetchAPI.Request(`http://localhost${url}`, {
    method,
    headers: headers as Record<string, string>, // repeated headers are joined where that is allowed
    ...(method === 'POST' ? { body: typeof body === 'string' ? body : '' } : {}),
  });
  const parsed = parsedBodyOf(incoming);
  if (parsed) Object.defineProperty(request, 'json', { value: async () => parsed });
  return request;
}
