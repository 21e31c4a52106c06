import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';

/**
 * The tools with some slugs that an organization can see, as they are until the transaction ends. Its own come before
 * built-in ones.
 */
export async function lockToolsBySlug(
  tx: Tx,
  orgId: string,
  slugs: readonly string[],
): Promise<ReadonlyMap<string, ToolRow>> {
  if (slugs.length === 0) return new Map();
  const rows = await tx.lockAll(
    'tools',
    statement`(t.org_id = ${orgId} or t.org_id is null) and t.slug = any(${slugs}::text[])`,
    'share',
  );
  const own = rows.filter((row) => row.orgId !== null);
  const builtIn = rows.filter((row) => row.orgId === null);
  return new Map([...builtIn, ...own].map((row) => [row.slug, row]));
}
