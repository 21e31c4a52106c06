import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, WorkspacePlace } from '../../kernel/checked-place.ts';
import { InputError, notFound } from '../../kernel/errors.ts';
import { type ConnectionRow, connectionColumns } from '../connections/connection.service.ts';
import type { ConnectionRemoval } from '../connections/connection-removal.ts';
import type { ToolInstance } from '../tool-instances/tool-instance.reads.ts';
import type { ToolInstanceService } from '../tool-instances/tool-instance.service.ts';
import { endOpenLinks } from './open-links.ts';
import { returnAddressProblem } from './return-address.ts';

type InstancePlace = WorkspacePlace & { toolInstanceId: string };

/** Filters of a list of connections of end users. */
interface EndUserFilters {
  endUserId?: string | null;
  status?: string | null;
}

interface EndUserDeps extends ServiceDeps {
  removal: ConnectionRemoval;
  toolInstances: ToolInstanceService;
}

const SOURCE = {
  kind: 'connection',
  from: 'connections',
  columns: connectionColumns,
  always: ['t.end_user_id is not null'],
} as const;

/** The connections that end users of apps have: of one tool instance each, beside those of its workspace. */
export class EndUserConnections {
  /** Those of a workspace, by id. */
  readonly reads: Reads<ConnectionRow, WorkspacePlace>;
  /** Those of a tool instance. */
  readonly ofInstance: Reads<ConnectionRow, InstancePlace, PageArgs & EndUserFilters>;
  readonly #deps: EndUserDeps;

  constructor(deps: EndUserDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      ...SOURCE,
      name: 'connections of end users in a workspace',
      below: ['orgId', 'workspaceId'],
    });
    this.ofInstance = new Reads(deps, {
      ...SOURCE,
      name: 'connections of end users',
      below: ['orgId', 'workspaceId', 'toolInstanceId'],
      filters: ({ endUserId, status }) => ({ 't.end_user_id = ?': endUserId, 't.status = ?': status }),
    });
  }

  /**
   * Removes the connection of an end user, and ends their open links. Its tokens are revoked in the background.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for a connection of others
   */
  async delete(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
  ): Promise<Deleted<WorkspacePlace & { toolInstanceId: string }>> {
    const { changes, removal } = this.#deps;
    const { toolInstanceId, endUserId } = await this.reads.own(caller, place, id);
    return changes.run(caller, async (tx) => {
      if (endUserId !== null) tx.write(endOpenLinks(toolInstanceId, endUserId));
      await tx.lock('tool_instances', { id: toolInstanceId }, 'no key update');
      await tx.expectVersion({ table: 'connections', key: { id } });
      const connection = await tx.lock('connections', { id }, 'update', () => notFound('connection', id));
      await removal.remove(tx, [connection]);
      const { orgId, workspaceId } = place;
      tx.audit({
        action: 'disconnect',
        resourceType: 'connection',
        resourceId: id,
        orgId,
        workspaceId,
        metadata: { tool_instance_id: toolInstanceId, of: 'end_user' },
      });
      return { orgId, workspaceId, id, toolInstanceId };
    });
  }

  /**
   * Sets where connect links of an instance may lead back to. Open links that lead elsewhere do not work any more.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an instance of others; InputError for what may not be allowed
   */
  async setReturnAddresses(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    addresses: readonly string[],
  ): Promise<ToolInstance> {
    const { changes, toolInstances } = this.#deps;
    const row = await toolInstances.reads.own(caller, place, id);
    const issues = addresses.flatMap((address, at) => {
      const problem = returnAddressProblem(address);
      return problem === null
        ? []
        : [{ path: ['input', 'addresses', at], type: 'value_error', msg: problem, input: address }];
    });
    if (issues.length > 0) throw new InputError(issues);
    await changes.run(caller, async (tx) => {
      await tx.expectVersion({ table: 'tool_instances', key: { id } });
      const returnAddresses = [...new Set(addresses)];
      tx.change('tool_instances', { id }, { returnAddresses }, () => notFound('tool_instance', id));
      recordChange(tx, 'update', 'tool_instance', row, { fields: ['returnAddresses'] });
    });
    return toolInstances.reads.get(noCache, place, id);
  }
}
