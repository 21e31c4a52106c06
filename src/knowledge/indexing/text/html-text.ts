import { Tokenizer } from 'htmlparser2';
import { KeptText } from './kept-text.ts';

const UNSEEN = new Set(['script', 'style', 'template', 'noscript', 'iframe', 'object', 'svg', 'math']);
const INLINE = new Set(
  (
    'a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label mark q s samp small span ' +
    'strong sub sup time tt u var wbr'
  ).split(' '),
);

/**
 * The text that a reader of the page sees, and its title; a line for each block. It reads tags as they come, in one
 * pass: a parser that keeps the open ones needs ten seconds for 300,000 of them.
 */
export function htmlText(html: string): KeptText {
  const text = new KeptText();
  // what is between two words: nothing, a space or the end of a line
  let gap = '';
  let opened = '';
  let unseen = 0;
  let hasText = false;
  const show = (data: string) => {
    if (unseen > 0) return;
    const words = data.replace(/\s+/g, ' ');
    if (words.startsWith(' ')) gap ||= ' ';
    const shown = words.trim();
    if (shown === '') return;
    text.add(hasText ? gap + shown : shown);
    hasText = true;
    gap = words.endsWith(' ') ? ' ' : '';
    if (text.isFull) tokenizer.pause();
  };
  const separate = (name: string) => {
    if (!INLINE.has(name)) gap = name === 'td' || name === 'th' ? gap || ' ' : '\n';
  };
  const nameOf = (start: number, end: number) => html.slice(start, end).toLowerCase();
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ...ignored,
      onopentagname: (start, end) => {
        opened = nameOf(start, end);
        if (UNSEEN.has(opened)) unseen += 1;
        separate(opened);
      },
      onselfclosingtag: () => {
        if (unseen > 0 && UNSEEN.has(opened)) unseen -= 1;
      },
      onclosetag: (start, end) => {
        const name = nameOf(start, end);
        if (unseen > 0 && UNSEEN.has(name)) unseen -= 1;
        separate(name);
      },
      ontext: (start, end) => show(html.slice(start, end)),
      ontextentity: (codePoint) => show(String.fromCodePoint(codePoint)),
    },
  );
  tokenizer.write(html);
  if (!text.isFull) tokenizer.end();
  return text;
}

const nothing = () => undefined;
const ignored = {
  onattribdata: nothing,
  onattribend: nothing,
  onattribentity: nothing,
  onattribname: nothing,
  oncdata: nothing,
  oncomment: nothing,
  ondeclaration: nothing,
  onend: nothing,
  onopentagend: nothing,
  onprocessinginstruction: nothing,
};
