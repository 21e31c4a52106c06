import { type Html, html, page, pageHeadersFor } from '../pages/page.ts';
import { isAboutAccount, isSensitive, meaningOf } from './granted-scopes.ts';
import type { OAuthPages } from './oauth-provider.ts';

/** The way from `/oauth/…` to the folder of the account pages. */
const ROOT = '../account/';

/** The pages that oidc-provider shows by itself. */
export const oauthPages: OAuthPages = {
  headers: pageHeadersFor(),
  error: ({ error, description }) =>
    page(
      'This does not work',
      html`<p class="problem">${description ?? 'The request of the application cannot be answered.'}</p>
      <p class="hint">Code: ${error}. Go back to the application and begin again.</p>`,
      { root: ROOT },
    ),
  deviceCode: ({ action, xsrf, problem }) =>
    page(
      'Connect a device',
      html`${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <form method="post" action="${action}">
        <input type="hidden" name="xsrf" value="${xsrf}" />
        <label for="user_code">Code that the device shows</label>
        <input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" required
          maxlength="20" />
        <p class="hint">Enter only a code of a device that is in front of you. Nobody needs to send you one.</p>
        <button type="submit">Continue</button>
      </form>`,
      { root: ROOT },
    ),
  deviceConfirm: ({ action, xsrf, code, client, from }) =>
    page(
      'Connect this device?',
      html`<p><strong>${client}</strong> asks from the address <strong>${from.ip}</strong>
        (${from.userAgent || 'it does not say what it is'}).</p>
      <p>Does your device show the code <strong>${code}</strong>? If somebody sent it to you, refuse.</p>
      <form method="post" action="${action}">
        <input type="hidden" name="xsrf" value="${xsrf}" />
        <input type="hidden" name="user_code" value="${code}" />
        <button type="submit" name="confirm" value="yes">It is my device</button>
        <button type="submit" name="abort" value="yes" class="other">Refuse</button>
      </form>`,
      { root: ROOT },
    ),
  deviceDone: () =>
    page('The device is connected', html`<p>Go on at your device. You may close this page.</p>`, { root: ROOT }),
};

/** What the page of a consent shows. */
export interface ConsentFacts {
  application: string;
  applicationId: string;
  organization: string;
  /** Where the answer goes: a name can be anything. */
  host: string;
  user: string;
  identity: readonly string[];
  scopes: readonly string[];
  workspaces: readonly { id: string; name: string }[];
  formToken: string;
  endsWithSession: boolean;
  problem?: string;
}

const choice = (name: string, value: string, text: string, { checked = true, note = '' } = {}): Html =>
  html`<p class="choice"><label><input type="checkbox" name="${name}" value="${value}"${checked && html` checked`} />
    ${text}${note && html` <strong>${note}</strong>`}</label></p>`;

const noteOn = (scope: string): string =>
  [isSensitive(scope) ? '(sensitive)' : '', isAboutAccount(scope) ? '(about your whole account)' : ''].join(' ').trim();

/** Asks a user whether an application may act for them, and lets them narrow it. */
export const consentPage = (facts: ConsentFacts): string =>
  page(
    `Allow ${facts.application}?`,
    html`${facts.problem && html`<p class="problem" role="alert">${facts.problem}</p>`}
    <p>You are signed in as <strong>${facts.user}</strong>. The application <strong>${facts.application}</strong> of the
      organization <strong>${facts.organization}</strong> wants to act for you there. You will go on to
      <strong>${facts.host}</strong>.</p>
    <form method="post">
      <input type="hidden" name="form_token" value="${facts.formToken}" />
      ${
        facts.identity.length > 0 &&
        html`<h2>About you</h2>
      <ul>${facts.identity.map((scope) => html`<li>${meaningOf(scope)}</li>`)}</ul>`
      }
      ${
        facts.scopes.length > 0 &&
        html`<fieldset><legend>What it may do</legend>
      ${facts.scopes.map((scope) => choice('scope', scope, meaningOf(scope), { note: noteOn(scope) }))}</fieldset>`
      }
      ${
        facts.scopes.length > 0 &&
        facts.workspaces.length > 0 &&
        html`<fieldset><legend>Only in these workspaces</legend>
      <p class="hint">Without a choice: wherever you may.</p>
      ${facts.workspaces.map(({ id, name }) => choice('workspace', id, name, { checked: false }))}</fieldset>`
      }
      <p class="hint">${
        facts.endsWithSession ? 'It ends when you sign out of this browser.' : 'It lasts until you take it back.'
      } You can take it back at any time on the page of your account.</p>
      <button type="submit" name="decision" value="allow">Allow</button>
      <button type="submit" name="decision" value="refuse" class="other">Refuse</button>
    </form>`,
    { root: '../../account/' },
  );
