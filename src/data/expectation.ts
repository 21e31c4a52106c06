import { ApiError } from '../core/errors.ts';
import { snakeCase } from '../core/snake-case.ts';
import type { Statement } from './writes.ts';

/** Tables whose rows have a `resource_version`, which triggers raise. */
export type VersionedTable =
  | 'api_tokens'
  | 'apps'
  | 'environments'
  | 'invitations'
  | 'logical_models'
  | 'model_entitlements'
  | 'namespaces'
  | 'organization_members'
  | 'organizations'
  | 'provider_accounts'
  | 'releases'
  | 'secrets'
  | 'threads'
  | 'users'
  | 'workspace_members'
  | 'workspaces';

/** The row whose version is held against what the caller expects. */
export interface VersionedRow {
  table: VersionedTable;
  /** The properties by which it is found: `{ orgId, logicalModelId }`. */
  key: Readonly<Record<string, string>>;
  /** SQL over the row `t`, where its version is more than its column. */
  version?: string;
}

/** What a caller expects of the resource that is to be changed: that its version is one of these. */
export class Expectation {
  readonly #versions: readonly number[];
  #isMet = false;

  constructor(versions: readonly number[]) {
    this.#versions = versions;
  }

  /** Whether a change has held it against a row and was committed, or is about to. */
  get isMet(): boolean {
    return this.#isMet;
  }

  /** @throws ApiError PRECONDITION_FAILED unless the version that the change found is expected; Error when it looked for none */
  demand(found: number | null): void {
    if (found === null) throw new Error('A change did not look at the version that its caller expects.');
    if (!this.#versions.includes(found))
      throw new ApiError(
        'PRECONDITION_FAILED',
        { current_version: found },
        `The resource is at version ${found}, which is not the expected one: read it again.`,
      );
    this.#isMet = true;
  }
}

/** The version of a row, which is held until the transaction ends; `null` when there is no such row. */
export async function holdVersion(
  tx: { query<R extends object>(statement: Statement): Promise<R[]> },
  row: VersionedRow,
): Promise<number | null> {
  const { table, key, version } = row;
  const where = Object.keys(key).map((property, index) => `t.${snakeCase(property)} = $${index + 1}`);
  const from = `from ${table} t where ${where.join(' and ')}`;
  const read = async (text: string): Promise<number | null> => {
    const rows = await tx.query<{ version: number }>({ text, values: Object.values(key) });
    return rows[0]?.version ?? null;
  };
  const held = await read(`select t.resource_version as version ${from} for no key update`);
  // what other tables add is read by a statement of its own: one that waited for the row would not see what was written meanwhile
  return held === null || !version ? held : read(`select ${version} as version ${from}`);
}
