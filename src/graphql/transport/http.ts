import type { WebsocketHandler } from '@fastify/websocket';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { isOverloaded } from '../../core/json-shape.ts';
import { jsonBounds, MAX_ANSWER_LENGTH } from './bounds.ts';
import type { GraphQLEndpoint } from './endpoint.ts';
import { graphiqlPage, wantsPage } from './graphiql.ts';
import type { PlainPost } from './plain-post.ts';
import { tooLarge } from './refusals.ts';
import { streamOf } from './server-sent-events.ts';

/**
 * A document, and variables that hold the largest input there is with room to spare; more than the operator lets any
 * body have it is not.
 */
const MAX_BODY_BYTES = 1024 * 1024;

/** What a form of a foreign page can send without being asked for leave. */
const FORM = /^\s*(?:multipart\/|application\/x-www-form-urlencoded)/i;

/** Answers that go on while their reader takes them. */
const STREAM = /^(?:text\/event-stream|multipart\/mixed)/;

const refused = (message: string) => ({ errors: [tooLarge(message).toJSON()] });
const OVERLOADED = refused(
  `A request may hold lists and objects ${jsonBounds.maxDepth} levels deep, and ${jsonBounds.maxBrackets} of them.`,
);
const TOO_LONG = refused(`The answer is longer than ${MAX_ANSWER_LENGTH} characters. Ask for smaller pages.`);

interface Options {
  endpoint: GraphQLEndpoint;
  plain: PlainPost;
  socket: WebsocketHandler;
  bodyLimitBytes: number;
  graphiql: boolean;
}

/** `/graphql`: POST, GET for queries, subscriptions as SSE and over WebSocket, GraphiQL for browsers. */
export function addGraphQL(
  server: FastifyInstance,
  { endpoint, plain, socket, bodyLimitBytes, graphiql }: Options,
): void {
  const bodyLimit = Math.min(MAX_BODY_BYTES, bodyLimitBytes);
  const page = graphiql ? graphiqlPage() : null;
  void server.register(async (scope) => {
    // read here, as text; yoga answers what is no request as GraphQL over HTTP wants it
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (request, body, done) => {
      const isForm = FORM.test(request.headers['content-type'] ?? '');
      done(isForm ? new ApiError('UNSUPPORTED_MEDIA_TYPE', { expected: 'application/json' }) : null, body);
    });
    const handler = async (req: FastifyRequest, reply: FastifyReply) => {
      if (page && wantsPage(req)) return page(req, reply);
      if (isOverloaded(jsonOf(req), jsonBounds)) return reply.status(400).send(OVERLOADED);
      const answer = req.method === 'POST' ? await plain(req) : null;
      if (answer) return reply.header('content-type', answer.type).send(withinLength(answer.text));
      const response = await endpoint.fetch(requestOf(endpoint, req), { req, reply });
      reply.status(response.status);
      response.headers.forEach((value, name) => {
        reply.header(name, value);
      });
      const stream = streamOf(req);
      if (stream) return reply.send(stream);
      if (STREAM.test(response.headers.get('content-type') ?? '')) return reply.send(response.body);
      return reply.send(withinLength(await response.text()));
    };
    scope.route({ url: '/graphql', method: 'GET', exposeHeadRoute: false, handler, wsHandler: socket });
    scope.route({ url: '/graphql', method: ['POST', 'OPTIONS'], handler });
  });
}

const withinLength = (text: string): string => (text.length > MAX_ANSWER_LENGTH ? JSON.stringify(TOO_LONG) : text);

/** What of a request is parsed as JSON. */
function jsonOf({ method, body, query }: FastifyRequest): string {
  if (method === 'POST') return typeof body === 'string' ? body : '';
  const { variables, extensions } = query as Record<string, unknown>;
  return [variables, extensions]
    .flat()
    .filter((part) => typeof part === 'string')
    .join(' ');
}

/** The request for yoga, made here: given Node's, it would look at each byte of a body to know whether there is one. */
function requestOf({ fetchAPI }: GraphQLEndpoint, { method, url, headers, body }: FastifyRequest): Request {
  return new fetchAPI.Request(`http://localhost${url}`, {
    method,
    headers: headers as Record<string, string>, // lists of values are joined where headers may have them
    ...(method === 'POST' ? { body: typeof body === 'string' ? body : '' } : {}),
  });
}
