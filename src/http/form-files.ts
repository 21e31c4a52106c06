import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Context, Services } from '../graphql/context.ts';
import type { ClaimedDigest } from '../kernel/digests.ts';
import type { ReceivedFile } from '../kernel/received-file.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { authorizeRootField } from './root-field.ts';

/** Stores the files of the façade's forms. */
export interface FormFiles {
  maxBytes: number;
  /** @param context of the operation, which gets the file */
  receive(
    context: Context,
    request: FastifyRequest,
    file: { content: Readable; fileName: string; contentType: string; digests: readonly ClaimedDigest[] },
  ): Promise<ReceivedFile>;
  discard(request: FastifyRequest, id: string): Promise<void>;
}

/** What the other parts of a form, and what separates them, take at most. */
const OTHER_PARTS_BYTES = 2 * 1024 * 1024;

/** How long the file of a form may be, as the length of the form tells. */
function lengthOf({ headers }: FastifyRequest): { atLeast: number; atMost: number } | undefined {
  const whole = headers['content-length'];
  if (whole === undefined) return undefined;
  return { atLeast: Math.max(0, Number(whole) - OTHER_PARTS_BYTES), atMost: Number(whole) };
}

/**
 * The files of forms belong to the namespace that the path names. Before the first byte is stored, the caller must pass
 * the authorization of the operation's root field there. The mutation passes it again, from what is cached for less
 * than a second: a file may take an hour, and whoever was removed meanwhile makes nothing of it.
 */
export function formFiles(schema: GraphQLSchema, services: Services, maxBytes: number): FormFiles {
  return {
    maxBytes,
    async receive(context, request, file) {
      const { findPlace } = await authorizeRootField(schema, context, request).catch(throwCallerError);
      const { orgId, workspaceId, namespaceId } = (await findPlace().catch(throwCallerError)).namespace;
      const owner = { orgId, workspaceId, namespaceId, userId: context.caller.principal.userId };
      context.receivedFile = await services.files.receiveForRequest(owner, { ...file, length: lengthOf(request) });
      return context.receivedFile;
    },
    async discard(request, id) {
      try {
        await services.files.discard(id);
      } catch (error) {
        // the answer is the same without it, and a job removes what nobody uses
        request.log.error({ err: error }, 'an unused file could not be removed');
      }
    },
  };
}
