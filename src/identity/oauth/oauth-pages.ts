import { type Html, html, page, pageHeadersFor } from '../pages/page.ts';
import { COMMAND_LINE } from './command-line.ts';
import { isAboutAccount, isSensitive, meaningOf } from './granted-scopes.ts';
import type { OAuthPages } from './oauth-provider.ts';

/**
 * The pages that oidc-provider shows by itself. They are at addresses of several depths.
 * @param root the path of the folder of the account pages
 */
export const oauthPagesOf = (root: string): OAuthPages => ({
  headers: pageHeadersFor(),
  error: ({ error, description }) =>
    page(
      'This does not work',
      html`<p class="problem">${description ?? 'The request of the application cannot be answered.'}</p>
      <p class="hint">Code: ${error}. Go back to the application and begin again.</p>`,
      { root },
    ),
  deviceCode: ({ action, xsrf, problem }) =>
    page(
      'Connect a device',
      html`${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <form method="post" action="${action}">
        <input type="hidden" name="xsrf" value="${xsrf}" />
        <label for="user_code">Code that the device shows</label>
        <input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" required
          maxlength="20" autofocus />
        <p class="hint">Enter only a code of a device that is in front of you. Nobody needs to send you one.</p>
        <button type="submit">Continue</button>
      </form>`,
      { root },
    ),
  deviceConfirm: ({ action, xsrf, code, client, clientHost, from }) =>
    page(
      'Connect this device?',
      html`<p>${
        clientHost &&
        html`A program of <strong>${clientHost}</strong>, which does not belong to this service and calls itself `
      }<strong>${client}</strong> asks from the address <strong>${from.ip}</strong>
        (${from.userAgent || 'it does not say what it is'}).</p>
      <p>Does your device show the code <strong>${code}</strong>? If somebody sent it to you, refuse.</p>
      <form method="post" action="${action}">
        <input type="hidden" name="xsrf" value="${xsrf}" />
        <input type="hidden" name="user_code" value="${code}" />
        <button type="submit" name="confirm" value="yes">It is my device</button>
        <button type="submit" name="abort" value="yes" class="other">Refuse</button>
      </form>`,
      { root },
    ),
  deviceDone: () =>
    page('The device is connected', html`<p>Go on at your device. You may close this page.</p>`, { root }),
});

/** An organization of a user. */
export interface OrganizationChoice {
  id: string;
  name: string;
}

/** What the page shows that asks for which organization a shared program is let in. */
export interface ChoiceFacts {
  application: string;
  /** The host of the document of somebody else's program; `null` for the command line. */
  clientHost: string | null;
  host: string;
  organizations: readonly OrganizationChoice[];
}

/** What the page of a consent shows. */
export interface ConsentFacts {
  application: string;
  /** The host of the document that describes somebody else's program; `null` for any other. */
  clientHost: string | null;
  clientId: string;
  organizationId: string;
  organization: string;
  /** Whether the user could let it in for another organization. */
  hasOthers: boolean;
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

/** A program of somebody else is known by its host: what it calls itself can be anything. */
const outsider = (clientHost: string, name: string): Html =>
  html`A program of <strong>${clientHost}</strong>, which does not belong to this service and calls itself
      <strong>${name}</strong>,`;

const whoAsks = ({ application, clientHost, clientId, organization }: ConsentFacts): Html => {
  if (clientHost === null && clientId !== COMMAND_LINE)
    return html`The application <strong>${application}</strong> of the organization <strong>${organization}</strong>
      wants to act for you there.`;
  const who = clientHost === null ? html`The <strong>${application}</strong>` : outsider(clientHost, application);
  return html`${who} wants to act for you in the organization <strong>${organization}</strong>.`;
};

/** Asks a user for which of their organizations a shared program may act for them. */
export const choicePage = ({ application, clientHost, host, organizations }: ChoiceFacts): string =>
  page(
    'For which organization?',
    html`<p>${
      clientHost === null ? html`The <strong>${application}</strong>` : outsider(clientHost, application)
    } wants to act for you. You will go on to <strong>${host}</strong>.</p>
    <form method="get">
      <fieldset><legend>Organization</legend>
      ${organizations.map(
        ({
          id,
          name,
        }) => html`<p class="choice"><label><input type="radio" name="organization" value="${id}" required />
        ${name}</label></p>`,
      )}</fieldset>
      <button type="submit">Continue</button>
    </form>`,
    { root: '../../account/' },
  );

/** Asks a user whether an application may act for them, and lets them narrow it. */
export const consentPage = (facts: ConsentFacts): string =>
  page(
    `Allow ${facts.clientHost ?? facts.application}?`,
    html`${facts.problem && html`<p class="problem" role="alert">${facts.problem}</p>`}
    <p>You are signed in as <strong>${facts.user}</strong>. ${whoAsks(facts)} You will go on to
      <strong>${facts.host}</strong>.</p>
    ${facts.clientHost !== null && html`<p class="hint">Its document: ${facts.clientId}</p>`}
    ${facts.hasOthers && html`<p><a href="?">Choose another organization</a></p>`}
    <form method="post">
      <input type="hidden" name="form_token" value="${facts.formToken}" />
      <input type="hidden" name="organization" value="${facts.organizationId}" />
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
