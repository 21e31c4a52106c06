// The page to which a provider sends a user back. It never sees a session: the application that opened it lends its
// access token for one exchange, and gets the result. Only applications of known origins are listened to: any other
// page could start an authorization of its own and have the user's account connected to it. The console of this service
// has no token, and opens providers in windows without an opener: it gets the code over a channel of this origin.

/** @typedef {{ type: string, state: string, ok?: boolean, error?: string, connection?: unknown }} Message */

const READY = 'connections.callback.ready';
const TOKEN = 'connections.callback.token';
const DONE = 'connections.callback.done';

const given = new URLSearchParams(location.search);
const state = given.get('state') ?? '';
const code = given.get('code') ?? '';
// one that is repeated is nobody
const iss = given.getAll('iss').length > 1 ? '' : given.get('iss');
const refusal = given.get('error');
// the client that this service is by its own document has an address of its own, at which codes must say who made
// them: otherwise a server that sent the browser on to another one would get the code of that
const isAtOwn = location.pathname.endsWith('/own-callback');
const isMisled = isAtOwn !== state.startsWith('own_') || (isAtOwn && !iss);
const listed = document.querySelector('meta[name="origins"]')?.getAttribute('content') ?? '';
const origins = new Set([location.origin, ...listed.split(' ').filter((origin) => origin !== '')]);
const opener = /** @type {Window | null} */ (window.opener);
const status = /** @type {HTMLElement} */ (document.getElementById('status'));

/**
 * @param {string} text
 * @param {'done' | 'problem'} kind
 */
function show(text, kind) {
  status.textContent = text;
  status.dataset.kind = kind;
  status.focus();
}

/**
 * @param {Message} message
 * @param {Iterable<string>} [to] only a window of one of these origins gets it
 */
function tell(message, to = origins) {
  for (const origin of to) opener?.postMessage(message, origin);
}

/**
 * @param {string} accessToken
 * @returns {Promise<Message>}
 */
async function exchange(accessToken) {
  const query = new URLSearchParams({ code, state, ...(iss !== null && { iss }) }).toString();
  try {
    const answer = await fetch(`../v1/connections/oauth/exchange?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${accessToken}` },
      credentials: 'omit',
      cache: 'no-store',
    });
    const body = /** @type {{ message?: string, detail?: { msg: string }[] }} */ (await answer.json());
    if (answer.ok) return { type: DONE, state, ok: true, connection: body };
    const error = body.message ?? body.detail?.map(({ msg }) => msg.replace('Value error, ', '')).join('. ');
    return { type: DONE, state, ok: false, error: error ?? `The service answered ${answer.status}.` };
  } catch {
    return { type: DONE, state, ok: false, error: 'The service cannot be reached.' };
  }
}

let isExchanging = false;

/** @param {MessageEvent<unknown>} event */
async function onMessage({ source, origin, data }) {
  if (source !== opener || !origins.has(origin) || isExchanging) return;
  const message = /** @type {Partial<Message> & { access_token?: unknown }} */ (data ?? {});
  if (message.type !== TOKEN || message.state !== state || typeof message.access_token !== 'string') return;
  isExchanging = true;
  const result = await exchange(message.access_token);
  tell(result, [origin]);
  if (!result.ok) return show(`${result.error ?? ''} Close this window and try again.`, 'problem');
  show('Connected. You can close this window.', 'done');
  window.close();
}

const CHANNEL = 'connections.callback';
/** A page that waits for this window answers sooner. */
const NOBODY_MS = 20_000;
const ALONE = 'This page was not opened by an application. Go back to it and connect again.';
const GONE = 'The page that began this is gone. Go back to the application, and connect again.';

/**
 * Brings to the console what came back, if it waits for this state.
 * @param {{ code: string, iss?: string } | { error: string }} brought
 */
function bring(brought) {
  const channel = new BroadcastChannel(CHANNEL);
  const timer = setTimeout(() => show(GONE, 'problem'), NOBODY_MS);
  const send = () => channel.postMessage({ type: 'code', state, ...brought });
  channel.onmessage = ({ data }) => {
    const answer = /** @type {Partial<Message>} */ (data ?? {});
    // a page that has just begun to listen has missed the code
    if (answer.type === 'listening') return send();
    if (answer.type !== 'done' || answer.state !== state) return;
    clearTimeout(timer);
    channel.close();
    if (!answer.ok) return show(`${answer.error ?? ''} Close this window and try again.`, 'problem');
    show('Connected. You can close this window.', 'done');
    window.close();
  };
  send();
}

// the code works once, and should not stay in the history
history.replaceState(null, '', location.pathname);
if (!opener) {
  if (state === '') show(ALONE, 'problem');
  else if (refusal !== null || code === '' || isMisled) bring({ error: refusal ?? 'incomplete' });
  else bring({ code, ...(iss !== null && { iss }) });
} else if (refusal !== null || code === '' || state === '') {
  tell({ type: DONE, state, ok: false, error: refusal ?? 'incomplete' });
  show('The provider did not grant access. Close this window and try again.', 'problem');
} else if (isMisled) {
  const error = 'The answer does not say that it is of the provider that was asked.';
  tell({ type: DONE, state, ok: false, error });
  show(`${error} Nothing is connected.`, 'problem');
} else {
  window.addEventListener('message', (event) => void onMessage(event));
  tell({ type: READY, state });
}
