import type { AppPlace, NamespacePlace } from '../../kernel/checked-place.ts';
import { type KeptCounts, type ResourceCounts, resourcesOf, storageOf } from './kept-counts.ts';
import { type ExecutionMetrics, executionsOf } from './runs.ts';

/** Spec, Analytics shapes. */
export interface WorkspaceAnalytics {
  orgId: string;
  workspaceId: string;
  resources: ResourceCounts;
  storageBytes: number;
  executions: ExecutionMetrics;
  updatedAt: Date;
}

/** Analytics of an organization (defaults §9). */
export interface OrganizationAnalytics {
  orgId: string;
  /** Number of workspaces. */
  workspaces: number;
  /** Number of members. */
  users: number;
  resources: ResourceCounts;
  storageBytes: number;
  executions: ExecutionMetrics;
  updatedAt: Date;
}

export interface AppAnalytics extends AppPlace {
  augmentations: number;
  namespaces: number;
  endpoints: number;
  releases: number;
}

export interface NamespaceAnalytics extends NamespacePlace {
  threads: number;
  sources: number;
}

export interface ActionAnalytics {
  totalActions: number;
  enabledActions: number;
  triggerActions: number;
  scheduledActions: number;
}

export interface SecretAnalytics {
  totalSecrets: number;
  activeSecrets: number;
  secretsByType: Record<string, number>;
}

export interface SourceAnalytics {
  totalSources: number;
  indexedSources: number;
  failedSources: number;
  pendingSources: number;
  totalChunks: number;
  totalTokens: number;
  totalBytes: number;
  workspaceSources: number;
  namespaceSources: number;
  sourcesByType: Record<string, number>;
  sourcesByStatus: Record<string, number>;
}

/** The row of a place. */
export interface PlaceRow {
  id: string;
  orgId: string;
}

/** The row of a part of a workspace. */
export interface PartRow extends PlaceRow {
  workspaceId: string;
}

function summaryOf(counts: KeptCounts) {
  return {
    resources: resourcesOf(counts),
    storageBytes: storageOf(counts),
    executions: executionsOf(counts),
    updatedAt: new Date(),
  };
}

/** The numbers of an organization, or of one of its workspaces. */
export const organizationOf = ({ orgId }: PlaceRow, counts: KeptCounts): OrganizationAnalytics => ({
  orgId,
  workspaces: counts.of('workspaces'),
  users: counts.of('users'),
  ...summaryOf(counts),
});

/** The numbers of a workspace. */
export const workspaceOf = ({ orgId, id }: PlaceRow, counts: KeptCounts): WorkspaceAnalytics => ({
  orgId,
  workspaceId: id,
  ...summaryOf(counts),
});

/** The numbers of an app. */
export const appOf = ({ orgId, workspaceId, id }: PartRow, counts: KeptCounts): AppAnalytics => ({
  orgId,
  workspaceId,
  appId: id,
  augmentations: counts.of('augmentations'),
  namespaces: counts.of('namespaces'),
  endpoints: counts.of('endpoints'),
  releases: counts.of('releases'),
});

/** The numbers of a namespace. */
export const namespaceOf = ({ orgId, workspaceId, id }: PartRow, counts: KeptCounts): NamespaceAnalytics => ({
  orgId,
  workspaceId,
  namespaceId: id,
  threads: counts.of('threads'),
  sources: counts.of('sources'),
});
