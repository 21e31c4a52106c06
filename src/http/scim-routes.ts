import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { CallerLimit } from '../access/caller-limit.ts';
import type { BucketState } from '../access/throttle.ts';
import type { Services } from '../graphql/context.ts';
import { type Directory, hasVersion } from '../identity/scim/directory.ts';
import { listResponse, providerConfig, resourceTypes, schemas } from '../identity/scim/scim-documents.ts';
import { badRequest, ScimError } from '../identity/scim/scim-error.ts';
import { projected, readQuery, type ScimQuery } from '../identity/scim/scim-query.ts';
import { groupResource, userResource } from '../identity/scim/scim-resources.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { ApiError, type ErrorCode, errorCatalogue, InputError, rateLimited } from '../kernel/errors.ts';
import { lruOf } from '../kernel/lru.ts';
import { callerErrorOfAny } from '../platform/postgres/faults.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The directory that sends a request by SCIM. */
    directory: Directory | null;
  }
}

interface ScimRouteOptions {
  services: Pick<Services, 'activity' | 'scimGroups' | 'scimTokens' | 'scimUsers'>;
  /** That of callers who are not known. */
  limit: CallerLimit;
  onFault: (error: unknown, request: FastifyRequest) => void;
}

export const SCIM_PREFIX = '/scim/v2/';

const MEDIA_TYPE = 'application/scim+json; charset=utf-8';
const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';
/** A thousand members. */
const MAX_BODY = 524_288;
/** How long a token that was valid is looked up without counting against the limit of its address. */
const TRUST_MS = 600_000;
const BEARER = /^bearer +([\w-]{1,128})$/i;

type ForOrganization = FastifyRequest<{ Params: { org: string; id?: string } }>;

/** Serves SCIM 2.0 (RFC 7643, RFC 7644) to the directories of organizations: `/scim/v2/{org}` (docs/decisions/0068). */
export function addScimRoutes(server: FastifyInstance, options: ScimRouteOptions): void {
  const routes = new ScimRoutes(options);
  server.decorateRequest('directory', null);
  void server.register(
    async (scope) => {
      acceptScim(scope);
      scope.setErrorHandler((error, request, reply) => routes.refuse(error, request, reply));
      scope.addHook('onRequest', (request) => routes.admit(request as ForOrganization));
      const add = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, handler: Handler) =>
        scope.route({
          method,
          url: `/:org${url}`,
          exposeHeadRoute: false,
          bodyLimit: MAX_BODY,
          handler: (request, reply) => handler(request as ForOrganization, reply),
        });
      addDocuments(add, routes);
      for (const kind of ['Users', 'Groups'] as const) {
        const path = `/${kind}`;
        add('GET', path, (request, reply) => routes.list(request, reply, kind));
        add('POST', path, (request, reply) => routes.create(request, reply, kind));
        add('GET', `${path}/:id`, (request, reply) => routes.get(request, reply, kind));
        add('PUT', `${path}/:id`, (request, reply) => routes.change(request, reply, kind, 'replace'));
        add('PATCH', `${path}/:id`, (request, reply) => routes.change(request, reply, kind, 'patch'));
        add('DELETE', `${path}/:id`, (request, reply) => routes.delete(request, reply, kind));
      }
      for (const path of ['/Bulk', '/Me'])
        scope.all(`/:org${path}`, () => {
          throw new ScimError(501, `The service has no ${path}.`);
        });
      scope.all('/:org/*', () => {
        throw new ScimError(404, 'There is no such resource.');
      });
    },
    { prefix: SCIM_PREFIX.slice(0, -1) },
  );
}

type Handler = (request: ForOrganization, reply: FastifyReply) => unknown;

function addDocuments(add: (method: 'GET', url: string, handler: Handler) => void, routes: ScimRoutes): void {
  const base = (request: ForOrganization) => routes.baseOf(request);
  const send = (reply: FastifyReply, body: object) => reply.type(MEDIA_TYPE).send(JSON.stringify(body));
  const one = (resources: readonly { id: string }[], id: string | undefined) => {
    const found = resources.find((resource) => resource.id === id);
    if (!found) throw new ScimError(404, 'There is no such resource.');
    return found;
  };
  add('GET', '/ServiceProviderConfig', (request, reply) => send(reply, providerConfig(base(request))));
  for (const [path, documents] of [
    ['/ResourceTypes', resourceTypes],
    ['/Schemas', schemas],
  ] as const) {
    add('GET', path, (request, reply) => send(reply, listResponse(documents(base(request)))));
    add('GET', `${path}/:id`, (request, reply) => send(reply, one(documents(base(request)), request.params.id)));
  }
}

