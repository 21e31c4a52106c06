import { randomBytes } from 'node:crypto';
import type { Authentication } from '../../access/authentication.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import type { AuthService } from '../auth/auth.service.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { IdentityProviders } from '../identity-providers/identity-providers.ts';
import { samlView } from './provider-views.ts';
import type { Refusals } from './refusals.ts';
import type { LogoutInput, LogoutProfile, LogoutProvider } from './saml/logout-profile.ts';
import { SsoRefusal } from './sso-refusal.ts';

interface SingleLogoutDeps {
  sql: Sql;
  changes: Changes;
  seal: Seal;
  profile: LogoutProfile;
  refusals: Refusals;
  publicUrl: () => string;
  identityProviders: IdentityProviders;
  sessions: Sessions;
  authentication: Authentication;
  auth: AuthService;
}

/** Where a browser goes on after a sign-out. */
export interface LogoutWay {
  /** `null`: nowhere, the sign-out is complete. */
  redirectUrl: string | null;
}

/** What becomes of a message of a provider. */
interface LogoutAnswer {
  /** Where the browser goes: to the provider, with the answer to its request, or to a page that tells the result. */
  redirectUrl: string;
  /** Whether it is a page of the service, which a program has no use for. */
  isPage: boolean;
}

/**
 * Single logout with SAML providers (spec, `slo_url`), in both directions. Every message of a provider that is not
 * accepted gets the same answer; the log has the reason.
 */
export class SingleLogout {
  readonly #deps: SingleLogoutDeps;

  constructor(deps: SingleLogoutDeps) {
    this.#deps = deps;
  }

  /**
   * Ends the caller's session, as a logout does.
   * @returns where the provider that made it ends its own, if it hears of sign-outs
   */
  async begin(caller: Caller): Promise<LogoutWay> {
    const { sql, auth, profile } = this.#deps;
    const { sessionId } = sessionOf(caller, 'user:update');
    const session = await findRow(sql, 'sessions', { id: sessionId });
    const provider = session?.identityProviderId ? await this.#providerOf(session.identityProviderId) : null;
    const redirectUrl =
      session?.subject && provider
        ? await profile.requestUrl(provider, {
            requestId: this.#newRequestId(provider),
            subject: session.subject,
            nameIdFormat: session.nameIdFormat,
            sessionIndex: session.sessionIndex,
          })
        : null;
    await auth.logout(caller);
    return { redirectUrl };
  }

  /**
   * Takes a message of a provider: its request ends sessions, and its response ends a sign-out that began here.
   * @throws AUTHENTICATION_FAILED, the same for everything that is wrong; RATE_LIMIT_EXCEEDED; SERVICE_UNAVAILABLE
   */
  async receive(caller: AnyCaller, providerId: string, input: LogoutInput): Promise<LogoutAnswer> {
    const { refusals } = this.#deps;
    await refusals.check(caller);
    try {
      return await this.#receive(caller, providerId, input);
    } catch (error) {
      if (!(error instanceof SsoRefusal)) throw error;
      await refusals.refuse(caller, { what: 'sign-out', protocol: 'saml', error });
      throw notAccepted();
    }
  }

  async #receive(caller: AnyCaller, providerId: string, input: LogoutInput): Promise<LogoutAnswer> {
    const { profile, publicUrl } = this.#deps;
    const provider = await this.#providerOf(providerId);
    if (!provider) throw new SsoRefusal('the provider was switched off, or has no address for sign-outs');
    const message = await profile.read(provider, input);
    if (message.kind === 'response') {
      if (!this.#isRequestId(provider, message.inResponseTo))
        throw new SsoRefusal('the message answers a request that was never sent');
      await this.#once(caller, provider, message);
      const page = `${publicUrl()}/account/sign-in?signed_out=${message.isSuccess ? 'everywhere' : 'here'}`;
      return { redirectUrl: page, isPage: true };
    }
    await this.#once(caller, provider, message, message);
    const { id: requestId, relayState } = message;
    return { redirectUrl: await profile.responseUrl(provider, { requestId, relayState }), isPage: false };
  }

  /** Uses up a message, and ends the sessions that it names, in one change. @throws SsoRefusal if it was used before */
  async #once(
    caller: AnyCaller,
    { id: identityProviderId }: LogoutProvider,
    { id, expiresAt }: { id: string; expiresAt: Date },
    ended: { subject: string; sessionIndexes: string[] } | null = null,
  ): Promise<void> {
    const { changes, sessions, authentication } = this.#deps;
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

  async #providerOf(id: string): Promise<LogoutProvider | null> {
    const row: IdentityProvider | null = await this.#deps.identityProviders.byId(id);
    if (row?.protocol !== 'saml') return null;
    const { sloUrl, ...view } = samlView(row);
    return sloUrl === null ? null : { ...view, sloUrl };
  }

  /** The id of a request, which shows by itself that it is one of the service to this provider. */
  #newRequestId({ id }: LogoutProvider): string {
    const random = randomBytes(16).toString('hex');
    return `_${random}${this.#tagOf(id, random)}`;
  }

  #isRequestId({ id }: LogoutProvider, requestId: string): boolean {
    const [, random, tag] = /^_([\da-f]{32})([\da-f]{64})$/.exec(requestId) ?? [];
    return random !== undefined && tag === this.#tagOf(id, random);
  }

  #tagOf(providerId: string, random: string): string {
    return this.#deps.seal.fingerprint(`${providerId} ${random}`);
  }
}

const switchedOff = () => new SsoRefusal('the provider was switched off');

/** The one answer to a message that is not accepted. */
const notAccepted = () =>
  new ApiError(
    'AUTHENTICATION_FAILED',
    {},
    'The message of the identity provider was not accepted. An administrator finds the reason in the log of the ' +
      'service.',
  );
