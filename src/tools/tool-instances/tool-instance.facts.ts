import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import type { RequestCache } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import type { ConfigField } from '../tools/tool-shapes.ts';
import { type ConfigFieldDescriptor, descriptorOf } from './config-field.ts';
import { initialActions, type ToolAction } from './effective-actions.ts';

/** What instances show of their tool. Objects are shared between instances: nobody changes them. */
export interface ToolFacts {
  name: string;
  slug: string;
  category: string;
  iconUrl: string | null;
  supportedStepTypes: string[];
  currentSchemaVersion: number;
  minSchemaVersion: number;
  /** The actions of the tool as an instance has them that changes nothing about them. */
  actions: readonly ToolAction[];
  configFields: readonly ConfigFieldDescriptor[];
}

/** An instance as far as it names its tool: with the tool's `resource_version`. */
interface OfTool {
  toolId: string;
  toolVersion: number;
}

interface FactsRow extends Omit<ToolFacts, 'actions' | 'configFields'> {
  id: string;
  resourceVersion: number;
  actionSchemas: ToolAction[];
  configSchema: ConfigField[];
}

const FACTS = `select id, resource_version as "resourceVersion", name, slug, category, icon_url as "iconUrl",
    supported_step_types as "supportedStepTypes", current_schema_version as "currentSchemaVersion",
    min_schema_version as "minSchemaVersion", action_schemas as "actionSchemas", config_schema as "configSchema"
  from tools where id = any($1::text[])`;

/** Memory for the facts of tools, in characters of their JSON. */
const MAX_SIZE = 16 * 1024 * 1024;

/**
 * The facts of the tools of instances. A tool has a new `resource_version` after every change, so what was read of a
 * version stays true: pages of instances read a tool once per process, not per page.
 */
export class ToolFactsReads {
  readonly #sql: Sql;
  readonly #known = new LRUCache<string, ToolFacts>({ maxSize: MAX_SIZE });

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The facts for each instance, in the same order. What is not known yet is read in one statement per request. */
  async of(context: RequestCache, instances: readonly OfTool[]): Promise<ToolFacts[]> {
    const known = instances.map(({ toolId, toolVersion }) => this.#known.get(`${toolId} ${toolVersion}`));
    if (known.every((facts) => facts !== undefined)) return known;
    const loader = context.once(
      'tools of instances',
      () => new DataLoader<string, ToolFacts>((ids) => this.#read(ids)),
    );
    return Promise.all(known.map(async (facts, index) => facts ?? loader.load(instances[index]!.toolId)));
  }

  async #read(ids: readonly string[]): Promise<ToolFacts[]> {
    const rows = await this.#sql.read<FactsRow>(FACTS, [ids]);
    const found = new Map(
      rows.map(({ id, resourceVersion, actionSchemas, configSchema, ...facts }): [string, ToolFacts] => {
        const shown = {
          ...facts,
          actions: initialActions(actionSchemas),
          configFields: configSchema.map(descriptorOf),
        };
        this.#known.set(`${id} ${resourceVersion}`, shown, { size: JSON.stringify(shown).length });
        return [id, shown];
      }),
    );
    return ids.map((id) => {
      const facts = found.get(id);
      if (!facts) throw new Error(`A foreign key says that the tool '${id}' exists.`);
      return facts;
    });
  }
}
