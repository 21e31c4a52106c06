// Renders `docs/` to the pages that the service has at `/docs/`: HTML, the index of their search, the Markdown itself
// and `llms.txt`. All links are relative, so that the pages work below any path of a proxy.
// Pictures, and files that pages lead to, are beside them.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { Marked } from 'marked';
import MiniSearch from 'minisearch';
import { filesBelow, makeIfChanged, root } from './stamp.mjs';

const source = path.join(root, 'docs');
const target = path.join(root, 'public', 'docs', 'pages');

/**
 * A page: `path` is that of its address below `/docs/`, without an ending; the first one has none.
 * @typedef {{ path: string, file: string, markdown: string, title: string }} Page
 * @typedef {{ title: string, pages: { path: string, title: string }[] }} Chapter
 * @typedef {{ id: string, page: string, title: string, text: string }} Part what the search finds
 */

/** Renders the pages, unless nothing changed. @param {import('./stamp.mjs').OnStep} [onStep] */
export function docsIfChanged(onStep) {
  const pages = {
    name: 'docs',
    doing: 'building: rendering the documentation',
    inputs: [
      'docs',
      ...['page.html', 'docs.css', 'docs.js'].map((file) => `public/docs/${file}`),
      'scripts/build-docs.mjs',
      'package-lock.json',
    ],
    outputs: ['public/docs/pages/index.html', 'public/docs/pages/search.json', 'public/docs/pages/llms.txt'],
    make: build,
  };
  return makeIfChanged(pages, onStep);
}

function build() {
  rmSync(target, { recursive: true, force: true });
  const pages = filesBelow(source)
    .filter((file) => file.endsWith('.md'))
    .map((file) => pageOf(path.relative(source, file).replaceAll(path.sep, '/')));
  const contents = pages.find(({ file }) => file === 'README.md');
  if (!contents) throw new Error('docs/README.md, the table of contents, is missing.');
  const chapters = chaptersOf(contents.markdown);
  const frame = readFileSync(path.join(root, 'public', 'docs', 'page.html'), 'utf8');
  /** @type {Part[]} */
  const parts = [];
  for (const page of pages) {
    const { html, found } = rendered(page);
    parts.push(...found);
    write(`${/(?:^|\/)$/.test(page.path) ? `${page.path}index` : page.path}.html`, framed(frame, page, chapters, html));
    write(page.file, page.markdown);
  }
  for (const file of filesBelow(source).filter((name) => /\.(?:svg|json|yaml)$/.test(name)))
    write(path.relative(source, file).replaceAll(path.sep, '/'), readFileSync(file, 'utf8'));
  for (const file of filesBelow(source).filter((name) => name.endsWith('.webp')))
    write(path.relative(source, file).replaceAll(path.sep, '/'), readFileSync(file));
  for (const file of ['docs.css', 'docs.js'])
    write(`assets/${file}`, readFileSync(path.join(root, 'public', 'docs', file), 'utf8'));
  write('search.json', JSON.stringify(indexOf(parts)));
  write('llms.txt', llms(contents.markdown));
  write(
    'assets/minisearch.js',
    readFileSync(path.join(root, 'node_modules', 'minisearch', 'dist', 'es', 'index.js'), 'utf8').replace(
      /^\/\/# sourceMappingURL=.*$/m,
      '',
    ),
  );
}

/** Writes a file, and beside it the same compressed. @param {string} file @param {string | Buffer} text */
function write(file, text) {
  const at = path.join(target, file);
  mkdirSync(path.dirname(at), { recursive: true });
  writeFileSync(at, text);
  writeFileSync(`${at}.gz`, gzipSync(text, { level: 9 }));
}

/** @param {string} file @returns {Page} */
function pageOf(file) {
  const markdown = readFileSync(path.join(source, file), 'utf8');
  const title = /^# (.+)$/m.exec(markdown)?.[1];
  if (!title) throw new Error(`docs/${file} has no title.`);
  return { path: addressOf(file), file, markdown, title };
}

/** The address of a page below `/docs/`. @param {string} file */
const addressOf = (file) => file.replace(/(?:^|(?<=\/))README\.md$/, '').replace(/\.md$/, '');

/** The way from one page to another, as a browser resolves it. @param {string} from @param {string} to */
function way(from, to) {
  const relative = path.posix.relative(path.posix.dirname(`/${from}x`), `/${to}`);
  return to === '' || to.endsWith('/') ? `${relative || '.'}/` : relative;
}

/** @param {string} markdown of the table of contents @returns {Chapter[]} */
function chaptersOf(markdown) {
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf('\n')),
      pages: [...text.matchAll(/^- \[(.+)\]\((.+)\)$/gm)].map(([, title = '', file = '']) => ({
        path: addressOf(file),
        title: title.replace(/:.*/, ''),
      })),
    }));
}

