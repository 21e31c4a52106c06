import type { Authentication } from '../../access/authentication.ts';
import type { Changes } from '../../data/changes.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { IdentityProviders } from '../identity-providers/identity-providers.ts';
import { useUpMessage } from './logout-messages.ts';
import type { OidcLogout } from './oidc/oidc-logout.ts';
import { oidcView } from './provider-views.ts';
import type { Refusals } from './refusals.ts';
import { SsoRefusal } from './sso-refusal.ts';

interface BackchannelLogoutDeps {
  changes: Changes;
  refusals: Refusals;
  identityProviders: IdentityProviders;
  sessions: Sessions;
  authentication: Authentication;
  oidc: OidcLogout;
}

/** What OpenID providers tell by themselves: a user has signed out there (Back-Channel Logout 1.0). */
export class BackchannelLogout {
  readonly #deps: BackchannelLogoutDeps;

  constructor(deps: BackchannelLogoutDeps) {
    this.#deps = deps;
  }

  /**
   * Ends the sessions that a logout token names. What was granted for longer (`offline_access`) stays.
   * @returns whether the token was accepted; the log has the reason why not
   * @throws RATE_LIMIT_EXCEEDED
   */
  async receive(caller: AnyCaller, providerId: string, token: string): Promise<boolean> {
    const { refusals } = this.#deps;
    await refusals.check(caller);
    try {
      await this.#receive(caller, providerId, token);
      return true;
    } catch (error) {
      if (!(error instanceof SsoRefusal) && !(error instanceof OutboundError)) throw error;
      await refusals.refuse(caller, { what: 'sign-out', protocol: 'oidc', error });
      return false;
    }
  }

  async #receive(caller: AnyCaller, providerId: string, token: string): Promise<void> {
    const provider = await this.#deps.identityProviders.byId(providerId);
    if (provider?.protocol !== 'oidc') throw new SsoRefusal('the provider was switched off, or is of another protocol');
    const { subject, sessionId, ...message } = await this.#deps.oidc.verify(oidcView(provider, null), token);
    await useUpMessage(this.#deps, caller, provider.id, {
      message,
      ended: {
        subject,
        sessionIndexes: sessionId === null ? [] : [sessionId],
        // the provider names the session, and has not done so when it signed the user in
        isOfUnnamedToo: subject !== null,
      },
    });
  }
}
