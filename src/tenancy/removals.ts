import type { Tx } from '../data/tx.ts';
import type { Caller } from '../kernel/caller.ts';
import type { WorkspacePlace } from '../kernel/checked-place.ts';

/** A part of a workspace that is about to be removed with everything in it. */
export interface RemovedPlace extends WorkspacePlace {
  kind: 'namespace' | 'app';
  id: string;
  /** Whether what is in it goes even from what uses it elsewhere. */
  force?: boolean;
}

/** What an owner does in the change that removes a place. */
export interface PlaceRemoval {
  /** While the place is there and locked exclusively: what is made concurrently is found, or finds no place. */
  before?(tx: Tx): Promise<void>;
  /** When its row is deleted, and before the change is recorded. */
  after?(tx: Tx): Promise<void>;
}

/** A member who leaves an organization; `null` for all of them, because the organization is deleted. */
export interface RemovedMember {
  orgId: string;
  userId: string | null;
}

/** What services of other groups declare about their contents of places and about members. */
export interface ContentOwner {
  /** Asked before the change begins, because it may read what the caller may do. */
  placeRemoved?(caller: Caller, place: RemovedPlace): PlaceRemoval | Promise<PlaceRemoval>;
  /** Runs in the change that removes a member or the whole organization, which is locked. */
  memberRemoved?(tx: Tx, member: RemovedMember): Promise<void>;
}

/**
 * Lets the owners of contents take part in removals, in the order that the wiring declares. Tenancy knows none of them:
 * they know tenancy.
 */
export class Removals {
  #owners: readonly ContentOwner[] | undefined;

  /** Called once, before the service answers requests. */
  declare(owners: readonly ContentOwner[]): void {
    this.#owners = owners;
  }

  /** What all owners do when a place is removed. */
  async ofPlace(caller: Caller, place: RemovedPlace): Promise<Required<PlaceRemoval>> {
    const removals: PlaceRemoval[] = [];
    for (const owner of this.#declared) {
      const removal = await owner.placeRemoved?.(caller, place);
      if (removal) removals.push(removal);
    }
    return {
      async before(tx) {
        for (const removal of removals) await removal.before?.(tx);
      },
      async after(tx) {
        for (const removal of removals) await removal.after?.(tx);
      },
    };
  }

  /** Ends what a member has in the organization besides the membership. */
  async ofMember(tx: Tx, member: RemovedMember): Promise<void> {
    for (const owner of this.#declared) await owner.memberRemoved?.(tx, member);
  }

  /** @throws Error if nobody declared them: contents would stay behind */
  get #declared(): readonly ContentOwner[] {
    if (!this.#owners) throw new Error('The owners of contents were not declared.');
    return this.#owners;
  }
}
