import { TextArray } from '../platform/postgres/text-array.ts';

/** A user in a place, and the facts about them that are known from before; `null` for none. */
export interface KnownReader {
  userId: string;
  orgId: string;
  /** `null` for the organization itself. */
  workspaceId: string | null;
  facts: string | null;
}

/**
 * What is known about thousands of users in places, for a question that is asked again each second: its keys and
 * parameters are made once.
 */
export class KnownFacts {
  /** Keys of the caches of {@link MembershipFacts}; those of workspaces only for readers in one. */
  readonly organizationKeys: readonly string[];
  readonly workspaceKeys: readonly string[];
  /** The positions of readers in a workspace. */
  readonly inWorkspaces: readonly number[];
  readonly #places: readonly TextArray[];
  readonly #facts: (string | null)[];
  #written: TextArray | null = null;

  constructor(readers: readonly KnownReader[]) {
    this.organizationKeys = readers.map(({ orgId, userId }) => `${orgId} ${userId}`);
    this.inWorkspaces = [...readers.keys()].filter((at) => readers[at]!.workspaceId !== null);
    this.workspaceKeys = this.inWorkspaces.map((at) => {
      const { orgId, workspaceId, userId } = readers[at]!;
      return `${orgId} ${workspaceId} ${userId}`;
    });
    this.#places = (['orgId', 'workspaceId', 'userId'] as const).map(
      (name) => new TextArray(readers.map((reader) => reader[name])),
    );
    this.#facts = readers.map(({ facts }) => facts);
  }

  /** By position. */
  get facts(): readonly (string | null)[] {
    return this.#facts;
  }

  /** Organizations, workspaces, users, and facts, each as `text[]`. */
  get parameters(): unknown[] {
    this.#written ??= new TextArray(this.#facts);
    return [...this.#places, this.#written];
  }

  learn(at: number, facts: string): void {
    this.#facts[at] = facts;
    this.#written = null;
  }
}