/** The anchor of a heading, as in repositories. @param {string} title */
const anchorOf = (title) =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** @param {string} text */
const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/**
 * The HTML of a page, and its parts for the search: one for each heading.
 * @param {Page} page
 * @returns {{ html: string, found: Part[] }}
 */
function rendered(page) {
  /** @type {Part[]} */
  const found = [];
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const anchor = anchorOf(text);
        found.push({ id: `${page.path}#${anchor}`, page: page.title, title: text.replaceAll('`', ''), text: '' });
        const link = depth === 1 ? '' : ` <a class="anchor" href="#${anchor}" aria-hidden="true" tabindex="-1">#</a>`;
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const to = linkFrom(page, href);
        return to === null ? text : `<a href="${escaped(to)}">${text}</a>`;
      },
      code({ text, lang }) {
        return `<pre tabindex="0" data-language="${escaped(lang ?? '')}"><code>${escaped(text)}</code></pre>\n`;
      },
      html({ text }) {
        if (text === '<br>') return text;
        if (!/^\s*<!--.*-->\s*$/s.test(text)) throw new Error(`docs/${page.file} has HTML: ${text}`);
        return '';
      },
    },
    hooks: {
      processAllTokens(tokens) {
        for (const token of tokens) collect(token);
        return tokens;
      },
    },
  });
  /** @type {string[]} */
  const texts = [];
  let part = -1;
  /** @param {import('marked').Token} token */
  function collect(token) {
    if (token.type === 'heading') part++;
    else if (part >= 0) texts[part] = `${texts[part] ?? ''} ${plain(token.raw)}`;
  }
  const html = marked
    .parse(page.markdown, { async: false })
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>');
  return { html, found: found.map((one, index) => ({ ...one, text: texts[index]?.trim() ?? '' })) };
}

/** The words of Markdown without its signs. @param {string} raw */
const plain = (raw) =>
  raw
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .replaceAll(/[`*|[\]#>]+/g, ' ')
    .replaceAll(/\s+/g, ' ');

/**
 * Where a link of a page leads to below `/docs/`, or `null` for a file that the service does not have.
 * @param {Page} page
 * @param {string} href
 */
function linkFrom(page, href) {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href;
  const [file = '', anchor] = href.split('#');
  const at = path.posix.normalize(path.posix.join(path.posix.dirname(page.file), file));
  if (at.startsWith('../')) return null;
  return way(page.path, addressOf(at)) + (anchor === undefined ? '' : `#${anchor}`);
}

/**
 * @param {string} frame
 * @param {Page} page
 * @param {readonly Chapter[]} chapters
 * @param {string} html
 */
function framed(frame, page, chapters, html) {
  const known = chapters.flatMap((chapter) => chapter.pages);
  const at = known.findIndex((one) => one.path === page.path);
  const nav = chapters
    .map(
      ({ title, pages }) =>
        `<p>${escaped(title)}</p>\n<ul>\n${pages.map((one) => `<li>${entry(page, one)}</li>\n`).join('')}</ul>\n`,
    )
    .join('');
  const turn = [known[at - 1], at < 0 ? undefined : known[at + 1]]
    .map((one, index) =>
      one ? `<a rel="${index ? 'next' : 'prev'}" href="${way(page.path, one.path)}">${escaped(one.title)}</a>` : '',
    )
    .join('');
  return frame
    .replaceAll('{{base}}', () => way(page.path, ''))
    .replace('{{title}}', () => escaped(page.title))
    .replace('{{nav}}', () => nav)
    .replace('{{turn}}', () => turn)
    .replace('{{page}}', () => html);
}

/** @param {Page} page @param {{ path: string, title: string }} one */
function entry(page, one) {
  const current = one.path === page.path ? ' aria-current="page"' : '';
  return `<a href="${way(page.path, one.path)}"${current}>${escaped(one.title)}</a>`;
}

/** @param {readonly Part[]} parts */
function indexOf(parts) {
  const index = new MiniSearch({ fields: ['title', 'page', 'text'], storeFields: ['page', 'title', 'text'] });
  index.addAll(parts);
  return index;
}

/** The table of contents for language models (llmstxt.org), with links to the Markdown. @param {string} contents */
const llms = (contents) =>
  contents
    .replace(
      /^# .*\n/,
      '# Platform management API\n\n> The control plane of a multi-tenant workspace platform: GraphQL at /graphql, ' +
        'REST at /v1, live events over both. /openapi.json and /asyncapi.json describe them for programs.\n',
    )
    .replaceAll(/\]\(/g, '](docs/');

if (process.argv[1] === import.meta.filename) {
  console.log(docsIfChanged() ? 'Rendered public/docs/pages.' : 'public/docs/pages is up to date.');
}
