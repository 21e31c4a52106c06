import { reaches, type TokenGrant } from '../access/token-grant.ts';
import { type PlaceKind, placesOf } from '../core/resources.ts';
import type { StreamEvent } from '../data/outbox.ts';

/** What names a place of a kind in an event. */
const PLACE_IDS = {
  organization: 'orgId',
  workspace: 'workspaceId',
  namespace: 'namespaceId',
  environment: 'environmentId',
  app: 'appId',
} as const satisfies Record<PlaceKind, keyof StreamEvent>;

/**
 * Whether a token may hear of an event. The rule is that of reads: a restricted token hears nothing of other places
 * than its own, but does of what lies above them, such as the workspace and its members, and of places of kinds that it
 * is not restricted in. It never hears of what is no resource, nor of an event that does not name the places that its
 * resource always lies in.
 */
export function isHeardBy(token: TokenGrant, event: StreamEvent): boolean {
  return (!isRestricted(token) || namesItsPlaces(event)) && reaches(token, 'sync:subscribe', event);
}

const isRestricted = ({ workspaceIds, namespaceIds, environmentIds, appId }: TokenGrant): boolean =>
  workspaceIds.length + namespaceIds.length + environmentIds.length > 0 || appId !== null;

const namesItsPlaces = (event: StreamEvent): boolean =>
  placesOf(event.resourceType)?.every((kind) => event[PLACE_IDS[kind]]) ?? false;
