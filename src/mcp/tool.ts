import type { CallToolResult, InputRequiredResult, ServerContext, Tool } from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Frames } from '../engine/live/frames.ts';
import type { Caller } from '../kernel/caller.ts';
import type { ChosenTools } from './tool-sets.ts';

export type McpLibrary = typeof import('@modelcontextprotocol/server');
export type ToolAnswer = CallToolResult | InputRequiredResult;

/** A request of a client, from a known caller. */
export interface McpRequest {
  request: FastifyRequest;
  caller: Caller;
  /** Whether it may change nothing, whatever its token may. */
  isReadOnly: boolean;
  /** Whether its address says that values of secrets are shown. */
  reveals: boolean;
  /** The tools that its address names; `null` if it names none. */
  chosen: ChosenTools | null;
  /** The workspace that its address names, which is that of all calls; `null` if each names its own. */
  workspaceId: string | null;
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
  /** Follows what changes the list, where that is told: each frame is a change. */
  watch?(request: McpRequest): Promise<Frames>;
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
