import type { Principal } from '../access/principal.ts';
import { grants, reaches, type TokenGrant } from '../access/token-grant.ts';
import { type PlaceKind, placesOf } from '../core/resources.ts';
import type { StreamEvent } from '../data/outbox.ts';

/** The property of an event that names a place of each kind. */
const PLACE_IDS = {
  organization: 'orgId',
  workspace: 'workspaceId',
  namespace: 'namespaceId',
  environment: 'environmentId',
  app: 'appId',
} as const satisfies Record<PlaceKind, keyof StreamEvent>;

/**
 * Whether a token may receive an event. The rule is the same as for reads: a restricted token receives no events of
 * other places of a restricted kind. It does receive events of what is above its places, such as the workspace and its
 * members, and of places of other kinds. It never receives events about anything that is not a resource, or events that
 * do not name the places that their resource is always in.
 */
export function isHeardBy(token: TokenGrant, event: StreamEvent): boolean {
  return (!isRestricted(token) || namesItsPlaces(event)) && reaches(token, 'sync:subscribe', event);
}

/**
 * Whether an event is for this caller: one with a recipient only reaches that user, and the tokens of that user which
 * may read notifications. An event about a notification that names no recipient reaches nobody.
 */
export function isAddressedTo({ userId, token }: Principal, { recipientId, resourceType }: StreamEvent): boolean {
  if (recipientId === null) return resourceType !== 'notification';
  return recipientId === userId && (!token || grants(token, 'notification:read'));
}

const isRestricted = ({ workspaceIds, namespaceIds, environmentIds, appId }: TokenGrant): boolean =>
  workspaceIds.length + namespaceIds.length + environmentIds.length > 0 || appId !== null;

const namesItsPlaces = (event: StreamEvent): boolean =>
  placesOf(event.resourceType)?.every((kind) => event[PLACE_IDS[kind]]) ?? false;
