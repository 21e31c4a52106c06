// Asks for an e-mail address and goes the right way: to the identity provider of its domain, or to a password. With
// `?redirect_uri=…` every sign-in goes on to that front end, with a code. With `?notification=…` the page shows that
// notification. With `?return_to=…` the browser goes on to that page of this service, signed in. URLs are relative, so
// that the service may run below a path of its host.

import { knowsPasskeys, usePasskey } from './passkeys.js';

/** @typedef {{ access_token: string, user: { email: string } }} Session */

const given = new URLSearchParams(location.search);
const status = byId('status');
const here = `${location.origin}${location.pathname}`;
/** Where a sign-in ends, if not at this page itself. */
const frontEnd = given.get('redirect_uri') === here ? null : given.get('redirect_uri');

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no '${id}'.`);
  return element;
}

/**
 * @param {string} text
 * @param {'done' | 'problem' | ''} kind
 */
function show(text, kind) {
  status.textContent = text;
  status.dataset.kind = kind;
  if (text) status.focus();
}

/**
 * @typedef {{ retry_after?: number, reason?: string, challenge?: string, methods?: string[],
 *   passkey_options?: never }} Details
 */

/** The password was right, and is not enough. */
class FactorRequired extends Error {
  /** @param {Details} details */
  constructor(details) {
    super('Prove your second factor to go on.');
    this.details = details;
  }
}

/**
 * Calls an operation of the service.
 * @param {string} path
 * @param {object} body
 * @param {string} [accessToken]
 * @returns {Promise<unknown>} the answer's JSON
 */
async function call(path, body, accessToken) {
  const headers = new Headers({ 'content-type': 'application/json' });
  if (accessToken) headers.set('authorization', `Bearer ${accessToken}`);
  // the cookie ties the sign-in to this browser
  const options = {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    credentials: /** @type {const} */ ('same-origin'),
  };
  const answer = await fetch(`../v1/auth/${path}`, options).catch(() => {
    throw new Error('The service cannot be reached. Try again in a moment.');
  });
  /** @type {unknown} */
  const result = await answer.json().catch(() => null); // a proxy's own error page
  if (answer.ok) return result;
  const { message, detail, details } =
    /** @type {{ message?: string, detail?: { msg: string }[], details?: Details }} */ (result ?? {});
  if (details?.reason === 'factor_required') throw new FactorRequired(details);
  if (answer.status === 429) throw new Error(`Too many tries. Try again in ${details?.retry_after ?? 60} seconds.`);
  if (answer.status === 401 && path === 'login') throw new Error('The password is wrong.');
  const invalid = detail?.map(({ msg }) => msg.replace('Value error, ', '')).join('. ');
  throw new Error(message ?? invalid ?? 'Something went wrong. Try again in a moment.');
}

/** @typedef {{ title: string, message: string, resolvedAt: string | null }} Notification */

const NOTIFICATION = 'notification';

/**
 * Shows the notification that the address named, also after the way to an identity provider and back.
 * @param {string} id
 * @param {string} accessToken
 */
async function showNotification(id, accessToken) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` };
  const body = JSON.stringify({ documentId: 'sign-in-page/notification', variables: { id } });
  const answer = await fetch('../graphql', { method: 'POST', headers, body }).catch(() => null);
  /** @type {unknown} */
  const result = await answer?.json().catch(() => null);
  const { data } = /** @type {{ data?: { notification?: Notification | null } | null }} */ (result ?? {});
  if (!data?.notification) return show('This notification no longer exists, or it is not for you.', 'problem');
  const { title, message, resolvedAt } = data.notification;
  byId('title').textContent = title;
  byId('message').textContent = message;
  byId('notification').hidden = false;
  show(resolvedAt ? 'This is no longer true. You may close this page.' : 'You may close this page.', 'done');
}

const RETURN = 'return_to';

/** @param {string} name @returns {string | null} */
function taken(name) {
  const value = sessionStorage.getItem(name);
  sessionStorage.removeItem(name);
  return value;
}

/** @param {string} to whether a browser takes it for a page of this service, and never for another host */
const isOwnPath = (to) => /^\/(?![/\\])[\x21-\x7e]*$/.test(to) && !to.includes('\\');

/**
 * The session becomes that of a front end, which gets a code for it. This page gives its tokens up.
 * @param {string} redirectUri
 * @param {string} accessToken
 * @param {RequestInit} options
 */
async function handOver(redirectUri, accessToken, options) {
  const body = new URLSearchParams({ redirect_uri: redirectUri });
  const answer = await fetch('session/code', { ...options, body }).catch(() => null);
  /** @type {unknown} */
  const result = await answer?.json().catch(() => null);
  if (answer?.ok) return location.assign(/** @type {{ redirect_to: string }} */ (result).redirect_to);
  await call('logout', {}, accessToken).catch(() => undefined);
  throw new Error(
    answer?.status === 400
      ? 'You were not signed in: the application that has sent you here is not one of this service.'
      : 'You could not be signed in. Try again in a moment.',
  );
}

/**
 * The session becomes that of this browser: a cookie holds it, which no script reads, and its tokens are given up.
 * @param {Session} session
 * @param {string | null} [redirectUri] the front end that gets it instead
 */
