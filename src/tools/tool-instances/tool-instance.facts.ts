import type { Sql } from '../../data/sql.ts';
import type { ConfigField } from '../tools/tool-shapes.ts';
import { ToolVersionCache } from '../tools/tool-version-cache.ts';
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

/** The facts of the tools of instances. */
export const toolFacts = (sql: Sql): ToolVersionCache<ToolFacts> =>
  new ToolVersionCache<ToolFacts>('tools of instances', async (ids) => {
    const rows = await sql.read<FactsRow>(FACTS, [ids]);
    return rows.map(({ id, resourceVersion, actionSchemas, configSchema, ...facts }) => ({
      id,
      resourceVersion,
      value: { ...facts, actions: initialActions(actionSchemas), configFields: configSchema.map(descriptorOf) },
    }));
  });
