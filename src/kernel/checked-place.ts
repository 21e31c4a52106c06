import type { Marked } from './mark-checked.ts';

export interface OrganizationPlace {
  orgId: string;
}

export interface WorkspacePlace extends OrganizationPlace {
  workspaceId: string;
}

export interface NamespacePlace extends WorkspacePlace {
  namespaceId: string;
}

export interface AppPlace extends WorkspacePlace {
  appId: string;
}

export interface EnvironmentPlace extends WorkspacePlace {
  environmentId: string;
}

/** An app and a namespace of the same workspace. */
export interface AppNamespacePlace extends AppPlace, NamespacePlace {}

/** What is left of a deleted object: its id, and where it was. */
export type Deleted<Place extends object> = Place & { id: string };

/** A part of a workspace that contains other resources. */
export type PlacePart = 'namespace' | 'app' | 'environment';

/**
 * A place that exists within its parents, and in which the caller has the required permission. Reads accept nothing
 * else, so that an unscoped one cannot be written by accident.
 */
export type Checked<Place> = Marked<Place>;