/** Bodies are JSON, by either of its names. */
function acceptScim(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    ['application/scim+json', 'application/json'],
    { parseAs: 'string' },
    (_request, body, done) => {
      try {
        done(null, body === '' ? undefined : JSON.parse(body as string));
      } catch {
        done(badRequest('invalidSyntax', 'The body is no JSON.'));
      }
    },
  );
}

class ScimRoutes {
  readonly #options: ScimRouteOptions;
  readonly #trusted = lruOf<true>(10_000, { ttl: TRUST_MS, ttlResolution: 1_000 });

  constructor(options: ScimRouteOptions) {
    this.#options = options;
  }

  /** Finds the directory by its token, within the limits of its address and of the token. */
  async admit(request: ForOrganization): Promise<void> {
    const { limit, services } = this.#options;
    const { caller, params, headers } = request;
    const token = BEARER.exec(headers.authorization ?? '')?.[1] ?? '';
    const key = `${params.org} ${token}`;
    const guess = this.#trusted.has(key) ? null : await limit.take(caller, 1);
    if (guess) demandRoom(guess);
    const { scimTokens } = services;
    const isAsked = scimTokens.isToken(token) && !isUnstorable(params.org);
    const found = isAsked ? await scimTokens.living(token, params.org) : null;
    if (!found) {
      this.#trusted.delete(key);
      throw new ScimError(401, 'The token is missing, unknown, expired, or of another organization.');
    }
    this.#trusted.set(key, true);
    if (guess) limit.giveBack(caller);
    demandRoom(await scimTokens.take(found));
    caller.scimTokenId = found.id;
    // nothing has such an identifier, and no record could name it
    if (isUnstorable(params.id ?? '')) throw new ScimError(404, 'There is no such resource.');
    request.directory = { caller, token: found };
  }

  baseOf({ params }: ForOrganization): string {
    return this.#options.services.scimTokens.baseUrl(params.org);
  }

  async list(request: ForOrganization, reply: FastifyReply, kind: Kind): Promise<FastifyReply> {
    const query = queryOf(request);
    const base = this.baseOf(request);
    const { scimUsers, scimGroups } = this.#options.services;
    const directory = directoryOf(request);
    const { total, startIndex, rows } =
      kind === 'Users'
        ? await usersIn(scimUsers, directory, query, base)
        : await groupsIn(scimGroups, directory, query, base);
    const resources = rows.map((row) => projected(row, query));
    return reply.type(MEDIA_TYPE).send(JSON.stringify(listResponse(resources, total, startIndex)));
  }

  async get(request: ForOrganization, reply: FastifyReply, kind: Kind): Promise<FastifyReply> {
    const query = queryOf(request);
    const resource = await this.#read(request, kind, request.params.id!, query);
    if (hasVersion(request.headers['if-none-match'], resource.meta.version))
      return reply.code(304).header('etag', resource.meta.version).send();
    return this.#send(reply, resource, query);
  }

  /** The query is read before anything is done. */
  async create(request: ForOrganization, reply: FastifyReply, kind: Kind): Promise<FastifyReply> {
    const query = queryOf(request);
    request.caller.request.successStatus = 201;
    const id = await this.#serviceOf(kind).create(directoryOf(request), request.body);
    const resource = await this.#read(request, kind, id, query);
    return this.#send(reply.code(201).header('location', resource.meta.location), resource, query);
  }

  async change(
    request: ForOrganization,
    reply: FastifyReply,
    kind: Kind,
    how: 'replace' | 'patch',
  ): Promise<FastifyReply> {
    const { id = '' } = request.params;
    const query = queryOf(request);
    // a group may have thousands of members: a PATCH is not answered with all of them
    const isSilent = kind === 'Groups' && how === 'patch';
    request.caller.request.successStatus = isSilent ? 204 : 200;
    await this.#serviceOf(kind)[how](directoryOf(request), id, request.body, request.headers['if-match']);
    if (isSilent) return reply.code(204).send();
    return this.#send(reply, await this.#read(request, kind, id, query), query);
  }

  async delete(request: ForOrganization, reply: FastifyReply, kind: Kind): Promise<FastifyReply> {
    request.caller.request.successStatus = 204;
    await this.#serviceOf(kind).delete(directoryOf(request), request.params.id!, request.headers['if-match']);
    return reply.code(204).send();
  }

