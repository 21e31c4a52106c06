import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Activity } from '../generated/prisma/client.ts';
import { Context, type Services } from '../graphql/context.ts';
import type { Gate } from '../graphql/plugins/access-plugin.ts';
import { parseDateTime } from '../graphql/scalars.ts';
import type { ActivityFilters } from '../insight/activity/activity.service.ts';
import { type ExportFormat, writers } from '../insight/activity/exported-activity.ts';
import type { Caller } from '../kernel/caller.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { codeOf, errorCatalogue, InputError, type InputIssue, valueIssue } from '../kernel/errors.ts';
import { callerError } from '../platform/postgres/faults.ts';

export const ACTIVITY_EXPORT_ROUTE = '/v1/orgs/:org_id/activity/export';

/** The list whose gate the export stands behind. */
const LISTED = 'organizationActivity';
const MAX_TEXT = 255;
const AFTER = /^(\S{10,40}),(\w{1,64})$/;

const TEXTS = {
  action: 'action',
  resource_type: 'resourceType',
  resource_id: 'resourceId',
  user_id: 'userId',
  token_id: 'tokenId',
} as const satisfies Record<string, keyof ActivityFilters>;
const TIMES = { start_time: 'startTime', end_time: 'endTime' } as const satisfies Record<string, keyof ActivityFilters>;

interface ExportQuery {
  format: ExportFormat;
  filters: ActivityFilters;
  after: string | null;
}

/**
 * Serves `GET /v1/orgs/{org_id}/activity/export`: all records that the list has, as lines of JSON or as a table. An
 * answer that ends early is broken off, and not ended, so that nobody takes it for the whole; it goes on after the last
 * record that arrived.
 */
export function addActivityExport(server: FastifyInstance, services: Services, schema: GraphQLSchema): void {
  const gate = schema.getQueryType()!.getFields()[LISTED]!.extensions.gate as Gate;
  const open = new Set<Readable>();
  server.addHook('preClose', async () => {
    for (const stream of open) stream.destroy();
  });
  server.get(ACTIVITY_EXPORT_ROUTE, { exposeHeadRoute: false }, async (request, reply) => {
    const { org_id: orgId } = request.params as { org_id: string };
    const { caller } = new Context(request.caller, services);
    try {
      return await send(request, reply, { caller, orgId, services, gate, open });
    } catch (error) {
      const known = callerError(error);
      const code = codeOf(known);
      services.activity.record(caller, entryOf(orgId, {}), {
        statusCode: errorCatalogue[code].status,
        errorCode: code,
      });
      caller.request.recorded = true;
      if (!(known instanceof InputError)) throw known;
      return reply.code(422).send({ detail: known.issues.map(itemOf) });
    }
  });
}

interface Sending {
  caller: Caller;
  orgId: string;
  services: Services;
  gate: Gate;
  open: Set<Readable>;
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { caller, orgId, services, gate, open }: Sending,
): Promise<FastifyReply> {
  const { activityExports, activity } = services;
  // a new context each time: it keeps nothing of what was true before
  const demand = async () => (await gate(new Context(caller, services), {}, { orgId }))!.grant;
  await demand();
  const { format, filters, after } = queryOf(request);
  const leave = await activityExports.enter(orgId, caller.principal.userId);
  const pages = activityExports.pages({ caller, orgId, filters, after, demand });
  const stream = Readable.from(written(format, pages));
  // also while the client reads so slowly that no page is asked for
  const late = setTimeout(() => stream.destroy(), activityExports.limitMs);
  // the next one may begin before the answer has wholly left
  stream.once('end', leave);
  stream.once('close', () => {
    clearTimeout(late);
    open.delete(stream);
    leave();
    // HTTP/1.0 has no other way to tell a part from the whole
    if (!stream.readableEnded && request.raw.httpVersion === '1.0') request.raw.socket.resetAndDestroy();
  });
  try {
    await readable(stream);
    // before anything leaves: what could not be recorded is not shown
    await activity.recordNow(caller, entryOf(orgId, { format, filters: namesOf(filters) }), stream);
  } catch (error) {
    stream.destroy();
    throw error;
  }
  open.add(stream);
  if (reply.raw.destroyed) stream.destroy();
  caller.request.recorded = true;
  return reply
    .headers({
      'content-type': writers[format].mediaType,
      'content-disposition': `attachment; filename="activity.${format}"`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    .send(stream);
}

/** Waits for the first page, whose fault is still an answer. */
const readable = (stream: Readable): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.once('readable', resolve);
    stream.once('error', reject);
  });

/** One text for each page. */
async function* written(format: ExportFormat, pages: AsyncGenerator<Activity[], void>): AsyncGenerator<string, void> {
  const { head, write } = writers[format];
  let before = head;
  for await (const records of pages) {
    const text = `${before}${records.map(write).join('')}`;
    before = '';
    if (text !== '') yield text;
  }
  if (before !== '') yield before;
}

const namesOf = (filters: ActivityFilters): string[] =>
  Object.entries(filters).flatMap(([name, value]) => (value === null || value === undefined ? [] : name));

const entryOf = (orgId: string, metadata: Record<string, unknown>) =>
  ({ action: 'export', resourceType: 'activity', resourceId: null, orgId, metadata }) as const;

const itemOf = ({ path, msg, type, input, ctx }: InputIssue) => ({
  type,
  loc: ['query', ...path],
  msg,
  input: input ?? null,
  ...(ctx && { ctx }),
});

/** @throws InputError with every parameter that is wrong */
function queryOf({ query, headers }: FastifyRequest): ExportQuery {
  const given = query as Record<string, unknown>;
  const issues: InputIssue[] = [];
  const read = <Value>(name: string, parse: (text: string) => Value): Value | null => {
    const text = given[name];
    if (text === undefined || text === '') return null;
    try {
      if (typeof text !== 'string') throw new GraphQLError('it is given more than once');
      if (text.length > MAX_TEXT || isUnstorable(text)) throw new GraphQLError('it is too long, or no text');
      return parse(text);
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      issues.push(valueIssue([name], error.message));
      return null;
    }
  };
  const filters: Record<string, unknown> = { success: read('success', flagIn) };
  for (const [name, field] of Object.entries(TEXTS)) filters[field] = read(name, (text) => text);
  for (const [name, field] of Object.entries(TIMES)) filters[field] = read(name, parseDateTime);
  const after = read('after', keyIn);
  const format = read('format', formatIn) ?? accepted(headers.accept);
  const { startTime, endTime } = filters as ActivityFilters;
  if (startTime && endTime && endTime < startTime) issues.push(valueIssue(['end_time'], 'the end is before the start'));
  if (issues.length > 0) throw new InputError(issues);
  return { format, filters, after };
}

const flagIn = (text: string): boolean => {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new GraphQLError("it is 'true' or 'false'");
};

const formatIn = (text: string): ExportFormat => {
  if (text === 'ndjson' || text === 'csv') return text;
  throw new GraphQLError("it is 'ndjson' or 'csv'");
};

/** The key of the record with this time and identifier, which the client has read. */
function keyIn(text: string): string {
  const [, time, id] = AFTER.exec(text) ?? [];
  if (time === undefined) throw new GraphQLError('it is the time and the identifier of a record, with a comma between');
  return `${parseDateTime(time).toISOString()} ${id}`;
}

/** A table for those who name one, and JSON for all others. */
const accepted = (accept = ''): ExportFormat => (/\btext\/csv\b/i.test(accept) ? 'csv' : 'ndjson');
