import type { Place } from '../access/place.ts';
import { reaches, type TokenGrant } from '../access/token-grant.ts';
import type { StreamEvent } from '../infra/events.ts';

/** What always lies in a namespace, an environment or an app: an event of it that does not say in which is not for confined ears. */
const ALWAYS_IN: Readonly<Record<string, keyof Place>> = {
  namespace: 'namespaceId',
  thread: 'namespaceId',
  environment: 'environmentId',
  deployment: 'environmentId',
  app: 'appId',
  release: 'appId',
  app_token: 'appId',
};

/**
 * Whether a token may hear of an event. The rule is that of reads: not of another namespace, environment or app than those that it is
 * confined to; of what lies in none, such as the workspace itself and its members, and of kinds of places that it is not confined in.
 */
export function isHeardBy(token: TokenGrant, event: StreamEvent): boolean {
  const needed = ALWAYS_IN[event.resourceType];
  if (needed && !event[needed] && isConfined(token)) return false;
  return reaches(token, 'sync:subscribe', event);
}

const isConfined = ({ namespaceIds, environmentIds, appId }: TokenGrant): boolean =>
  namespaceIds.length + environmentIds.length > 0 || appId !== null;
