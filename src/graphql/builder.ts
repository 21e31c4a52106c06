import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import type PrismaTypes from '../generated/pothos-prisma.ts';
import { getDatamodel } from '../generated/pothos-prisma.ts';
import type { Prisma } from '../generated/prisma/client.ts';
import type { RootPlace } from '../kernel/root-place.ts';
import type { Context } from './context.ts';
import './plugins/access-plugin.ts';
import './plugins/activity-plugin.ts';
import './plugins/constraints-plugin.ts';
import './plugins/events-plugin.ts';
import './plugins/fresh-reads-plugin.ts';
import './plugins/pages-plugin.ts';
import './plugins/versions-plugin.ts';

/** The schema builder. It defines no types: each resource folder does. */
export const builder = new SchemaBuilder<{
  Context: Context;
  /** The parent value of root resolvers: the place that was checked. */
  Root: RootPlace;
  PrismaTypes: PrismaTypes;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date | string };
    JSON: { Input: unknown; Output: unknown };
    JSONObject: { Input: Prisma.InputJsonObject; Output: unknown };
    StringMap: { Input: Record<string, string>; Output: unknown };
    BooleanMap: { Input: Record<string, boolean>; Output: unknown };
    Int53: { Input: number; Output: number };
  };
}>({
  // plugins wrap from last to first: constraints are checked before access, except for anonymous callers, who learn
  // nothing about the input
  plugins: ['freshReads', 'activity', 'constraints', 'access', 'events', 'pages', 'versions', PrismaPlugin],
  defaultFieldNullability: false,
  prisma: {
    // the plugin provides the types of rows; `Reads` reads the rows themselves (docs/decisions/0011)
    client: () => {
      throw new Error('No row is loaded through the Prisma plugin: declare a link with `refersTo`.');
    },
    dmmf: getDatamodel(),
    exposeDescriptions: false,
    onUnusedQuery: null,
  },
});

builder.queryType({ description: 'Queries.' });
builder.mutationType({ description: 'Mutations.' });
builder.subscriptionType({ description: 'Live events.' });
