import { kindOfId } from './ids.ts';

/**
 * The slug of the namespace that each workspace has. It is accepted in place of the id wherever a namespace is named.
 */
export const DEFAULT_NAMESPACE = 'default';

/** What an operation is about below its workspace. An absent property is not named. */
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

/** The place that a row belongs to: the place that it names, or itself if the prefix of its id is that of a place. */
export const placeOfRow = (row: Naming): Place => placeOf(row, row.id ? kindOfId(row.id) : null);

/**
 * The place that the arguments of a field name. The prefix of an `id` proves nothing here, because callers write it.
 * The resource of the operation decides whether the `id` is that of a namespace (or `default`), an environment or an
 * app.
 * @param resource the resource word of the operation's permission
 */
export const placeOfArgs = (args: Naming, resource: string | undefined): Place => placeOf(args, resource);

/** The place that a resource of a kind names, or is itself. */
export const placeOf = ({ id, namespaceId, environmentId, appId }: Naming, kind: string | null | undefined): Place => ({
  namespaceId: namespaceId ?? (kind === 'namespace' ? id : undefined),
  environmentId: environmentId ?? (kind === 'environment' ? id : undefined),
  appId: appId ?? (kind === 'app' ? id : undefined),
});
