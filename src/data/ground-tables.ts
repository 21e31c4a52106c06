import type { GroupTables } from './lent-tables.ts';

/**
 * What all groups write by their changes: records, events and counts. Functions and triggers write some of it, too.
 */
export const tables: GroupTables = {
  owns: [
    'activity',
    'events',
    'resource_counts',
    'place_counts',
    'idempotency_keys',
    'root_keys',
    'persisted_documents',
    'service_markers',
    'nodes',
  ],
  lends: {
    activity: { insight: 'lists, and sums by hour and day', live: 'whether a stream has more to send, and its lag' },
    events: {
      live: 'the streams',
      'live (writes)': 'events past their retention are deleted',
      'insight (writes)': 'the event of a notification is written with it, in one statement',
    },
    resource_counts: { 'tenancy (writes)': 'counts go with their organization' },
    place_counts: {
      tenancy: 'how much a place stores',
      insight: 'numbers of a place',
      'insight (writes)': 'counts go with their place',
    },
    idempotency_keys: {
      http: 'answers that are replayed',
      'http (writes)': 'answers that are kept for a replay',
      'mcp (writes)': 'a confirmation that was used',
    },
    persisted_documents: {
      engine: 'the text of an id that a client sends',
      'engine (writes)': 'an operator registers the documents of a front end',
    },
    service_markers: {
      platform: 'whether a node has the keys and the files of the others',
      'platform (writes)': 'the first node enters its own',
    },
    nodes: {
      platform: 'which nodes run, and which were lost',
      'platform (writes)': 'a node says that it runs, and leaves',
      'live (writes)': 'nodes that were lost are forgotten',
    },
    root_keys: {
      platform: 'which keys wrap something, checked at the start',
      'platform (writes)': 'a key is entered with its canary',
      vault: 'a secret is written while its key is locked',
      'vault (writes)': 'a key that no longer wraps anything is deleted',
    },
  },
};
