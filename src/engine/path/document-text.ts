import { Lexer, Source, TokenKind } from 'graphql';
import { tooLarge } from './refusals.ts';

/** Longest document, in bytes of UTF-8. */
export const MAX_DOCUMENT_BYTES = 64 * 1024;
const MAX_LINES = 3_000;
const MAX_NAME_LENGTH = 128;
/** Nested brackets: parsers and validators recurse over them. */
const MAX_BRACKETS = 128;

const OPENING = new Set<TokenKind>([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSING = new Set<TokenKind>([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/** @throws GraphQLError for a document of more than 64 KiB: checked before anything reads or stores it */
export function checkLength(text: string): void {
  // a text has at least as many bytes as UTF-16 code units
  if (text.length > MAX_DOCUMENT_BYTES || Buffer.byteLength(text) > MAX_DOCUMENT_BYTES)
    throw tooLarge(`The document has more than ${MAX_DOCUMENT_BYTES} bytes.`);
}

/**
 * Reads a document's tokens once, before it is parsed. Comments count as tokens.
 * @returns the number of tokens
 * @throws GraphQLError for a document with too many tokens, lines or brackets, too long a name, or a character that
 * GraphQL does not know
 */
export function checkTokens(text: string, maxTokens: number): number {
  checkLines(text);
  const lexer = new Lexer(new Source(text));
  let count = 0;
  let brackets = 0;
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    for (let comment = token.prev; comment?.kind === TokenKind.COMMENT; comment = comment.prev) count++;
    if (++count > maxTokens) break;
    if (OPENING.has(token.kind) && ++brackets > MAX_BRACKETS)
      throw tooLarge(`The document has more than ${MAX_BRACKETS} brackets within one another.`);
    if (CLOSING.has(token.kind)) brackets--;
    if (token.kind === TokenKind.NAME && token.end - token.start > MAX_NAME_LENGTH)
      throw tooLarge(`A name in the document has more than ${MAX_NAME_LENGTH} characters.`);
  }
  if (count > maxTokens) throw tooLarge(`The document has more than ${maxTokens} tokens.`);
  return count;
}

/** Empty lines and comment lines are not tokens, but still cost time to read. */
function checkLines(text: string): void {
  let lines = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if ((code === 10 || code === 13) && ++lines > MAX_LINES)
      throw tooLarge(`The document has more than ${MAX_LINES} lines.`);
  }
}
