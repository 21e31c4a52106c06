import type { EntityFragment, MemoryFragment } from '../../../rest/generated/documents.ts';
import type { TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

export interface Entity extends Omit<RestBody<EntityFragment>, 'relations'> {
  relations: RestBody<EntityFragment['relations'][number]>[];
}
export type Memory = RestBody<MemoryFragment>;

/** Somebody with an app, whose entities are in the namespace `default`. */
export interface Graph {
  who: Person;
  appId: string;
  /** `{E}` of the spec. */
  url: string;
  /** Creates an entity. */
  entity(name: string, more?: object): Promise<Entity>;
  /** Creates a relation. */
  relate(source: string, target: string, type?: string, more?: object): Promise<{ status: number; body: unknown }>;
  memory(content: string, entityIds?: readonly string[]): Promise<Memory>;
  get(id: string): Promise<Entity>;
}

/** A knowledge graph without entities. */
export async function createGraph(app: TestApp, who?: Person, namespaceId = 'default'): Promise<Graph> {
  const owner = who ?? (await register(app, { name: 'ann' }));
  const { body } = await owner.call<{ app_id: string }>('POST', `${owner.home}/apps`, { name: 'Shop' });
  return graphAt(owner, body.app_id, namespaceId);
}

/** The knowledge graph of an app in a namespace, for somebody. */
export function graphAt(who: Person, appId: string, namespaceId = 'default', home = who.home): Graph {
  const url = `${home}/apps/${appId}/namespaces/${namespaceId}`;
  return {
    who,
    appId,
    url,
    entity: async (name, more) => (await who.call<Entity>('POST', `${url}/entities`, { name, ...more })).body,
    relate: (source, target, type = 'knows', more = {}) =>
      who.call('POST', `${url}/entities/relations`, {
        source_entity_id: source,
        target_entity_id: target,
        relation_type: type,
        ...more,
      }),
    memory: async (content, entityIds = []) =>
      (await who.call<Memory>('POST', `${url}/memories`, { content, entity_ids: entityIds })).body,
    get: async (id) => (await who.call<Entity>('GET', `${url}/entities/${id}`)).body,
  };
}
