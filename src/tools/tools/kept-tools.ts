import { LRUCache } from 'lru-cache';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tool } from '../../generated/prisma/client.ts';

/** Memory for tools, in characters of their JSON. */
const MAX_SIZE = 16 * 1024 * 1024;

/**
 * The rows of tools, for calls. A tool has a new `resource_version` after every change, so what was read of a version
 * stays true: a process reads it once, and not for each call. Nobody changes the objects.
 */
export class KeptTools {
  readonly #sql: Sql;
  readonly #known = new LRUCache<string, Tool>({ maxSize: MAX_SIZE });

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The tool of an instance, which was read with the version of its tool. */
  async of({ toolId, toolVersion }: { toolId: string; toolVersion: number }): Promise<Tool> {
    const known = this.#known.get(keyOf(toolId, toolVersion));
    if (known) return known;
    const tool = await findRow(this.#sql, 'tools', { id: toolId });
    if (!tool) throw new Error(`A foreign key says that the tool '${toolId}' exists.`);
    this.#known.set(keyOf(toolId, tool.resourceVersion), tool, { size: JSON.stringify(tool).length });
    return tool;
  }
}

const keyOf = (id: string, version: number): string => `${id} ${version}`;
