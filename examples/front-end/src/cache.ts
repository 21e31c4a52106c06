import { type Cache, cacheExchange } from '@urql/exchange-graphcache';
import type { Exchange } from 'urql';
import type {
  OrganizationEventsSubscription,
  RenameWorkspaceMutationVariables,
  WorkspaceEventsSubscription,
} from './generated/documents';

/** Values: they have no `id`, and belong to the field that gives them. */
const asValue = () => null;

/** Rows are kept once, by type and id: what an event or a mutation brings is seen wherever the row is shown. */
export const cache = (): Exchange =>
  cacheExchange({
    keys: { PresentUser: asValue, UnreadNotifications: asValue },
    optimistic: {
      // shown at once; the answer replaces it, or a refusal takes it back
      updateWorkspace: (args) => {
        const { id, expectedVersion, input } = args as RenameWorkspaceMutationVariables;
        return { __typename: 'Workspace', id, name: input.name ?? null, resourceVersion: expectedVersion };
      },
    },
    updates: {
      Subscription: {
        workspaceEvents: ({ workspaceEvents: event }: WorkspaceEventsSubscription, _, store) => {
          if (event.type === 'workspace.updated') store.invalidate({ __typename: 'Workspace', id: event.resourceId });
          // the stream cannot go on where it was: what was read before may be old
          if (event.type === 'resync') invalidateLists(store);
        },
        organizationEvents: (_: OrganizationEventsSubscription, __, store) => invalidateLists(store),
      },
    },
  });

function invalidateLists(store: Cache): void {
  for (const { fieldName, fieldKey } of store.inspectFields('Query'))
    if (fieldName === 'workspaces') store.invalidate('Query', fieldKey);
}
