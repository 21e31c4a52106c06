// The pages behind the links in mails. Addresses are relative, so that the service may live below a path of its host.

const token = new URLSearchParams(location.search).get('token') ?? '';
const status = document.getElementById('status');

const LINK_IS_DEAD = 'This link is not valid any more: it was used, has expired, or a newer one was sent.';

/** An answer that is no success; `fields` has a text for each input that is wrong. */
class Refusal extends Error {
  constructor(message, { statusCode, fields = {} }) {
    super(message);
    this.statusCode = statusCode;
    this.fields = fields;
  }
}

async function call(method, path, { body, accessToken } = {}) {
  const headers = {
    ...(body ? { 'content-type': 'application/json' } : {}),
    ...(accessToken ? { authorization: `Bearer ${accessToken}` } : {}),
  };
  const answer = await fetch(`../v1/${path}`, {
    method,
    headers,
    body: body && JSON.stringify(body),
    credentials: 'omit',
    cache: 'no-store',
  }).catch(() => {
    throw new Refusal('The service cannot be reached. Try again in a moment.', { statusCode: 0 });
  });
  const result = await answer.json().catch(() => null);
  if (answer.ok) return result;
  throw refusalOf(answer.status, result);
}

function refusalOf(statusCode, result) {
  if (statusCode === 422 && Array.isArray(result?.detail)) {
    const fields = Object.fromEntries(result.detail.map(({ loc, msg }) => [loc.at(-1), msg.replace('Value error, ', '')]));
    return new Refusal('', { statusCode, fields });
  }
  if (statusCode === 409 && result?.details?.field === 'username') {
    return new Refusal('', { statusCode, fields: { username: 'This user name is taken.' } });
  }
  if (statusCode === 409 && result?.details?.field === 'email') {
    return new Refusal('There is an account with this e-mail address already: sign in with it below.', { statusCode });
  }
  if (statusCode === 429) return new Refusal(`Too many tries. Try again in ${result?.details?.retry_after ?? 60} seconds.`, { statusCode });
  return new Refusal(result?.message ?? 'Something went wrong. Try again in a moment.', { statusCode });
}

function show(text, kind) {
  status.textContent = text;
  status.dataset.kind = kind;
  if (text) status.focus();
}

function showProblems(form, fields) {
  let first = null;
  for (const input of form.querySelectorAll('input')) {
    const problem = document.getElementById(`${input.id}-problem`);
    const text = fields[input.name] ?? '';
    problem.textContent = text;
    problem.hidden = !text;
    input.toggleAttribute('aria-invalid', Boolean(text));
    if (text) first ??= input;
  }
  first?.focus();
  return first !== null;
}

function finish(form) {
  for (const other of document.querySelectorAll('form, #invited')) other.hidden = true;
  // a token that was used up is worth nothing, but it need not stay in the history
  history.replaceState(null, '', location.pathname);
  show(form.dataset.done, 'done');
}

/** On submit: does `work` with the values of the form, once at a time. `explain` may word a refusal. */
function onSubmit(id, work, explain = () => undefined) {
  const form = document.getElementById(id);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = form.querySelector('button');
    button.disabled = true;
    show('', '');
    showProblems(form, {});
    try {
      await work(Object.fromEntries(new FormData(form)));
      finish(form);
    } catch (error) {
      const shown = showProblems(form, error.fields ?? {});
      if (!shown) show(explain(error) ?? (error.message || Object.values(error.fields).join('. ')), 'problem');
    } finally {
      button.disabled = false;
    }
  });
}

/** Signs in for as long as `work` takes: the page leaves no session behind. */
async function within(signIn, work) {
  const { access_token: accessToken } = await signIn();
  try {
    await work(accessToken);
  } finally {
    // what was asked for is done or refused already: a session that could not be ended expires by itself
    await call('POST', 'auth/logout', { accessToken }).catch(() => undefined);
  }
}

const whenDead = ({ statusCode }) => (statusCode === 401 ? LINK_IS_DEAD : undefined);

const pages = {
  async 'verify-email'() {
    onSubmit('verify', () => call('POST', 'auth/verify-email', { body: { token } }), whenDead);
  },
  async 'reset-password'() {
    onSubmit('reset', ({ new_password }) => call('POST', 'auth/reset-password', { body: { token, new_password } }), whenDead);
  },
  async 'accept-invitation'() {
    const { email, valid } = await call('GET', `auth/invite-info?token=${encodeURIComponent(token)}`);
    if (!valid) return show(LINK_IS_DEAD, 'problem');
    document.getElementById('email').textContent = email;
    document.getElementById('sign-in-username').value = email;
    for (const part of document.querySelectorAll('form, #invited')) part.hidden = false;
    onSubmit('register', ({ username, password }) =>
      within(
        () => call('POST', 'auth/register', { body: { email, username, password, invite_token: token } }),
        async () => undefined,
      ),
    );
    onSubmit(
      'sign-in',
      ({ username, password }) =>
        within(
          () => call('POST', 'auth/login', { body: { username, password } }),
          (accessToken) => call('POST', 'invitations/accept', { body: { token }, accessToken }),
        ),
      ({ statusCode }) => (statusCode === 401 ? 'User name or password is wrong.' : undefined),
    );
  },
};

if (token) await pages[document.body.dataset.page]().catch((error) => show(error.message, 'problem'));
else show('This link is not complete. Open it from your mail again.', 'problem');
