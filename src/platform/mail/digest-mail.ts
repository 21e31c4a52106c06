import { nameInMail, withoutAddresses } from '../../kernel/wording.ts';

/** Most notifications that one digest lists. */
export const DIGEST_LINES = 20;

/** Notifications of one place. */
export interface DigestGroup {
  /** `null` for what is about the account itself. */
  organization: string | null;
  /** `null` for what is about the whole organization. */
  workspace: string | null;
  items: { title: string; message: string; link: string | null }[];
}

/** What a digest says. */
export interface Digest {
  groups: readonly DigestGroup[];
  /** How many there are, with those that it does not list. */
  total: number;
}

const MESSAGE_LENGTH = 400;

const SIGNS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => SIGNS[sign]!);

/** The subject, the text and the HTML of a digest. */
export function digestMail(username: string, email: string, { groups, total }: Digest) {
  const places = groups.map((group) => ({
    heading: headingOf(group),
    // names that others chose are in them
    items: group.items.map(({ title, message, link }) => ({
      title: withoutAddresses(title, 200, email),
      message: withoutAddresses(message, MESSAGE_LENGTH, email),
      link,
    })),
  }));
  const listed = groups.reduce((sum, { items }) => sum + items.length, 0);
  const more = total > listed ? `and ${total - listed} more` : '';
  const subject = total === 1 ? '1 unread notification' : `${total} unread notifications`;
  const greeting = `Hello ${username},`;
  const beginning =
    total === 1 ? 'this is new since your last digest:' : `${total} notifications are new since your last digest:`;
  const text = [
    `${greeting}\n\n${beginning}`,
    ...places.map(({ heading, items }) =>
      [
        heading,
        ...items.map(({ title, message, link }) => `- ${[title, message, ...(link ? [link] : [])].join('\n  ')}`),
      ].join('\n'),
    ),
    ...(more ? [more] : []),
  ].join('\n\n');
  const html = [
    `<p>${escaped(greeting)}</p>\n<p>${escaped(beginning)}</p>`,
    ...places.map(
      ({ heading, items }) =>
        `<h3>${escaped(heading)}</h3>\n<ul>\n${items.map((item) => `<li>${itemHtml(item)}</li>`).join('\n')}\n</ul>`,
    ),
    ...(more ? [`<p>${more}</p>`] : []),
  ].join('\n');
  return { subject, text, html };
}

const headingOf = ({ organization, workspace }: DigestGroup): string => {
  if (organization === null) return 'Your account';
  const name = nameInMail(organization);
  return workspace === null ? name : `${nameInMail(workspace)} (${name})`;
};

function itemHtml({ title, message, link }: DigestGroup['items'][number]): string {
  const name = link === null ? escaped(title) : `<a href="${escaped(link)}">${escaped(title)}</a>`;
  return `${name}<br>${escaped(message)}`;
}