async function greet({ access_token: accessToken, user }, redirectUri = null) {
  const id = taken(NOTIFICATION);
  const to = taken(RETURN);
  if (id) {
    await showNotification(id, accessToken);
    await call('logout', {}, accessToken).catch(() => undefined);
    return;
  }
  const headers = { authorization: `Bearer ${accessToken}`, 'x-csrf': '1' };
  const options = { method: 'POST', headers, credentials: /** @type {const} */ ('same-origin') };
  if (redirectUri !== null) return handOver(redirectUri, accessToken, options);
  const opened = await fetch('session', options).catch(() => null);
  if (!opened?.ok) throw new Error('You could not be signed in. Try again in a moment.');
  if (to && isOwnPath(to)) return location.assign(new URL(`..${to}`, location.href));
  show(`You are signed in as ${user.email}.`, 'done');
  byId('account').hidden = false;
  byId('others').hidden = true;
}

/**
 * On submit: runs `work` with the values of the form, one run at a time.
 * @param {string} id
 * @param {(value: (name: string) => string) => Promise<void>} work
 */
function onSubmit(id, work) {
  const form = /** @type {HTMLFormElement} */ (byId(id));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));
  const submit = async () => {
    button.disabled = true;
    show('', '');
    try {
      const values = new FormData(form);
      await work((name) => /** @type {string} */ (values.get(name)));
    } catch (error) {
      show(error instanceof Error ? error.message : String(error), 'problem');
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
}

/**
 * On a click: runs `work`, one run at a time.
 * @param {string} id
 * @param {() => Promise<void>} work
 */
function onClick(id, work) {
  const button = /** @type {HTMLButtonElement} */ (byId(id));
  button.hidden = false;
  button.onclick = async () => {
    button.disabled = true;
    show('', '');
    try {
      await work();
    } catch (error) {
      show(error instanceof Error ? error.message : String(error), 'problem');
    } finally {
      button.disabled = false;
    }
  };
}

/** Asks for the second factor of a sign-in. @param {Details} details */
function askForFactor({ challenge, methods = [], passkey_options: options }) {
  byId('password-form').hidden = true;
  byId('factor-form').hidden = false;
  byId('code').focus();
  const finish = async (/** @type {object} */ proof) => {
    const session = await call('login/complete', { challenge, ...proof });
    byId('factor-form').hidden = true;
    await greet(/** @type {Session} */ (session), frontEnd);
  };
  onSubmit('factor-form', (value) => finish({ code: value('code') }));
  if (options && knowsPasskeys && methods.includes('passkey'))
    onClick('factor-passkey', async () => finish({ credential: await usePasskey(options) }));
}

async function signInWithPasskey() {
  const begun = /** @type {{ challenge: string, options: never }} */ (await call('passkeys/sign-in/begin', {}));
  const credential = await usePasskey(begun.options);
  const session = await call('passkeys/sign-in', { challenge: begun.challenge, credential });
  byId('ask').hidden = true;
  await greet(/** @type {Session} */ (session), frontEnd);
}

function ask() {
  let email = '';
  sessionStorage.removeItem(NOTIFICATION);
  sessionStorage.removeItem(RETURN);
  const to = given.get(RETURN);
  if (to) sessionStorage.setItem(RETURN, to);
  const wanted = given.get('notification');
  if (wanted) sessionStorage.setItem(NOTIFICATION, wanted);
  byId('ask').hidden = false;
  byId('email').focus();
  if (knowsPasskeys) onClick('passkey', signInWithPasskey);
  onSubmit('ask', async (value) => {
    email = value('email');
    const found = /** @type {{ sso_available: boolean }} */ (await call('sso/discover', { email }));
    if (found.sso_available) {
      const begun = await call('sso/initiate', { email, redirect_uri: given.get('redirect_uri') ?? here });
      const to = new URL(/** @type {{ redirect_url: string }} */ (begun).redirect_url, location.href);
      // anything else could be a script of this page
      if (!/^https?:$/.test(to.protocol))
        throw new Error('Your identity provider cannot be reached. Its address cannot be opened.');
      location.assign(to);
      return;
    }
    byId('ask').hidden = true;
    byId('password-form').hidden = false;
    // for managers of passwords
    /** @type {HTMLInputElement} */ (byId('username')).value = email;
    byId('password').focus();
  });
  onSubmit('password-form', async (value) => {
    try {
      const session = await call('login', { username: email, password: value('password') });
      byId('password-form').hidden = true;
      await greet(/** @type {Session} */ (session), frontEnd);
    } catch (error) {
      if (!(error instanceof FactorRequired)) throw error;
      askForFactor(error.details);
    }
  });
}

/** After a sign-out at an identity provider, by what it has answered. */
const signedOut = new Map([
  ['everywhere', 'You are signed out, here and at your identity provider.'],
  ['here', 'You are signed out here. Your identity provider did not end all of its sessions: close the browser.'],
]).get(given.get('signed_out') ?? '');

const code = given.get('code');
try {
  // a code works once, and should not stay in the history; nor should the result of a try
  if (code !== null || given.has('error')) history.replaceState(null, '', location.pathname);
  if (given.has('tested'))
    show('The test has ended. Its result is with the identity provider; you may close this page.', 'done');
  else if (signedOut !== undefined) show(signedOut, 'done');
  else if (given.has('error')) {
    ask();
    show('You were not signed in. Try again, or ask an administrator of your organization.', 'problem');
  } else if (code === null) ask();
  else await greet(/** @type {Session} */ (await call('sso/exchange', { code })));
} catch (error) {
  show(error instanceof Error ? error.message : String(error), 'problem');
}
