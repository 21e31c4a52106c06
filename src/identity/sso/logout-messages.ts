import type { Authentication } from '../../access/authentication.ts';
import type { Changes } from '../../data/changes.ts';
import { statement } from '../../data/writes.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { EndedSubject, Sessions } from '../auth/sessions.ts';
import { SsoRefusal } from './sso-refusal.ts';

interface LogoutDeps {
  changes: Changes;
  sessions: Sessions;
  authentication: Authentication;
}

/** What a provider has sent about a sign-out. */
interface ReceivedLogout {
  /** It is used once, until it expires. */
  message: { id: string; expiresAt: Date };
  /** The sessions that it ends, if it ends any. */
  ended?: Omit<EndedSubject, 'identityProviderId'>;
}

const switchedOff = () => new SsoRefusal('the provider was switched off');

/** Uses up a message, and ends the sessions that it names, in one change. @throws SsoRefusal if it was used before */
export async function useUpMessage(
  { changes, sessions, authentication }: LogoutDeps,
  caller: AnyCaller,
  identityProviderId: string,
  { message: { id, expiresAt }, ended }: ReceivedLogout,
): Promise<void> {
  await changes.run({ ...caller, principal: null }, async (tx) => {
    // sign-ins hold the provider until they are done: one that has begun before is ended too
    await tx.lock('identity_providers', { id: identityProviderId, isActive: true }, 'no key update', switchedOff);
    const [used] = await tx.query<{ id: string }>(statement`
      insert into sso_assertions (identity_provider_id, assertion_id, expires_at)
      values (${identityProviderId}, ${`logout ${id}`}, ${expiresAt}) on conflict do nothing
      returning assertion_id as id`);
    if (!used) throw new SsoRefusal('the message was used before');
    if (!ended) return;
    const users = await sessions.endOfSubject(tx, { identityProviderId, ...ended });
    for (const { userId, orgId } of users)
      tx.audit({
        action: 'logout',
        resourceType: 'user',
        resourceId: userId,
        orgId,
        metadata: { identity_provider_id: identityProviderId },
      });
    tx.afterCommit(() => authentication.sessionsChanged());
  });
}
