// Adds passkeys to an account, and proves them. All else of the page works without a script. URLs are relative, so that
// the service may run below a path of its host.
import { knowsPasskeys, makePasskey, usePasskey } from './passkeys.js';

const status = document.getElementById('status');

/** @param {string} text */
function complain(text) {
  if (!status) return;
  status.textContent = text;
  status.dataset.kind = 'problem';
  status.focus();
}

/**
 * Calls an operation of the service, with the cookie of this browser.
 * @param {string} path
 * @param {object} body
 * @returns {Promise<unknown>} the answer's JSON
 */
async function call(path, body) {
  const headers = { 'content-type': 'application/json', 'x-csrf': '1' };
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
  const { message, detail } = /** @type {{ message?: string, detail?: { msg: string }[] }} */ (result ?? {});
  const invalid = detail?.map(({ msg }) => msg.replace('Value error, ', '')).join('. ');
  throw new Error(message ?? invalid ?? 'Something went wrong. Try again in a moment.');
}

/** @typedef {{ challenge: string, options: never }} Beginning */

/** @param {() => Promise<void>} work */
const tried = (work) => void work().catch((error) => complain(error instanceof Error ? error.message : String(error)));

/** Shows recovery codes that are not shown again. @param {string[]} codes */
function showCodes(codes) {
  const main = /** @type {HTMLElement} */ (document.querySelector('main'));
  const title = document.createElement('h2');
  title.textContent = 'Your recovery codes';
  const text = document.createElement('p');
  text.textContent =
    'Each signs you in once when you have lost everything else. They are not shown again: keep them in a safe place.';
  const list = document.createElement('ul');
  list.className = 'list codes';
  for (const code of codes) {
    const item = document.createElement('li');
    item.append(Object.assign(document.createElement('code'), { textContent: code }));
    list.append(item);
  }
  const on = Object.assign(document.createElement('a'), { href: 'factors', textContent: 'Go on' });
  main.replaceChildren(title, text, list, on);
  title.tabIndex = -1;
  title.focus();
}

/** @param {HTMLFormElement} form */
async function add(form) {
  const values = new FormData(form);
  const password = values.get('current_password');
  const begun = /** @type {Beginning} */ (await call('passkeys/begin', password ? { current_password: password } : {}));
  const credential = await makePasskey(begun.options);
  const added = /** @type {{ recovery_codes: string[] }} */ (
    await call('passkeys', { challenge: begun.challenge, credential, name: values.get('name') })
  );
  if (added.recovery_codes.length > 0) showCodes(added.recovery_codes);
  else location.assign('factors');
}

async function prove() {
  const { challenge, options } = /** @type {Beginning} */ (await call('factors/proof/begin', {}));
  await call('factors/proof', { challenge, credential: await usePasskey(options) });
  location.assign('factors');
}

const form = /** @type {HTMLFormElement | null} */ (document.getElementById('add-passkey'));
const button = document.getElementById('prove-passkey');
if (form && knowsPasskeys) {
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    tried(() => add(form));
  });
}
if (button && knowsPasskeys) {
  button.hidden = false;
  button.addEventListener('click', () => tried(prove));
}
