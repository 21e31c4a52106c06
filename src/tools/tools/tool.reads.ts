import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';
import type { ImportSource } from '../imports/import-source.ts';

const columns = {
  ...columnsOf(
    words(
      'id orgId name slug description shortDescription category version status iconUrl documentationUrl',
      'connectionServiceName author tags supportedActions supportedStepTypes configSchema credentialSchema',
      'actionSchemas mcpFunctions customActionType isMcpCompatible currentSchemaVersion minSchemaVersion',
      'schemaChangelog supportsConnection importSource createdBy createdAt updatedAt resourceVersion',
    ),
  ),
  isBuiltin: '(t.org_id is null)',
};

type Lists = 'configSchema' | 'credentialSchema' | 'actionSchemas' | 'mcpFunctions';

/** A tool as callers see it: one of an organization, or a built-in one in the catalogue of that organization. */
export interface Tool
  extends Omit<ToolRow, 'orgId' | 'schemaChangelog' | 'importSource' | Lists>,
    Record<Lists, Record<string, unknown>[]> {
  /** The organization in whose catalogue it was found. */
  orgId: string;
  schemaChangelog: Record<string, string>;
  importSource: ImportSource | null;
  isBuiltin: boolean;
}

/** Filters of the catalogue. */
export interface ToolFilters {
  category?: string | null;
  status?: string | null;
  /** Words of the name, slug, descriptions or tags, perhaps with typing errors. */
  search?: string | null;
  /** Another name of `search`. */
  q?: string | null;
  /** Disabled tools too; they are left out unless the status asks for them. */
  includeDisabled?: boolean | null;
}

const TEXT = 'tool_search_text(t.name, t.slug, t.short_description, t.description, t.tags)';
/** A part of the text, or similar to a part of it. Both use the index of trigrams. */
const FOUND = String.raw`(${TEXT} like '%' || regexp_replace(lower(?), '([\\%_])', '\\\1', 'g') || '%'
  or lower(?) <% ${TEXT})`;

/**
 * The catalogue of an organization: its own tools, newest first, then the built-in ones. Their identifiers are lower
 * than any other, so the order of identifiers is that of the list.
 */
export const tools: ReadsOptions<Tool, OrganizationPlace, PageArgs & ToolFilters> = {
  kind: 'tool',
  from: 'tools',
  below: ['orgId'],
  columns,
  also: {
    from: 'organizations o join tools t on t.org_id is null',
    below: { orgId: 'o.id' },
    columns: { orgId: 'o.id' },
  },
  filters: ({ category, status, search, q, includeDisabled }) => ({
    't.category = ?': category,
    't.status = ?': status,
    't.status <> ?': includeDisabled || status ? null : 'disabled',
    [FOUND]: search || q || null,
  }),
};
