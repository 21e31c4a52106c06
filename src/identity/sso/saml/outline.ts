import { Parser } from 'htmlparser2';
import { SsoRefusal } from '../sso-refusal.ts';

const MAX_DEPTH = 32;
// the libraries read a message several times, and some of it costs more than its length: half a second at worst
const MAX_ELEMENTS = 1_200;
const MAX_ATTRIBUTES = 2_400;
const MAX_NAMESPACES = 200;

/** An element of a message, by its name without prefix. */
export interface OutlineElement {
  name: string;
  parent: OutlineElement | null;
  attributes: Readonly<Record<string, string>>;
  /** Its own text. */
  text: string;
}

/**
 * The elements of a message in the order in which they begin. This looks at a message before any library builds a
 * document of it, so that nobody sends one whose reading takes long.
 * @param comments whether it may have comments, which are passed over: text around one is one text
 * @throws SsoRefusal for a document type, comment, processing instruction or CDATA section: an honest message needs
 * none, and each has been used to show different things to the check of a signature and to the reader. Also for a
 * message that is nested too deeply or has too many parts
 */
export function outlineOf(xml: string, { comments = false } = {}): OutlineElement[] {
  const elements: OutlineElement[] = [];
  let current: OutlineElement | null = null;
  let [depth, attributeCount, namespaces] = [0, 0, 0];
  const refuse = (what: string) => () => {
    throw new SsoRefusal(`the message has ${what}`);
  };
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        const names = Object.keys(attributes);
        attributeCount += names.length;
        namespaces += names.filter((key) => key.startsWith('xmlns')).length;
        const element = { name: localName(name), parent: current, attributes, text: '' };
        elements.push(element);
        current = element;
        if (depth > MAX_DEPTH) refuse('elements that are nested too deeply')();
        if (elements.length > MAX_ELEMENTS || attributeCount > MAX_ATTRIBUTES || namespaces > MAX_NAMESPACES)
          refuse('too many parts')();
      },
      onclosetag() {
        depth -= 1;
        current = current?.parent ?? null;
      },
      ontext(text) {
        if (current) current.text += text;
      },
      ...(comments ? {} : { oncomment: refuse('a comment') }),
      oncdatastart: refuse('a CDATA section'),
      onprocessinginstruction(name) {
        if (name.startsWith('!')) refuse('a document type')();
        if (name !== '?xml' || elements.length > 0) refuse('a processing instruction')();
      },
    },
    { xmlMode: true },
  );
  parser.write(xml);
  parser.end();
  return elements;
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1);
