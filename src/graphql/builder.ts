import SchemaBuilder from '@pothos/core';
import DataloaderPlugin from '@pothos/plugin-dataloader';
import PrismaPlugin from '@pothos/plugin-prisma';
import type PrismaTypes from '../generated/pothos-prisma.ts';
import { getDatamodel } from '../generated/pothos-prisma.ts';
import type { Context } from './context.ts';
import './access-plugin.ts';
import './activity-plugin.ts';
import './constraints-plugin.ts';
import './fresh-reads-plugin.ts';
import './pages-plugin.ts';
import './versions-plugin.ts';

/** The schema builder. It defines no types: each resource folder does. */
export const builder = new SchemaBuilder<{
  Context: Context;
  PrismaTypes: PrismaTypes;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date | string };
    JSON: { Input: unknown; Output: unknown };
    JSONObject: { Input: Record<string, unknown>; Output: unknown };
    StringMap: { Input: Record<string, string>; Output: unknown };
    BooleanMap: { Input: Record<string, boolean>; Output: unknown };
    Int53: { Input: number; Output: number };
  };
}>({
  // wrapped from last to first: constraints are checked before access is asked, but for strangers, who learn nothing of the input
  plugins: ['freshReads', 'activity', 'constraints', 'access', 'pages', 'versions', DataloaderPlugin, PrismaPlugin],
  defaultFieldNullability: false,
  prisma: {
    client: (context) => context.prisma(),
    dmmf: getDatamodel(),
    exposeDescriptions: false,
    onUnusedQuery: null,
  },
});

builder.queryType({ description: 'Reads.' });
builder.mutationType({ description: 'Changes.' });
builder.subscriptionType({ description: 'Live events.' });
