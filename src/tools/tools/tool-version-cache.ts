import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import type { RequestCache } from '../../data/request-cache.ts';

/** Memory for one cache, in characters of JSON. */
const MAX_SIZE = 16 * 1024 * 1024;

/** An instance as far as it names its tool: with the tool's `resource_version`. */
export interface ToolVersion {
  toolId: string;
  toolVersion: number;
}

/** What was read of a tool. */
export interface ReadTool<Value> {
  id: string;
  resourceVersion: number;
  value: Value;
}

/**
 * What is read of tools. A tool has a new `resource_version` after every change, so what was read of a version stays
 * true: a process reads it once, and not for each page or call. Nobody changes the objects.
 */
export class ToolVersionCache<Value extends object> {
  readonly #name: string;
  readonly #read: (ids: readonly string[]) => Promise<ReadTool<Value>[]>;
  readonly #known = new LRUCache<string, Value>({ maxSize: MAX_SIZE });

  /**
   * @param name of what is read, which no other cache has
   * @param read reads tools in one statement, in any order
   */
  constructor(name: string, read: (ids: readonly string[]) => Promise<ReadTool<Value>[]>) {
    this.#name = name;
    this.#read = read;
  }

  /** What is known of the tool of each, in the same order. What is not known yet is read once per request. */
  async of(context: RequestCache, tools: readonly ToolVersion[]): Promise<Value[]> {
    const known = tools.map(({ toolId, toolVersion }) => this.#known.get(keyOf(toolId, toolVersion)));
    if (known.every((value) => value !== undefined)) return known;
    const loader = context.once(this.#name, () => new DataLoader<string, Value>((ids) => this.#load(ids)));
    return Promise.all(known.map(async (value, at) => value ?? loader.load(tools[at]!.toolId)));
  }

  async #load(ids: readonly string[]): Promise<Value[]> {
    const found = new Map<string, Value>();
    for (const { id, resourceVersion, value } of await this.#read(ids)) {
      this.#known.set(keyOf(id, resourceVersion), value, { size: JSON.stringify(value).length });
      found.set(id, value);
    }
    return ids.map((id) => {
      const value = found.get(id);
      if (!value) throw new Error(`A foreign key says that the tool '${id}' exists.`);
      return value;
    });
  }
}

const keyOf = (id: string, version: number): string => `${id} ${version}`;
