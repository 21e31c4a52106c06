import { isJsonObject } from '../../kernel/json-object.ts';
import { type JsonBounds, overloadOf } from '../../kernel/json-shape.ts';

/** An object of a message. */
export type RpcObject = Record<string, unknown>;

/** The answer to one message: a result, or an error of the protocol. */
export type RpcAnswer = { result: unknown } | { error: RpcObject };

/** What of an answer is taken apart. */
const BOUNDS: JsonBounds = { maxDepth: 200, maxValues: 200_000 };

/**
 * Finds the answer to one message in what a server sends: in JSON, or among the events of a stream. What has another id
 * is no answer, and what a server asks or tells in between is not heard: it was told that nobody can be asked.
 */
export class AnswerScan {
  answer: RpcAnswer | null = null;
  readonly #id: number;
  readonly #isStream: boolean;
  readonly #decoder = new TextDecoder();
  /** The line that has begun, in its pieces: joined once, however many they are. */
  #line: string[] = [];
  #data: string[] = [];
  #afterReturn = false;

  constructor(id: number, contentType: string | null) {
    this.#id = id;
    this.#isStream = /^text\/event-stream\b/i.test(contentType?.trim() ?? '');
  }

  /** Takes a piece of the body. @returns whether the answer is found */
  take(piece: Buffer): boolean {
    if (!this.#isStream) return false;
    const decoded = this.#decoder.decode(piece, { stream: true });
    if (decoded === '') return false;
    const text = this.#afterReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    this.#afterReturn = decoded.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    const begun = lines.pop()!;
    for (const line of lines) {
      this.#line.push(line);
      this.#takeLine(this.#line.join(''));
      this.#line = [];
      if (this.answer) return true;
    }
    if (begun !== '') this.#line.push(begun);
    return false;
  }

  /** Takes a body that has ended. */
  end(body: Buffer): void {
    if (!this.#isStream) this.#look(body.toString());
  }

  #takeLine(line: string): void {
    if (line === '') {
      if (this.#data.length > 0) this.#look(this.#data.join('\n'));
      this.#data = [];
    } else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
  }

  #look(text: string): void {
    for (const message of messagesIn(text)) {
      if (!isJsonObject(message) || message.id !== this.#id) continue;
      if (isJsonObject(message.error)) this.answer = { error: message.error };
      else if (Object.hasOwn(message, 'result')) this.answer = { result: message.result };
    }
  }
}

/** Whether a text is an error that is of no message: whoever says so has not come to read the one that it got. */
export const isErrorOfNone = (text: string): boolean =>
  messagesIn(text).some(
    (message) => isJsonObject(message) && isJsonObject(message.error) && (message.id ?? null) === null,
  );

/** The messages of a text: one, or a list of the revision that had lists. */
function messagesIn(text: string): unknown[] {
  if (overloadOf(text, BOUNDS)) return [];
  try {
    return [JSON.parse(text) as unknown].flat();
  } catch {
    return []; // no JSON is no message
  }
}
