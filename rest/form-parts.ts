import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyConfig, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import { ApiError } from '../src/kernel/errors.ts';
import { ValidationFailure } from './errors.ts';

/** A field of a form. */
export interface FieldPart {
  kind: 'field';
  name: string;
  text: string;
  /** The text was longer than a field may be. */
  isCut: boolean;
  contentType: string;
}

/** A file of a form, while it arrives. Whoever does not read it resumes it. */
export interface FilePart {
  kind: 'file';
  name: string;
  content: Readable;
  /** As the client sent it. */
  fileName: string;
  contentType: string;
  /** All headers of the part, with names in lower case. */
  headers: PartHeaders;
}

export type PartHeaders = Readonly<Record<string, readonly string[]>>;
export type FormPart = FieldPart | FilePart;

/**
 * The parts of a form, in their order. The first part too many ends it: what comes after is not parsed, whatever the
 * reader of the parts is doing meanwhile.
 * @throws ApiError INVALID_REQUEST for a body that is no form, or not a whole one, or one of too many fields;
 * ValidationFailure for a second file
 */
export async function* formParts(raw: IncomingMessage, limits: BusboyConfig['limits']): AsyncGenerator<FormPart> {
  const form = new Parts(raw, limits);
  try {
    for (let part = await form.next(); part; part = await form.next()) yield part;
  } finally {
    form.leave();
  }
}

class Parts {
  readonly #raw: IncomingMessage;
  readonly #parser: BusboyInstance;
  readonly #ready: FormPart[] = [];
  #file: Readable | null = null;
  #headers: PartHeaders = {};
  #hasBegun = false;
  #isOver = false;
  #failure: Error | null = null;
  #changed: () => void = () => undefined;

  constructor(raw: IncomingMessage, limits: BusboyConfig['limits']) {
    this.#raw = raw;
    this.#parser = new Busboy({ headers: raw.headers as BusboyHeaders, limits });
    // before the parser's own listener, which emits the file
    headersOf(this.#parser).prependListener('part', (part: EventEmitter) =>
      part.once('header', (headers: PartHeaders) => (this.#headers = headers)),
    );
    this.#parser
      .on('field', (name, text, _isNameCut, isCut, _encoding, contentType) =>
        this.#add({ kind: 'field', name, text, isCut, contentType }),
      )
      .on('file', (name, content, fileName, _encoding, contentType) => {
        this.#file = content;
        // who reads it sees its error; who does not yet read it must not end the process by it
        content.on('error', () => undefined);
        // a part without a name is a file too, if its type says so
        this.#add({ kind: 'file', name, content, fileName: fileName ?? '', contentType, headers: this.#headers });
      })
      .on('filesLimit', () => this.#fail(tooManyFiles()))
      .on('fieldsLimit', () => this.#fail(malformed('multipart_fields')))
      .on('partsLimit', () => this.#fail(malformed('multipart_parts')))
      .on('finish', () => this.#end())
      // an empty body is a form without parts
      .on('error', () => (this.#hasBegun ? this.#break() : this.#end()));
    raw.on('close', this.#closed);
    raw.once('data', this.#began);
    raw.pipe(this.#parser);
  }

  /** The next part; `null` after the last one. */
  async next(): Promise<FormPart | null> {
    while (!this.#failure && this.#ready.length === 0 && !this.#isOver)
      await new Promise<void>((changed) => (this.#changed = changed));
    if (this.#failure) throw this.#failure;
    return this.#ready.shift() ?? null;
  }

  /** Stops reading. */
  leave(): void {
    this.#raw.off('close', this.#closed).off('data', this.#began);
    this.#raw.unpipe(this.#parser);
  }

  #add(part: FormPart): void {
    // keys of objects are made from it
    if (part.name in Object.prototype) this.#fail(malformed('multipart_field_name'));
    else this.#ready.push(part);
    this.#changed();
  }

  #end(): void {
    this.#isOver = true;
    this.#changed();
  }

  /** The file of before is whole: it may be read to its end. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#raw.unpipe(this.#parser);
    this.#changed();
  }

  /** The file that is arriving will never be whole. */
  #break(): void {
    const error = malformed('multipart');
    this.#fail(error);
    this.#file?.destroy(error);
  }

  readonly #began = () => {
    this.#hasBegun = true;
  };

  readonly #closed = () => {
    if (!this.#raw.readableEnded) this.#break();
  };
}

/** What reads the headers of parts within the parser, which tells only three of them. */
function headersOf(parser: BusboyInstance): EventEmitter {
  const inner = (parser as { _parser?: { parser?: unknown } })._parser?.parser;
  if (!(inner instanceof EventEmitter)) throw new Error('The parser of forms is not built as it was.');
  return inner;
}

export const malformed = (reason: string) => new ApiError('INVALID_REQUEST', { reason });

const tooManyFiles = () =>
  new ValidationFailure([
    {
      type: 'too_long',
      loc: ['body', 'file'],
      msg: 'The form should have at most 1 file',
      input: null,
      ctx: { max_length: 1 },
    },
  ]);
