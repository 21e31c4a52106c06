import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRows } from '../../data/find-row.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tool } from '../../generated/prisma/client.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { SecretValue } from '../../vault/secrets/envelope.ts';
import type { CallPlace } from '../connections/call-place.ts';
import { ToolVersionCache } from '../tools/tool-version-cache.ts';
import { sealedIn } from './sealed-columns.ts';
import { calledInstanceReads, type ToolInstance } from './tool-instance.reads.ts';

/** An instance with what a call of one of its actions needs. */
export interface CalledInstance {
  instance: ToolInstance;
  tool: Tool;
  /** What the instance keeps itself; it is opened when it is needed. @throws VaultFault */
  kept: () => SecretValue;
}

/** Reads an instance with what it keeps in one statement. Its tool is read once for each of its versions. */
export class CalledInstances {
  readonly #read: ReturnType<typeof calledInstanceReads>;
  readonly #tools: ToolVersionCache<Tool>;
  readonly #credentials: Credentials;

  constructor(deps: ServiceDeps & { credentials: Credentials }) {
    this.#read = calledInstanceReads(deps);
    this.#tools = wholeTools(deps.sql);
    this.#credentials = deps.credentials;
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(place: CallPlace, id: string): Promise<CalledInstance> {
    const instance = await this.#read(place, id);
    const [tool] = await this.#tools.of(noCache, [instance]);
    const sealed = sealedIn(instance, 'own');
    return { instance, tool: tool!, kept: () => (sealed ? this.#credentials.opened(sealed) : {}) };
  }
}

/** The rows of tools. */
const wholeTools = (sql: Sql): ToolVersionCache<Tool> =>
  new ToolVersionCache('tools of calls', async (ids) => {
    const rows = await findRows(sql, 'tools', { text: 't.id = any($1)', values: [ids] });
    return rows.map((tool) => ({ id: tool.id, resourceVersion: tool.resourceVersion, value: tool }));
  });
