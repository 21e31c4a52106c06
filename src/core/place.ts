import { kindOfId } from './ids.ts';

/** The slug of the namespace that each workspace has; it stands for the id wherever a namespace is named. */
export const DEFAULT_NAMESPACE = 'default';

/** What an operation is about below its workspace; what is absent is not named. */
export interface Place {
  /** An id, or `default`. */
  namespaceId?: string | null | undefined;
  environmentId?: string | null | undefined;
  appId?: string | null | undefined;
}

/** A row, or the arguments of a field: both name things by the same properties. */
interface Naming extends Place {
  id?: string | null | undefined;
}

/** The place that a row belongs to: what it names, or what it is itself, as the prefix of its id tells. */
export const placeOfRow = (row: Naming): Place => placeOf(row, row.id ? kindOfId(row.id) : null);

/**
 * The place that the arguments of a field name. The prefix of an `id` tells nothing here, because callers write it: it
 * is a namespace's (or `default`), an environment's or an app's where the operation is about such a thing.
 * @param resource the resource word of the operation's permission
 */
export const placeOfArgs = (args: Naming, resource: string | undefined): Place => placeOf(args, resource);

/** The place that a resource of a kind names, or is itself. */
export const placeOf = ({ id, namespaceId, environmentId, appId }: Naming, kind: string | null | undefined): Place => ({
  namespaceId: namespaceId ?? (kind === 'namespace' ? id : undefined),
  environmentId: environmentId ?? (kind === 'environment' ? id : undefined),
  appId: appId ?? (kind === 'app' ? id : undefined),
});
