import { encodeQR } from 'qr';
import type { FactorsView } from '../factors/factor.service.ts';
import type { PasskeyView } from '../factors/passkey.service.ts';
import { Html, html, page } from './page.ts';

const CODE = html`autocomplete="one-time-code" required maxlength="40"`;

/** Asks for the second factor of a sign-in whose password was right. */
export function secondStepPage(facts: {
  challenge: string;
  formToken: string;
  returnTo: string;
  /** A field with where the sign-in ends, if that is a front end. */
  redirectUri: Html | false;
  problem: string;
}): string {
  const { challenge, formToken, returnTo, redirectUri, problem } = facts;
  return page(
    'One more step',
    html`${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <form method="post" action="sign-in">
        <input type="hidden" name="form_token" value="${formToken}" />
        <input type="hidden" name="return_to" value="${returnTo}" />
        ${redirectUri}
        <input type="hidden" name="challenge" value="${challenge}" />
        <label for="code">Code of your app, or a recovery code</label>
        <input id="code" name="code" type="text" ${CODE} autofocus />
        <button type="submit">Sign in</button>
      </form>
      <p class="hint">A passkey needs JavaScript. <a href="sign-in">Begin again</a></p>`,
  );
}

/** What the page of somebody's factors shows. */
export interface FactorPageFacts {
  factors: FactorsView;
  passkeys: readonly PasskeyView[];
  formToken: string;
  /** What has just gone wrong. */
  problem?: string;
  /** What an app is to scan, shown once. */
  enrolment?: { uri: string; secret: string };
  /** Whether an app was begun, and waits for its first code. */
  isBegun?: boolean;
  /** Shown once. */
  recoveryCodes?: readonly string[];
}

const day = (date: Date): string => date.toISOString().slice(0, 16).replace('T', ' ');

const used = (date: Date | null): string => (date ? `last used ${day(date)} UTC` : 'never used');

/** The second factors of an account: each can be added, proven and removed. */
export function factorsPage(facts: FactorPageFacts): string {
  const { factors, passkeys, problem } = facts;
  const hasFactor = factors.totp !== null || passkeys.length > 0;
  return page(
    'Second factors',
    html`${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${facts.recoveryCodes && facts.recoveryCodes.length > 0 && shownCodes(facts.recoveryCodes)}
      ${
        facts.enrolment || facts.isBegun
          ? confirmation(facts)
          : html`${hasFactor && proof(facts, passkeys.length > 0)}
      <h2>App for one-time codes</h2>
      ${ofTotp(facts)}
      <h2>Passkeys</h2>
      ${ofPasskeys(facts, hasFactor)}
      ${hasFactor && recovery(facts)}`
      }
      <p><a href="../account">Your account</a></p>
      <p id="status" role="status" aria-live="polite" tabindex="-1"></p>`,
    { script: 'factors.js' },
  );
}

/** A form of the page that does one thing. */
const form = (
  { formToken }: Pick<FactorPageFacts, 'formToken'>,
  action: string,
  content: Html,
  isInline = false,
): Html =>
  html`<form method="post" action="factors"${isInline && html` class="inline"`}>
        <input type="hidden" name="form_token" value="${formToken}" />
        <input type="hidden" name="do" value="${action}" />
        ${content}
      </form>`;

const passwordField = (id: string): Html =>
  html`<label for="${id}">Your password</label>
        <input id="${id}" name="current_password" type="password" autocomplete="current-password" maxlength="1024"
          aria-describedby="${id}-hint" />
        <p id="${id}-hint" class="hint">Not needed for an account without one.</p>`;

const shownCodes = (codes: readonly string[]): Html =>
  html`<section aria-labelledby="codes">
        <h2 id="codes">Your recovery codes</h2>
        <p>Each signs you in once when you have lost everything else. They are not shown again: keep them in a safe
          place.</p>
        <ul class="list codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
      </section>`;

