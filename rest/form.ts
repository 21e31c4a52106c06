import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type GraphQLInputType, getNamedType, getNullableType, isListType, isScalarType } from 'graphql';
import { type ClaimedDigest, claimedDigests, DigestCheck } from '../src/kernel/digests.ts';
import { ApiError } from '../src/kernel/errors.ts';
import { finishReading } from '../src/kernel/finish-reading.ts';
import type { JsonBudget } from '../src/kernel/json-shape.ts';
import { jsonTypeOf } from '../src/kernel/json-type.ts';
import { budgetOfRequest, expectWithin, jsonOf } from './body-parser.ts';
import { ValidationFailure } from './errors.ts';
import { type FieldPart, type FilePart, formParts, malformed } from './form-parts.ts';
import { restFields } from './names.ts';
import type { CompiledOperation } from './operation.ts';

/** A file of a form, while it arrives. */
export interface FormFile {
  content: Readable;
  /** As the client sent it. */
  fileName: string;
  contentType: string;
  /** What the headers of its part say of its bytes. */
  digests: readonly ClaimedDigest[];
}

/** A file that is stored. */
export interface StoredFormFile {
  id: string;
  sizeBytes: number;
  /** In hexadecimal. */
  sha256: string;
}

/** Stores the files of forms. */
export interface FileReceiver {
  /** The largest file. */
  maxBytes: number;
  /**
   * Stores a file for the operation that runs with `context`, if the caller may run the operation of the route in the
   * place that the path names; that is checked before the first byte is stored.
   * @throws as the operation would; PAYLOAD_TOO_LARGE; what `content` fails with. Nothing of the file is left then
   */
  receive(context: object, request: FastifyRequest, file: FormFile): Promise<StoredFormFile>;
  /** Removes a file that the operation has not kept. */
  discard(request: FastifyRequest, id: string): Promise<void>;
}

/** The form of a request. */
interface ReadForm {
  /** The same for the same form: its fields, and name, type and hash of its file. */
  facts: unknown;
  file: StoredFormFile | null;
  /** The context of the operation, which the file is received for. */
  context: object;
  /** The operation has succeeded: the file is its own. */
  isKept: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** `null`: the body is no form. */
    form: ReadForm | null;
  }
  interface FastifyContextConfig {
    /** The body is a form with a file. */
    takesFile?: boolean;
  }
}

const MAX_BOUNDARY = 70;
const MAX_FIELDS = 64;
const MAX_FIELD_BYTES = 256 * 1024;
/** Of all fields together. */
const MAX_FIELDS_BYTES = 1024 * 1024;
const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;
/** Of a part whose text is JSON, whatever its field is. */
const JSON_TYPE = 'application/json';
const BOUNDARY = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^;\s]*))/i;

const limitsOf = ({ maxBytes }: FileReceiver) => ({
  // one more: the receiver refuses it
  fileSize: maxBytes + 1,
  files: 1,
  fields: MAX_FIELDS,
  parts: MAX_FIELDS + 1,
  fieldSize: MAX_FIELD_BYTES,
  fieldNameSize: 100,
  headerPairs: 20,
  headerSize: 8 * 1024,
});

/** For routes whose body is a form: accepts nothing else, and holds nothing of a file in memory. */
export function acceptForm(server: FastifyInstance, receiver: FileReceiver): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(FORM_TYPE, (_request, _payload, done) => done(null));
  server.decorateRequest('form', null);
  server.addHook('onSend', async (request) => {
    const { form } = request;
    if (form?.file && !form.isKept) await receiver.discard(request, form.file.id);
  });
}

/**
 * Reads the form of a request: its file is stored, and its fields with the id of the file become the body.
 * @param context of the operation
 */
export async function readForm(
  operation: CompiledOperation,
  request: FastifyRequest,
  receiver: FileReceiver,
  context: object,
): Promise<void> {
  if (!FORM_TYPE.test(request.headers['content-type'] ?? '')) return;
  try {
    checkHead(request, receiver.maxBytes);
    const wholeBody = checkOfBody(request);
    const form = new Form(operation, request, receiver, context);
    for await (const part of formParts(request.raw, limitsOf(receiver))) {
      if (part.kind === 'field') form.addField(part);
      else await form.addFile(part);
    }
    await wholeBody?.();
    form.end();
  } catch (error) {
    finishReading(request.raw);
    throw refusalOf(error);
  }
}

function checkHead({ headers }: FastifyRequest, maxBytes: number): void {
  const [, quoted, plain] = BOUNDARY.exec(headers['content-type'] ?? '') ?? [];
  const boundary = quoted ?? plain ?? '';
  if (boundary === '' || boundary.length > MAX_BOUNDARY) throw malformed('multipart_boundary');
  if (Number(headers['content-length'] ?? 0) > maxBytes + MAX_FIELDS * MAX_FIELD_BYTES) throw tooLarge(maxBytes);
}

/**
 * Digests in the headers of a request are those of its body: of all parts, with what is between them. `null` if there
 * are none. @returns what waits for the last byte, and throws INVALID_REQUEST `digest_mismatch`
 */
