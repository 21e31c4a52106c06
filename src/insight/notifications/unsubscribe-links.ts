import type { Seal } from '../../platform/keys/seal.ts';

/** The mails of a user about a category, in an organization. */
export interface MailedCategory {
  userId: string;
  orgId: string | null;
  category: string;
}

const CONTEXT = 'unsubscribe';

/** Stands in for a category in the links of digests. */
export const DIGEST = 'digest';

/** Links in mails that end mails of their kind. Nobody else can make one, and they tell nothing of whose they are. */
export class UnsubscribeLinks {
  readonly #seals: readonly [Seal, ...Seal[]];
  readonly #publicUrl: () => string;

  /** @param seals the first seals new links; links of all of them work */
  constructor(seals: readonly [Seal, ...Seal[]], publicUrl: () => string) {
    this.#seals = seals;
    this.#publicUrl = publicUrl;
  }

  linkFor({ userId, orgId, category }: MailedCategory): string {
    const token = this.#seals[0].seal(JSON.stringify([userId, orgId, category]), CONTEXT).toString('base64url');
    return `${this.#publicUrl()}/account/unsubscribe?token=${token}`;
  }

  /** What the token of a link is for; `null` if the service did not make it. */
  open(token: string): MailedCategory | null {
    const sealed = Buffer.from(token, 'base64url');
    for (const seal of this.#seals) {
      const text = opened(seal, sealed);
      if (text === null) continue;
      const [userId, orgId, category] = JSON.parse(text) as [string, string | null, string];
      return { userId, orgId, category };
    }
    return null;
  }
}

function opened(seal: Seal, sealed: Buffer): string | null {
  try {
    return seal.open(sealed, CONTEXT);
  } catch {
    // sealed with another secret, or by nobody
    return null;
  }
}
