import DataLoader from 'dataloader';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { administers, demandAll, demandWhole, isPart } from '../../access/whole-place.ts';
import { readsOf } from '../../data/replica-reads.ts';
import type { CallerContext, RequestCache } from '../../data/request-cache.ts';
import type { Caller } from '../../kernel/caller.ts';
import type {
  AppPlace,
  Checked,
  NamespacePlace,
  OrganizationPlace,
  WorkspacePlace,
} from '../../kernel/checked-place.ts';
import { type CountedKind, type CountedPlace, type KeptCounts, readAllCounts, readCounts } from './kept-counts.ts';
import {
  type ActionAnalytics,
  type AppAnalytics,
  appOf,
  type NamespaceAnalytics,
  namespaceOf,
  type OrganizationAnalytics,
  organizationOf,
  type PartRow,
  type PlaceRow,
  type SecretAnalytics,
  type SourceAnalytics,
  type WorkspaceAnalytics,
  workspaceOf,
} from './place-numbers.ts';

/**
 * The numbers of places. All are kept by triggers with the rows themselves: no read costs more because there is more
 * history.
 *
 * A token that is restricted to parts of a place is refused the numbers of the whole: they would tell of the others.
 */
export class AnalyticsService {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * An organization, or one of its workspaces.
   * @throws FORBIDDEN for callers who do not administer the organization, or read the workspace;
   * RESOURCE_NOT_FOUND `workspace`
   */
  async ofOrganization(
    caller: Caller,
    { orgId, asked }: Checked<OrganizationPlace>,
    workspaceId?: string | null,
  ): Promise<OrganizationAnalytics> {
    if (workspaceId === null || workspaceId === undefined) {
      demandAll(caller, asked.role);
      const whole = { orgId, id: orgId };
      return organizationOf(whole, await this.#read('organization', whole));
    }
    await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, 'analytics:read');
    demandWhole(caller, ['workspace']);
    const place = { orgId, id: workspaceId };
    return organizationOf(place, await this.#read('workspace', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async ofWorkspace(caller: Caller, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<WorkspaceAnalytics> {
    demandWhole(caller, ['workspace']);
    const place = { orgId, id: workspaceId };
    return workspaceOf(place, await this.#read('workspace', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to other parts of the workspace */
  async ofApp(caller: Caller, { orgId, workspaceId, appId }: Checked<AppPlace>): Promise<AppAnalytics> {
    demandWhole(caller, ['workspace', 'app']);
    const place = { orgId, workspaceId, id: appId };
    return appOf(place, await this.#read('app', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to other parts of the workspace */
  async ofNamespace(caller: Caller, place: Checked<NamespacePlace>): Promise<NamespaceAnalytics> {
    const { orgId, workspaceId, namespaceId } = place;
    demandWhole(caller, ['workspace', 'namespace']);
    const named = { orgId, workspaceId, id: namespaceId };
    return namespaceOf(named, await this.#read('namespace', named));
  }

  /**
   * The numbers of an organization that was read, and of places of other kinds below: read together for all rows of a
   * list. `null` for callers who do not administer the organization, and for tokens that are restricted to a part of
   * the place.
   */
  async organizationBelow(context: CallerContext, { id }: { id: string }): Promise<OrganizationAnalytics | null> {
    const place = { orgId: id, id };
    if (isPart(context.caller, []) || !(await administers(this.#deps.access, context.caller, id))) return null;
    return organizationOf(place, await this.#load(context, 'organization', place));
  }

  async workspaceBelow(context: CallerContext, { orgId, id }: PlaceRow): Promise<WorkspaceAnalytics | null> {
    const place = { orgId, id };
    if (isPart(context.caller, ['workspace'])) return null;
    return workspaceOf(place, await this.#load(context, 'workspace', place));
  }

  async appBelow(context: CallerContext, { orgId, workspaceId, id }: PartRow): Promise<AppAnalytics | null> {
    const place = { orgId, workspaceId, id };
    if (isPart(context.caller, ['workspace', 'app'])) return null;
    return appOf(place, await this.#load(context, 'app', place));
  }

  async namespaceBelow(
    context: CallerContext,
    { orgId, workspaceId, id }: PartRow,
  ): Promise<NamespaceAnalytics | null> {
    const place = { orgId, workspaceId, id };
    if (isPart(context.caller, ['workspace', 'namespace'])) return null;
    return namespaceOf(place, await this.#load(context, 'namespace', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async actions(caller: Caller, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<ActionAnalytics> {
    demandWhole(caller, ['workspace']);
    const counts = await this.#read('actions of workspace', { orgId, id: workspaceId });
    return {
      totalActions: counts.of('actions'),
      enabledActions: counts.of('actions.enabled'),
      triggerActions: counts.of('actions.trigger'),
      scheduledActions: counts.of('actions.scheduled'),
    };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async secrets(caller: Caller, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<SecretAnalytics> {
    demandWhole(caller, ['workspace']);
    const counts = await readAllCounts(readsOf(this.#deps, caller), orgId, workspaceId);
    return {
      totalSecrets: counts.of('secrets'),
      activeSecrets: counts.of('secrets.active'),
      secretsByType: counts.by('secrets.type'),
    };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async sources(caller: Caller, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<SourceAnalytics> {
    demandWhole(caller, ['workspace']);
    const counts = await readAllCounts(readsOf(this.#deps, caller), orgId, workspaceId);
    const totalSources = counts.of('sources');
    const workspaceSources = counts.of('sources.of_workspace');
    return {
      totalSources,
      indexedSources: counts.of('sources.status ready'),
      failedSources: counts.of('sources.status failed'),
      pendingSources: counts.of('sources.status pending'),
      totalChunks: counts.of('sources.chunks'),
      totalTokens: counts.of('sources.tokens'),
      totalBytes: counts.of('sources.bytes'),
      workspaceSources,
      namespaceSources: totalSources - workspaceSources,
      sourcesByType: counts.by('sources.type'),
      sourcesByStatus: counts.by('sources.status'),
    };
  }

  async #read(kind: CountedKind, place: CountedPlace): Promise<KeptCounts> {
    const [counts] = await readCounts(this.#deps.sql, kind, [place]);
    return counts!;
  }

  #load(cache: RequestCache, kind: CountedKind, place: CountedPlace): Promise<KeptCounts> {
    const { sql } = this.#deps;
    const loader = cache.once(
      `analytics of ${kind}`,
      () => new DataLoader<CountedPlace, KeptCounts>((places) => readCounts(sql, kind, places)),
    );
    return loader.load(place);
  }
}