function checkOfBody({ headers, raw }: FastifyRequest): (() => Promise<void>) | null {
  const check = DigestCheck.of(claimedDigests(headers));
  if (!check) return null;
  raw.on('data', (bytes: Buffer) => check.update(bytes));
  return async () => {
    // what comes after the last part belongs to the body as well
    if (!raw.readableEnded) await finished(raw.resume(), { writable: false });
    check.verify();
  };
}

/** Collects the parts of one form. */
class Form {
  readonly #operation: CompiledOperation;
  readonly #request: FastifyRequest;
  readonly #receiver: FileReceiver;
  readonly #types: Map<string, GraphQLInputType>;
  readonly #fields: Record<string, unknown> = {};
  readonly #fileField: string;
  readonly #form: ReadForm;
  readonly #budget = budgetOfRequest();
  #bytes = 0;
  #fileFacts: readonly string[] = [];
  #isReceived = false;

  constructor(operation: CompiledOperation, request: FastifyRequest, receiver: FileReceiver, context: object) {
    const { type, fileField } = operation.body!;
    this.#operation = operation;
    this.#request = request;
    this.#receiver = receiver;
    this.#fileField = fileField!;
    this.#types = new Map([...restFields(type)].map(([key, field]) => [key, field.type]));
    this.#form = { facts: null, file: null, context, isKept: false };
    request.form = this.#form;
  }

  /** Call it after the last part. */
  end(): void {
    this.#form.facts = { ...this.#fields, [this.#fileField]: this.#fileFacts };
    this.#request.body = this.#body;
  }

  get #body(): object {
    const { file } = this.#form;
    // a file that is not stored, because something else is wrong, is not missing
    const id = file?.id ?? (this.#isReceived ? 'not stored' : undefined);
    return { ...this.#fields, ...(id === undefined ? {} : { [this.#fileField]: id }) };
  }

  addField({ name, text, isCut, contentType }: FieldPart): void {
    const type = this.#types.get(name);
    this.#bytes += text.length;
    if (this.#bytes > MAX_FIELDS_BYTES) throw tooLarge(MAX_FIELDS_BYTES);
    // an empty field of a form is one that was not filled in
    if (!type || text === '') return;
    if (name === this.#fileField) throw invalid(name, 'value_error', 'Value error, a file is expected');
    if (isCut)
      throw invalid(name, 'string_too_long', `String should have at most ${MAX_FIELD_BYTES} characters`, {
        max_length: MAX_FIELD_BYTES,
      });
    const before = Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
    const read = contentType.startsWith(JSON_TYPE)
      ? jsonOf(text, this.#budget)
      : fieldValueOf(text, type, this.#budget);
    const isMore = Array.isArray(before) && Array.isArray(read);
    this.#fields[name] = isMore ? [...(before as unknown[]), ...(read as unknown[])] : read;
  }

  async addFile({ name, fileName, contentType, content, headers }: FilePart): Promise<void> {
    if (name !== this.#fileField) {
      content.resume();
      return;
    }
    this.#isReceived = true;
    // 422 comes before 403: nothing of this request is stored or asked for
    if (this.#isInvalid()) {
      content.resume();
      return;
    }
    const digests = claimedDigests(headers);
    const { context } = this.#form;
    const file = await this.#receiver.receive(context, this.#request, { content, fileName, contentType, digests });
    this.#form.file = file;
    this.#fileFacts = [fileName, contentType, file.sha256];
  }

  /** Whether something is wrong with what came before the file; what is missing may still come. */
  #isInvalid(): boolean {
    const { params, query, headers } = this.#request;
    const { issues } = this.#operation.read({ params, query, headers, body: this.#body });
    return issues.items.some(({ type, loc }) => type !== 'missing' || loc[0] !== 'body');
  }
}

/** Lists come as JSON or between commas, objects as JSON. Anything else stays a text, which the reader judges. */
function fieldValueOf(text: string, type: GraphQLInputType, budget: JsonBudget): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    if (text.trimStart().startsWith('[')) return readJson(text, budget);
    expectWithin(budget.takeItems(text));
    return text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }
  const named = getNamedType(nullable);
  const isJson = isScalarType(named) && ['object', 'any'].includes(jsonTypeOf(named));
  return isJson ? readJson(text, budget) : text;
}

function readJson(text: string, budget: JsonBudget): unknown {
  try {
    return jsonOf(text, budget);
  } catch (error) {
    if (error instanceof ValidationFailure && error.detail[0]?.type === 'json_invalid') return text;
    throw error;
  }
}

const tooLarge = (limit: number) => new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: limit });
const invalid = (name: string, type: string, msg: string, ctx?: Record<string, unknown>) =>
  new ValidationFailure([{ type, loc: ['body', name], msg, input: null, ...(ctx ? { ctx } : {}) }]);

const BROKEN = /multipart|terminated early|malformed|boundary/i;

/** The refusal of a form that cannot be read; any other error as it is. */
function refusalOf(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ApiError || error instanceof ValidationFailure) return error;
  return BROKEN.test(error.message) ? malformed('multipart') : error;
}