  #serviceOf(kind: Kind) {
    const { scimUsers, scimGroups } = this.#options.services;
    return kind === 'Users' ? scimUsers : scimGroups;
  }

  async #read(request: ForOrganization, kind: Kind, id: string, query: ScimQuery): Promise<Resource> {
    const directory = directoryOf(request);
    const base = this.baseOf(request);
    const { scimUsers, scimGroups } = this.#options.services;
    return (
      kind === 'Users'
        ? userResource(await scimUsers.get(directory, id, query), base)
        : groupResource(await scimGroups.get(directory, id, query), base)
    ) as Resource;
  }

  #send(reply: FastifyReply, resource: Resource, query: ScimQuery): FastifyReply {
    const body = JSON.stringify(projected(resource, query));
    return reply.header('etag', resource.meta.version).type(MEDIA_TYPE).send(body);
  }

  /** Answers an error in the form of RFC 7644, 3.12. */
  refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const shown = callerErrorOfAny(error);
    const { status, detail, scimType, code, headers } = refusalOf(shown) ?? INTERNAL;
    if (status >= 500 && !(shown instanceof ScimError || shown instanceof ApiError))
      this.#options.onFault(error, request);
    this.#record(request as ForOrganization, status, code);
    const body = { schemas: [ERROR], status: String(status), ...(scimType && { scimType }), detail };
    return reply.code(status).headers(headers).type(MEDIA_TYPE).send(JSON.stringify(body));
  }

  /** Administrators see what their directory was refused. */
  #record({ directory, caller, method, params, routeOptions }: ForOrganization, statusCode: number, code: ErrorCode) {
    const action = ACTIONS[method];
    if (!directory || !action || caller.request.recorded) return;
    this.#options.services.activity.record(
      caller,
      {
        action,
        resourceType: routeOptions.url?.includes('/Groups') ? 'scim_group' : 'scim_user',
        resourceId: params.id ?? null,
        orgId: directory.token.orgId,
      },
      { statusCode, errorCode: code },
    );
  }
}

type Kind = 'Users' | 'Groups';
type Resource = Record<string, unknown> & { meta: { version: string; location: string } };

const ACTIONS: Readonly<Record<string, 'create' | 'update' | 'delete'>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'update',
  DELETE: 'delete',
};

const usersIn = async (users: Services['scimUsers'], directory: Directory, query: ScimQuery, base: string) => {
  const page = await users.list(directory, query);
  return { ...page, rows: page.rows.map((row) => userResource(row, base)) };
};

const groupsIn = async (groups: Services['scimGroups'], directory: Directory, query: ScimQuery, base: string) => {
  const page = await groups.list(directory, query);
  return { ...page, rows: page.rows.map((row) => groupResource(row, base)) };
};

const queryOf = ({ query }: FastifyRequest): ScimQuery => readQuery(query as Record<string, unknown>);

function directoryOf({ directory }: FastifyRequest): Directory {
  if (!directory) throw new Error('A request by SCIM was not admitted.');
  return directory;
}

/** @throws RATE_LIMIT_EXCEEDED */
function demandRoom({ allowed, retryAfter }: BucketState): void {
  if (!allowed) throw rateLimited(retryAfter);
}

interface ScimRefusal {
  status: number;
  detail: string;
  scimType: string | null;
  code: ErrorCode;
  headers: Record<string, string>;
}

const INTERNAL: ScimRefusal = {
  status: 500,
  detail: errorCatalogue.INTERNAL_SERVER_ERROR.message,
  scimType: null,
  code: 'INTERNAL_SERVER_ERROR',
  headers: {},
};

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'AUTHENTICATION_FAILED',
  403: 'FORBIDDEN',
  404: 'RESOURCE_NOT_FOUND',
  409: 'RESOURCE_CONFLICT',
  412: 'PRECONDITION_FAILED',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
};
const codeOf = (status: number): ErrorCode => CODES[status] ?? 'INVALID_REQUEST';

function refusalOf(error: unknown): ScimRefusal | null {
  if (error instanceof ScimError) {
    const { status, message: detail, scimType } = error;
    const headers: Record<string, string> = status === 401 ? { 'www-authenticate': 'Bearer realm="scim"' } : {};
    return { status, detail, scimType, code: codeOf(status), headers };
  }
  if (error instanceof InputError)
    return { ...INTERNAL, status: 400, detail: error.message, scimType: 'invalidValue', code: 'VALIDATION_ERROR' };
  if (error instanceof ApiError) {
    const { status } = errorCatalogue[error.code];
    const wait = error.details.retry_after;
    const headers: Record<string, string> = typeof wait === 'number' ? { 'retry-after': String(wait) } : {};
    return { status, detail: error.message, scimType: null, code: error.code, headers };
  }
  const { statusCode, code } = error as { statusCode?: number; code?: string };
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500 || !code?.startsWith('FST_')) return null;
  const scimType = statusCode === 400 ? 'invalidSyntax' : null;
  return {
    ...INTERNAL,
    status: statusCode,
    detail: DETAILS[statusCode] ?? 'The request is malformed.',
    scimType,
    code: codeOf(statusCode),
  };
}

const DETAILS: Readonly<Record<number, string>> = {
  413: `A body has at most ${MAX_BODY} bytes.`,
  415: 'A body is application/scim+json, or application/json.',
};
