import type { ServiceDeps } from '../../access/service-deps.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { isActiveAccount } from '../../tenancy/views.ts';
import { addMute } from './mutes.ts';
import { endDigests } from './schedules.ts';
import { DIGEST, type UnsubscribeLinks } from './unsubscribe-links.ts';

/** Ends mails by a link, without a sign-in: whoever has the mail may do so. */
export class Unsubscribing {
  readonly #deps: Pick<ServiceDeps, 'changes' | 'sql'>;
  readonly #links: UnsubscribeLinks;

  constructor(deps: Pick<ServiceDeps, 'changes' | 'sql'>, links: UnsubscribeLinks) {
    this.#deps = deps;
    this.#links = links;
  }

  /** Ends the mails that a link is for. Repeating it changes nothing. @returns whether the link is still of use */
  async end(caller: AnyCaller, token: string): Promise<boolean> {
    const mailed = this.#links.open(token);
    if (!mailed) return false;
    const { userId, orgId, category } = mailed;
    const [user] = await this.#deps.sql.read<{ username: string }>(
      `select u.username from users u where u.id = $1 and ${isActiveAccount('u')}
        and ($2::text is null or exists (select from organizations o where o.id = $2))`,
      [userId, orgId],
    );
    if (!user) return false;
    // whoever has the link acts for its user
    const acting: AnyCaller = { principal: null, signedInAs: { userId, ...user }, request: caller.request };
    await this.#deps.changes.run(acting, async (tx) => {
      if (category === DIGEST) tx.write(endDigests(userId));
      else tx.write(addMute(userId, { category, channel: 'mail', orgId, workspaceId: null }));
      tx.audit({
        action: 'update',
        resourceType: 'notification',
        resourceId: null,
        orgId,
        metadata: { unsubscribed: category },
      });
    });
    return true;
  }
}