function confirmation(facts: FactorPageFacts): Html {
  const { enrolment } = facts;
  return html`<h2>Add an app for one-time codes</h2>
      ${
        enrolment &&
        html`<p>Scan this with your app, or type the key into it. It is not shown again.</p>
      <p class="qr">${qrOf(enrolment.uri)}</p>
      <p>Key: <code id="secret">${enrolment.secret}</code></p>`
      }
      ${form(
        facts,
        'confirm',
        html`<label for="code">The code that your app shows</label>
        <input id="code" name="code" type="text" inputmode="numeric" ${CODE} />
        <button type="submit">Add the app</button>`,
      )}`;
}

/** The picture has no text of a user in it. */
const qrOf = (uri: string): Html =>
  new Html(encodeQR(uri, 'svg', { border: 4 }).replace('<svg ', '<svg role="img" aria-label="The key as a QR code" '));

const proof = (facts: FactorPageFacts, hasPasskey: boolean): Html =>
  html`<h2>Prove that it is you</h2>
      <p class="hint">${
        facts.factors.provenAt ? `Last done in this session at ${day(facts.factors.provenAt)} UTC.` : 'Not done yet.'
      } Changes here take a proof of the last ten minutes.</p>
      ${form(
        facts,
        'prove',
        html`<label for="proof">Code of your app, or a recovery code</label>
        <input id="proof" name="code" type="text" ${CODE} />
        <button type="submit">Prove</button>`,
      )}
      ${
        hasPasskey && html`<button type="button" class="other" id="prove-passkey" hidden>Prove with a passkey</button>`
      }`;

function ofTotp(facts: FactorPageFacts): Html {
  const { totp } = facts.factors;
  if (!totp)
    return form(
      facts,
      'enrol',
      html`<p class="hint">With one, signing in takes your password and a code.</p>
        ${passwordField('enrol-password')}
        <button type="submit">Add an app</button>`,
    );
  return html`<p>Added ${day(totp.createdAt)} UTC, <span class="hint">${used(totp.lastUsedAt)}</span></p>
      ${form(facts, 'remove_totp', html`<button type="submit">Remove the app</button>`, true)}`;
}

function ofPasskeys(facts: FactorPageFacts, hasFactor: boolean): Html {
  const one = ({ id, name, createdAt, lastUsedAt, isSynced }: PasskeyView): Html => html`<li><strong>${name}</strong>
      <span class="hint">since ${day(createdAt)} UTC, ${used(lastUsedAt)}${isSynced && ', on several devices'}</span>
      ${form(
        facts,
        `rename_passkey ${id}`,
        html`<label for="name-${id}">Name of the passkey ${name}</label>
        <input id="name-${id}" name="name" type="text" value="${name}" required maxlength="255" />
        <button type="submit">Rename</button>`,
        true,
      )}
      ${form(
        facts,
        `remove_passkey ${id}`,
        html`<button type="submit" aria-label="Remove the passkey ${name}">Remove</button>`,
        true,
      )}</li>`;
  return html`${
    facts.passkeys.length > 0
      ? html`<ul class="list">${facts.passkeys.map(one)}</ul>`
      : html`<p class="hint">With one, you sign in by your device, without a password.</p>`
  }
      <form id="add-passkey" hidden>
        <label for="passkey-name">Name of a new passkey</label>
        <input id="passkey-name" name="name" type="text" value="Passkey" required maxlength="255" />
        ${!hasFactor && passwordField('passkey-password')}
        <button type="submit">Add a passkey</button>
      </form>
      <noscript><p class="hint">Adding a passkey needs JavaScript.</p></noscript>`;
}

const recovery = (facts: FactorPageFacts): Html =>
  html`<h2>Recovery codes</h2>
      <p>${facts.factors.recoveryCodesLeft} of them are left.</p>
      ${form(facts, 'renew_codes', html`<button type="submit">Make new codes</button>`, true)}`;
