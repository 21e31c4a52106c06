// The search of the documentation, copying of commands, and a folded table of contents on small screens. Everything
// else works without it.

const base = document.body.dataset.base ?? './';
const form = /** @type {HTMLFormElement} */ (document.querySelector('search form'));
const input = /** @type {HTMLInputElement} */ (document.getElementById('query'));
const results = /** @type {HTMLElement} */ (document.getElementById('results'));
const count = /** @type {HTMLElement} */ (document.getElementById('count'));
const MAX_RESULTS = 12;

/** @typedef {{ id: string, page: string, title: string, text: string }} Part */
/** @typedef {{ search: (query: string, options: object) => Part[] }} Index */
/** @typedef {{ default: { loadJSON: (text: string, options: object) => Index } }} SearchModule */

/** @type {Promise<Index> | undefined} */
let index;
const loadIndex = () => (index ??= readIndex());

/** @returns {Promise<Index>} */
async function readIndex() {
  const loaded = /** @type {Promise<SearchModule>} */ (
    import(new URL(`${base}assets/minisearch.js`, location.href).href)
  );
  const answer = await fetch(`${base}search.json`);
  if (!answer.ok) throw new Error(`search.json: ${answer.status}`);
  const text = await answer.text();
  const { default: MiniSearch } = await loaded;
  return MiniSearch.loadJSON(text, { fields: ['title', 'page', 'text'], storeFields: ['page', 'title', 'text'] });
}

/** The words around the first place where one of the terms stands. @param {string} text @param {string} query */
function excerpt(text, query) {
  const lower = text.toLowerCase();
  const at = Math.min(
    ...query
      .toLowerCase()
      .split(/\s+/)
      .map((word) => lower.indexOf(word))
      .map((place) => (place < 0 ? lower.length : place)),
  );
  const start = at >= lower.length ? 0 : Math.max(0, at - 40);
  return `${start > 0 ? '…' : ''}${text.slice(start, start + 160)}`;
}

function close() {
  results.hidden = true;
  input.setAttribute('aria-expanded', 'false');
  input.removeAttribute('aria-activedescendant');
}

/** @param {readonly Part[]} found @param {string} query */
function show(found, query) {
  results.replaceChildren(
    ...found.map((part, at) => {
      const item = document.createElement('div');
      item.id = `result-${at}`;
      item.role = 'option';
      const link = document.createElement('a');
      link.href = base + part.id;
      link.tabIndex = -1;
      const about = document.createElement('small');
      about.textContent = excerpt(part.text, query);
      link.append(part.page === part.title ? part.title : `${part.page}: ${part.title}`, about);
      item.append(link);
      return item;
    }),
  );
  results.hidden = found.length === 0;
  input.setAttribute('aria-expanded', String(found.length > 0));
  input.removeAttribute('aria-activedescendant');
  count.textContent = query === '' ? '' : found.length === 1 ? '1 result' : `${found.length} results`;
}

async function search() {
  const query = input.value.trim();
  if (query === '') {
    show([], '');
    return;
  }
  try {
    const ready = await loadIndex();
    if (query !== input.value.trim()) return; // the reader typed on
    const options = { prefix: true, fuzzy: 0.2, boost: { title: 3, page: 2 }, combineWith: 'AND' };
    show(ready.search(query, options).slice(0, MAX_RESULTS), query);
  } catch {
    index = undefined;
    count.textContent = 'The search could not be loaded.';
  }
}

/** Marks the next result, or the one before. @param {number} step */
function move(step) {
  const items = [...results.children];
  const at = items.findIndex((item) => item.getAttribute('aria-selected') === 'true');
  items[at]?.removeAttribute('aria-selected');
  const next = items[(at + step + items.length) % items.length];
  if (!next) return;
  next.setAttribute('aria-selected', 'true');
  next.scrollIntoView({ block: 'nearest' });
  input.setAttribute('aria-activedescendant', next.id);
}

/** @type {HTMLElement} */ (document.querySelector('search')).hidden = false;
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const link = results.querySelector('[aria-selected="true"] a') ?? results.querySelector('a');
  if (link instanceof HTMLAnchorElement) {
    close();
    location.href = link.href;
  }
});
input.addEventListener('focus', () => void loadIndex().catch(() => (index = undefined)));
input.addEventListener('input', () => void search());
input.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') close();
  else if (event.key === 'ArrowDown') move(1);
  else if (event.key === 'ArrowUp') move(-1);
  else return;
  event.preventDefault();
});
results.addEventListener('click', () => close());
document.addEventListener('click', ({ target }) => {
  if (target instanceof Node && !form.contains(target)) close();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  input.focus();
});

if (matchMedia('(max-width: 52rem)').matches) document.querySelector('nav details')?.removeAttribute('open');

if (isSecureContext) {
  for (const block of document.querySelectorAll('pre')) {
    const text = block.textContent;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', () => {
      navigator.clipboard.writeText(text).then(
        () => (button.textContent = 'Copied'),
        () => (button.textContent = 'Not copied'),
      );
    });
    block.prepend(button);
  }
}
