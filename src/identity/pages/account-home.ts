import type { OwnToken } from '../api-tokens/own-tokens.ts';
import type { LivingSession } from '../auth/browser-sessions.ts';
import type { FactorsView } from '../factors/factor.service.ts';
import type { PasskeyView } from '../factors/passkey.service.ts';
import type { ConnectedApplication } from '../oauth/application-grants.ts';
import { meaningOf } from '../oauth/granted-scopes.ts';
import { agentName } from './agent-name.ts';
import { MOST_SHOWN } from './most-shown.ts';
import { type Html, html, page } from './page.ts';

/** What the page of an account shows. */
export interface AccountFacts {
  email: string;
  /** The session of this browser. */
  sessionId: string;
  sessions: readonly LivingSession[];
  applications: readonly ConnectedApplication[];
  tokens: readonly OwnToken[];
  factors: FactorsView;
  passkeys: readonly PasskeyView[];
  formToken: string;
  /** For the forms of the page of second factors. */
  factorFormToken: string;
}

const day = (date: Date): string => date.toISOString().slice(0, 16).replace('T', ' ');

/** What has access to an account, each with a button that ends it. */
export function accountPage(facts: AccountFacts): string {
  const { email, sessionId, sessions, applications, tokens, formToken } = facts;
  const button = (end: string, label: string, text: string): Html =>
    html`<form method="post" action="account" class="inline">
        <input type="hidden" name="form_token" value="${formToken}" />
        <button type="submit" name="end" value="${end}" aria-label="${label}">${text}</button>
      </form>`;
  const list = (items: readonly Html[], none: string): Html =>
    items.length > 0
      ? html`<ul class="list">${items.slice(0, MOST_SHOWN)}</ul>${
          items.length > MOST_SHOWN &&
          html`<p class="hint">There are more than these ${MOST_SHOWN}: end some to see them.</p>`
        }`
      : html`<p class="hint">${none}</p>`;
  const ofSession = ({ id, createdAt, method, userAgent }: LivingSession): Html =>
    html`<li>${agentName(userAgent)} <span class="hint">since ${day(createdAt)} UTC, by ${method}${
      id === sessionId && ', this browser'
    }</span> ${button(`session ${id}`, `End the session since ${day(createdAt)}`, 'End')}</li>`;
  const ofApplication = ({ id, name, organization, scopes, lastUsedAt, workspaceIds }: ConnectedApplication): Html =>
    html`<li><strong>${name}</strong> of ${organization}
      <span class="hint">${scopes.map(meaningOf).join('; ') || 'Knows who you are'}${
        workspaceIds.length > 0 && `; in ${workspaceIds.length} of its workspaces`
      }; ${lastUsedAt ? `last used ${day(lastUsedAt)} UTC` : 'never used'}</span>
      ${button(`application ${id}`, `Disconnect ${name}`, 'Disconnect')}</li>`;
  const ofToken = ({ id, name, prefix, organization, expiresAt }: OwnToken): Html =>
    html`<li><strong>${name}</strong> (${prefix}…) of ${organization}
      <span class="hint">${expiresAt ? `until ${day(expiresAt)} UTC` : 'without an end'}</span>
      ${button(`token ${id}`, `Revoke the token ${name}`, 'Revoke')}</li>`;
  return page(
    'Your account',
    html`<p>You are signed in as <strong>${email}</strong>. <a href="console/">Go to the console</a></p>
      ${button('sign_out', 'Sign out of this browser', 'Sign out')}
      <h2>Second factors</h2>
      ${list(factorsOf(facts), 'You have none: your password is enough to sign in.')}
      <p><a href="account/factors">Add or change one-time codes, passkeys and recovery codes</a></p>
      <h2>Sessions</h2>
      ${list(sessions.map(ofSession), 'None.')}
      <h2>Connected applications</h2>
      ${list(applications.map(ofApplication), 'You have allowed no application to act for you.')}
      <h2>API tokens</h2>
      ${list(tokens.map(ofToken), 'You have no API token that works.')}`,
    { root: 'account/' },
  );
}

/** The second factors, each with a button that removes it: by a form of their own page, which may ask for a proof. */
function factorsOf({ factors: { totp }, passkeys, factorFormToken }: AccountFacts): Html[] {
  const used = (date: Date | null) => (date ? `last used ${day(date)} UTC` : 'never used');
  const one = (
    name: string,
    { createdAt, lastUsedAt }: Pick<PasskeyView, 'createdAt' | 'lastUsedAt'>,
    remove: string,
  ) =>
    html`<li><strong>${name}</strong> <span class="hint">since ${day(createdAt)} UTC, ${used(lastUsedAt)}</span>
      <form method="post" action="account/factors" class="inline">
        <input type="hidden" name="form_token" value="${factorFormToken}" />
        <button type="submit" name="do" value="${remove}" aria-label="Remove ${name}">Remove</button>
      </form></li>`;
  return [
    ...(totp ? [one('App for one-time codes', totp, 'remove_totp')] : []),
    ...passkeys.map((passkey) => one(`Passkey ${passkey.name}`, passkey, `remove_passkey ${passkey.id}`)),
  ];
}
