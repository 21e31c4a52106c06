import { flag, integer, setting } from '../../setting.ts';

/** GraphQL and its live events. */
export const graphqlSettings = {
  graphqlIntrospection: setting('GRAPHQL_INTROSPECTION', flag, 'Whether clients may read the schema.', {
    default: 'true',
  }),
  graphiql: setting('GRAPHIQL', flag, 'Whether `/graphql` shows GraphiQL to a browser.', {
    defaultText: 'false when `NODE_ENV=production`, else true',
  }),
  graphqlMaxDepth: setting('GRAPHQL_MAX_DEPTH', integer(1, 1_000), 'Maximum nesting depth of a GraphQL operation.', {
    default: '12',
  }),
  graphqlMaxAliases: setting(
    'GRAPHQL_MAX_ALIASES',
    integer(0, 10_000),
    'Maximum number of aliases in a GraphQL operation.',
    {
      default: '30',
    },
  ),
  graphqlMaxCost: setting(
    'GRAPHQL_MAX_COST',
    integer(1, 10_000_000),
    'Maximum number of objects that a GraphQL operation may ask for, counted over nested lists. Ten plain values ' +
      'count as one object, a search as a thousand, a traversal, an export, a recipe in full and a series of the ' +
      'usage of models as five hundred.',
    {
      default: '10000',
    },
  ),
  graphqlMaxTokens: setting(
    'GRAPHQL_MAX_TOKENS',
    integer(1, 1_000_000),
    'Maximum number of lexical tokens in a GraphQL document.',
    {
      default: '2000',
    },
  ),
  persistedOnly: setting(
    'PERSISTED_ONLY',
    flag,
    'Whether browsers may send only GraphQL documents that are registered with `npm run documents`. Set ' +
      '`GRAPHIQL=false` with it: its queries are not registered.',
    { default: 'false' },
  ),
  eventPollMs: setting('EVENT_POLL_MS', integer(10, 60_000), 'Pause between checks for events of other nodes.', {
    default: '250',
  }),
} as const;
