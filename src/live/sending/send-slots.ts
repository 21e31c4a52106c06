/** How much is sent at once by this node: in all, for one organization, to one receiver. */
const LIMITS = { total: 96, organization: 32, receiver: 10 };
/** Slow receivers share half of it, so that there is always room for the others. */
const SLOW_TOTAL = LIMITS.total / 2;
/** A receiver that fails is not hurried. */
const FAILING = 2;

/** Who wants to send. */
export interface SlotOwner {
  readonly orgId: string;
  readonly isSlow: boolean;
  readonly isFailing: boolean;
  /** Tries again to get slots. */
  step(): void;
}

/** How much one receiver may be sent at once. */
export const mostOf = ({ isFailing }: Pick<SlotOwner, 'isFailing'>): number => (isFailing ? FAILING : LIMITS.receiver);

/** Shares what a node sends at once among the receivers: those that wait have the next slots in turn. */
export class SendSlots {
  readonly #ofOrganization = new Map<string, number>();
  readonly #waiting = new Set<SlotOwner>();
  #total = 0;
  #slow = 0;

  /** @returns what gives the slot back; `null` if there is none now: then the owner's `step` is called later */
  take(owner: SlotOwner): (() => void) | null {
    const { orgId, isSlow } = owner;
    const ofOrganization = this.#ofOrganization.get(orgId) ?? 0;
    if (this.#total >= LIMITS.total || ofOrganization >= LIMITS.organization || (isSlow && this.#slow >= SLOW_TOTAL)) {
      this.#waiting.add(owner);
      return null;
    }
    this.#total += 1;
    if (isSlow) this.#slow += 1;
    this.#ofOrganization.set(orgId, ofOrganization + 1);
    return () => this.#release(orgId, isSlow);
  }

  #release(orgId: string, isSlow: boolean): void {
    this.#total -= 1;
    if (isSlow) this.#slow -= 1;
    const left = this.#ofOrganization.get(orgId)! - 1;
    if (left > 0) this.#ofOrganization.set(orgId, left);
    else this.#ofOrganization.delete(orgId);
    // those that get none go to the end of the line, and have had their turn
    const waiting = Array.from(this.#waiting);
    for (const owner of waiting) {
      if (this.#total >= LIMITS.total) return;
      this.#waiting.delete(owner);
      owner.step();
    }
  }
}
