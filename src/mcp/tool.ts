import type { CallToolResult, InputRequiredResult, ServerContext, Tool } from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '../kernel/caller.ts';
import type { SetOptions } from './tool-sets.ts';

export type McpLibrary = typeof import('@modelcontextprotocol/server');
export type ToolAnswer = CallToolResult | InputRequiredResult;

/** A request of a client, from a known caller. */
export interface McpRequest {
  request: FastifyRequest;
  caller: Caller;
  /** Whether it may change nothing, whatever its token may. */
  isReadOnly: boolean;
  /** The sets of tools that its address names; `null` for the tools over the whole schema. */
  sets: SetOptions | null;
}

/** A call of a tool. */
export interface McpCall extends McpRequest {
  context: ServerContext;
  /** Whether the client has its user asked (`input_required`); else the model repeats its call. */
  asksUser: boolean;
  library: McpLibrary;
}

/** The tools that a request finds. */
export interface ToolFace {
  /** What the client tells its model about all of them. */
  instructions: string;
  list(request: McpRequest): Promise<Tool[]>;
  /** Runs a tool. @returns `null` if there is none of this name */
  call(name: string, args: unknown, call: McpCall): Promise<ToolAnswer | null>;
}

/** The JSON Schema of what a tool takes. */
export type InputSchema = Tool['inputSchema'];

/** Reads the arguments of a call. @returns the issues of wrong ones, without their values */
export function readArguments<T>(
  schema: z.ZodType<T>,
  given: unknown,
): { value: T } | { issues: { path: readonly PropertyKey[]; message: string }[] } {
  const read = schema.safeParse(given ?? {});
  if (read.success) return { value: read.data };
  return { issues: read.error.issues.slice(0, 20).map(({ path, message }) => ({ path, message })) };
}

/** What a tool takes, as clients read it. */
export function inputSchemaOf(schema: z.ZodType): InputSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest as InputSchema;
}
