import type { Config } from '../../config.ts';
import type { Tx } from '../../data/tx.ts';
import { type ApiError, conflict } from '../../kernel/errors.ts';

/** Whose artifacts hold bytes. */
export interface StoragePlace {
  orgId: string;
  workspaceId: string;
}

export type StorageSettings = Pick<Config, 'maxStorageBytesPerWorkspace' | 'maxStorageBytesPerOrganization'>;

/** The code with which `demand_storage` fails, and what it says. */
const REFUSED = 'QS001';
interface StorageRefusal {
  resource_type: 'workspace' | 'organization';
  resource_id: string;
  used_bytes: number;
  limit_bytes: number;
  requested_bytes: number;
}

/** The parameters of `demand_storage`, from `$first` on. */
const parametersFrom = (first: number): string => [0, 1, 2, 3, 4].map((n) => `$${first + n}`).join(', ');

/**
 * How much the artifacts of a workspace and of its organization may hold (docs/decisions/0029). What they hold is kept
 * by triggers with the rows. Whoever is about to write more asks in the same transaction, and nobody else in the
 * organization is answered until it ends: writers at once never get together what they could not get one by one.
 */
export class StorageLimits {
  readonly #settings: StorageSettings;

  constructor(settings: StorageSettings) {
    this.#settings = settings;
  }

  /**
   * Demands that a change may write so many bytes more. Call it once every row that the change needs is locked, before
   * any write. {@link guarded} around the change makes the refusal of it.
   */
  demand(tx: Tx, place: StoragePlace, bytes: number | bigint): void {
    if (bytes <= 0) return;
    tx.demandThat({
      shape: 'demand storage',
      text: (first) => `select 1 from demand_storage(${parametersFrom(first)})`,
      values: this.parametersOf(place, bytes),
    });
  }

  /** The parameters of `demand_storage` for statements that are written by hand. */
  parametersOf({ orgId, workspaceId }: StoragePlace, bytes: number | bigint): unknown[] {
    const { maxStorageBytesPerWorkspace, maxStorageBytesPerOrganization } = this.#settings;
    return [orgId, workspaceId, Number(bytes), maxStorageBytesPerWorkspace, maxStorageBytesPerOrganization];
  }

  /**
   * Runs what demands storage.
   * @param held bytes that were reserved for the same thing before: they are asked for, and not used by others
   * @throws RESOURCE_CONFLICT `storage_quota_exceeded`
   */
  async guarded<T>(work: () => Promise<T>, held = 0): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw refusalOf(error, held) ?? error;
    }
  }
}

/** The refusal that a failed statement means; `null` if it failed otherwise. */
export function refusalOf(error: unknown, held = 0): ApiError | null {
  if (!(error instanceof Error)) return null;
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  if (code !== REFUSED || typeof detail !== 'string') return null;
  const { resource_type: kind, resource_id: id, ...found } = JSON.parse(detail) as StorageRefusal;
  const numbers = {
    ...found,
    used_bytes: found.used_bytes - held,
    requested_bytes: found.requested_bytes + held,
  };
  return conflict(
    kind,
    id,
    'storage_quota_exceeded',
    `The artifacts of the ${kind} '${id}' hold ${numbers.used_bytes} of at most ${numbers.limit_bytes} bytes: ` +
      `${numbers.requested_bytes} more do not fit. Deleted artifacts count until they are removed after 30 days.`,
    numbers,
  );
}
