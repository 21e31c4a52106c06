import { randomBytes } from 'node:crypto';
import type { Authentication } from '../../access/authentication.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { IdentityProvider, Session } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { AuthService } from '../auth/auth.service.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { IdentityProviders } from '../identity-providers/identity-providers.ts';
import { useUpMessage } from './logout-messages.ts';
import type { OidcLogout } from './oidc/oidc-logout.ts';
import { oidcView, samlView } from './provider-views.ts';
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
  oidc: OidcLogout;
  /** Opens the ID tokens of sessions. */
  idTokens: Seal;
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
    // after it: a provider that does not answer keeps nobody from signing out here
    if (session?.method === 'oidc') return { redirectUrl: await this.#endAtOpenId(caller, session) };
    return { redirectUrl };
  }

  /** Where an OpenID provider ends its own session; `null` if it has no such page, or does not answer. */
  async #endAtOpenId(caller: Caller, { identityProviderId, idToken }: Session): Promise<string | null> {
    const { identityProviders, oidc, refusals } = this.#deps;
    const provider = identityProviderId === null ? null : await identityProviders.byId(identityProviderId);
    if (provider?.protocol !== 'oidc') return null;
    try {
      return await oidc.endSessionUrl(oidcView(provider, null), this.#hintOf(provider.id, idToken));
    } catch (error) {
      if (!(error instanceof SsoRefusal) && !(error instanceof OutboundError)) throw error;
      refusals.log(caller, { what: 'sign-out', protocol: 'oidc', error });
      return null;
    }
  }

  /** The ID token of a session; `null` without one, or if it was sealed with a secret that is gone. */
  #hintOf(providerId: string, sealed: Uint8Array | null): string | null {
    if (sealed === null) return null;
    try {
      return this.#deps.idTokens.open(sealed, providerId);
    } catch {
      return null;
    }
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
      await useUpMessage(this.#deps, caller, provider.id, { message });
      const page = `${publicUrl()}/account/sign-in?signed_out=${message.isSuccess ? 'everywhere' : 'here'}`;
      return { redirectUrl: page, isPage: true };
    }
    const { subject, sessionIndexes } = message;
    await useUpMessage(this.#deps, caller, provider.id, { message, ended: { subject, sessionIndexes } });
    const { id: requestId, relayState } = message;
    return { redirectUrl: await profile.responseUrl(provider, { requestId, relayState }), isPage: false };
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

/** The one answer to a message that is not accepted. */
const notAccepted = () =>
  new ApiError(
    'AUTHENTICATION_FAILED',
    {},
    'The message of the identity provider was not accepted. An administrator finds the reason in the log of the ' +
      'service.',
  );
