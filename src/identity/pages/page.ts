/** A piece of a page that needs no escaping any more. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type HtmlPart = Html | string | number | null | undefined | false | readonly HtmlPart[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const textOf = (part: HtmlPart): string => {
  if (part instanceof Html) return part.text;
  if (part === null || part === undefined || part === false) return '';
  if (typeof part === 'object') return part.map(textOf).join('');
  return String(part).replace(/[&<>"']/g, (sign) => ENTITIES[sign]!);
};

/** HTML whose values are escaped, unless they are HTML themselves. */
export const html = (strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html =>
  new Html(strings.reduce((text, piece, index) => text + textOf(parts[index - 1]) + piece));

/** What a page may do: it runs no script, and its forms go where the page says. */
export const pageHeadersFor = (formTargets: readonly string[] = []): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    `default-src 'none'; style-src 'self'; form-action ${["'self'", ...formTargets].join(' ')}; base-uri 'none'; ` +
    "frame-ancestors 'none'",
  // with `no-referrer`, browsers send forms with `Origin: null`
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
});

/**
 * A page of the service in its usual form.
 * @param root the way to the folder `account/`, from where the page is
 * @param script a file of its assets
 */
export const page = (title: string, content: Html, { root = '', next = '', script = '' } = {}): string =>
  html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="robots" content="noindex" />
    ${next && html`<meta http-equiv="refresh" content="0;url=${next}" />`}
    <title>${title}</title>
    <link rel="stylesheet" href="${root}assets/account.css" />
    ${script && html`<script type="module" src="${root}assets/${script}"></script>`}
  </head>
  <body>
    <main>
      <h1>${title}</h1>
      ${content}
    </main>
  </body>
</html>
`.text;

/**
 * A page that goes on by itself. After a form, a redirect to somebody else's address would be refused by browsers:
 * they hold it against what the form may reach.
 */
export const onward = (to: string, root = ''): string =>
  page('One moment', html`<p><a href="${to}">Go on</a></p>`, { next: to, root });
