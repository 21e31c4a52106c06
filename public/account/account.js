// The pages behind the links in mails, and those for who cannot sign in. URLs are relative, so that the service may run
// below a path of its host.

/** @typedef {Record<string, string>} Fields text by name of an input */
/**
 * @typedef {{ error?: string, message?: string, details?: { field?: string, retry_after?: number }, detail?: { loc:
 * string[], msg: string }[] }} Problem
 */

const token = new URLSearchParams(location.search).get('token') ?? '';
const status = byId('status');

const LINK_IS_DEAD = 'This link is no longer valid: it was used, has expired, or a newer one was sent.';

/** A failed answer. `fields` has a text for each invalid input. */
class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} statusCode
   * @param {Fields} [fields]
   */
  constructor(message, statusCode, fields = {}) {
    super(message);
    this.statusCode = statusCode;
    this.fields = fields;
  }
}

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no '${id}'.`);
  return element;
}

/**
 * Calls an operation of the service.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: object, accessToken?: string }} [options]
 * @returns {Promise<unknown>} the answer's JSON
 */
async function call(method, path, { body, accessToken } = {}) {
  const headers = new Headers();
  if (body) headers.set('content-type', 'application/json');
  if (accessToken) headers.set('authorization', `Bearer ${accessToken}`);
  const answer = await fetch(`../v1/${path}`, {
    method,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
    credentials: 'omit',
    cache: 'no-store',
  }).catch(() => {
    throw new Refusal('The service cannot be reached. Try again in a moment.', 0);
  });
  /** @type {unknown} */
  const result = await answer.json().catch(() => null); // a proxy's own error page
  if (answer.ok) return result;
  throw refusalOf(answer.status, /** @type {Problem} */ (result ?? {}));
}

/**
 * @param {number} statusCode
 * @param {Problem} problem
 */
function refusalOf(statusCode, { message, details, detail }) {
  if (detail) {
    const texts = detail.map(({ loc, msg }) => [loc.at(-1), msg.replace('Value error, ', '')]);
    return new Refusal('', statusCode, /** @type {Fields} */ (Object.fromEntries(texts)));
  }
  if (statusCode === 409 && details?.field === 'username') {
    return new Refusal('', statusCode, { username: 'This user name is taken.' });
  }
  if (statusCode === 409 && details?.field === 'email') {
    return new Refusal('There is already an account with this e-mail address: sign in with it below.', statusCode);
  }
  if (statusCode === 429) {
    return new Refusal(`Too many tries. Try again in ${details?.retry_after ?? 60} seconds.`, statusCode);
  }
  return new Refusal(message ?? 'Something went wrong. Try again in a moment.', statusCode);
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
 * @param {HTMLFormElement} form
 * @param {Fields} fields
 * @returns {boolean} whether there was an input for one of them
 */
function showProblems(form, fields) {
  const wrong = [...form.querySelectorAll('input')].filter((input) => {
    const problem = byId(`${input.id}-problem`);
    const text = fields[input.name] ?? '';
    problem.textContent = text;
    problem.hidden = !text;
    input.ariaInvalid = text ? 'true' : null;
    return text !== '';
  });
  wrong[0]?.focus();
  return wrong.length > 0;
}

/** @param {boolean} isHidden */
function hideForms(isHidden) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('form, #invited'))) {
    part.hidden = isHidden;
  }
}

/**
 * On submit: runs `work` with the values of the form, one run at a time. `explain` may replace the text of a refusal.
 * @param {string} id
 * @param {(values: Fields) => Promise<unknown>} work
 * @param {(refusal: Refusal) => string | undefined} [explain]
 */
function onSubmit(id, work, explain = () => undefined) {
  const form = /** @type {HTMLFormElement} */ (byId(id));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));

  const submit = async () => {
    button.disabled = true;
    show('', '');
    showProblems(form, {});
    try {
      await work(/** @type {Fields} */ (Object.fromEntries(new FormData(form))));
      hideForms(true);
      // a used token is worthless, but it should not stay in the history either
      history.replaceState(null, '', location.pathname);
      show(form.dataset.done ?? '', 'done');
      const onward = document.getElementById('onward');
      if (onward) onward.hidden = false;
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(String(error), 0);
      if (showProblems(form, refusal.fields)) return;
      show(explain(refusal) ?? (refusal.message || Object.values(refusal.fields).join('. ')), 'problem');
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
 * Signs in only while `work` runs: the page leaves no session behind.
 * @param {Promise<unknown>} signIn
 * @param {(accessToken: string) => Promise<unknown>} work
 */
async function within(signIn, work) {
  const { access_token: accessToken } = /** @type {{ access_token: string }} */ (await signIn);
  try {
    await work(accessToken);
  } finally {
    // the work is already done or refused: a session that could not be ended expires by itself
    await call('POST', 'auth/logout', { accessToken }).catch(() => undefined);
  }
}

/** @param {Refusal} refusal */
const whenDead = ({ statusCode }) => (statusCode === 401 ? LINK_IS_DEAD : undefined);

async function acceptInvitation() {
  const info = await call('GET', `auth/invite-info?token=${encodeURIComponent(token)}`);
  const { email, valid } = /** @type {{ email: string, valid: boolean }} */ (info);
  if (!valid) return show(LINK_IS_DEAD, 'problem');
  byId('email').textContent = email;
  /** @type {HTMLInputElement} */ (byId('sign-in-username')).value = email;
  hideForms(false);
  onSubmit('register', ({ username, password }) => {
    const signIn = call('POST', 'auth/register', { body: { email, username, password, invite_token: token } });
    return within(signIn, async () => undefined);
  });
  onSubmit(
    'sign-in',
    ({ username, password }) =>
      within(call('POST', 'auth/login', { body: { username, password } }), (accessToken) =>
        call('POST', 'invitations/accept', { body: { token }, accessToken }),
      ),
    ({ statusCode }) => (statusCode === 401 ? 'User name or password is wrong.' : undefined),
  );
}

/** Who came from a sign-in goes back to the same one. */
function keepSignIn() {
  const given = new URLSearchParams(location.search);
  const kept = new URLSearchParams([...given].filter(([name]) => name === 'return_to' || name === 'redirect_uri'));
  const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector('a[href="sign-in"]'));
  if (link && kept.size > 0) link.search = kept.toString();
}

/** Pages that need no link. @type {Record<string, () => void>} */
const open = {
  'forgot-password': () => onSubmit('forgot', ({ email }) => call('POST', 'auth/forgot-password', { body: { email } })),
  register: () =>
    onSubmit('register', ({ email, username, password }) =>
      within(call('POST', 'auth/register', { body: { email, username, password } }), async () => undefined),
    ),
};

/** @type {Record<string, () => void | Promise<void>>} */
const pages = {
  'verify-email': () => onSubmit('verify', () => call('POST', 'auth/verify-email', { body: { token } }), whenDead),
  'reset-password': () =>
    onSubmit(
      'reset',
      ({ new_password, revoke_tokens }) =>
        call('POST', 'auth/reset-password', { body: { token, new_password, revoke_tokens: revoke_tokens === 'on' } }),
      whenDead,
    ),
  'accept-invitation': acceptInvitation,
};

try {
  const page = open[document.body.dataset.page ?? ''];
  if (page) {
    keepSignIn();
    page();
  } else if (token) await pages[document.body.dataset.page ?? '']?.();
  else show('This link is not complete. Open it from your mail again.', 'problem');
} catch (error) {
  show(error instanceof Error ? error.message : String(error), 'problem');
}
