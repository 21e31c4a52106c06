import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  getOperationAST,
  Kind,
} from 'graphql';
import { showsEventOnly } from './event-selection.ts';
import { Frame } from './frames.ts';

/** The events of a subscription field. A resumable source returns the cursor of each event. */
interface LiveSource extends AsyncIterable<unknown> {
  cursorOf?(event: unknown): string;
}

/** The context of a subscription's resolvers. */
export interface LiveContext {
  /** The same without a caller. Without this method, results are not shared between streams. */
  asNobody?(): object;
}

export interface LiveArgs extends ExecutionArgs {
  contextValue: LiveContext;
}

/** Masks errors in a result that are bugs. */
type Mask = (result: ExecutionResult) => ExecutionResult;

/** The frames by event of a selection that shows only the event: executed and serialised once for all streams. */
type SharedFrames = WeakMap<object, Promise<Frame> | Frame>;

/** By document and operation name; `null` if each stream has its own results. */
const shared = new WeakMap<DocumentNode, Map<string, SharedFrames | null>>();

function sharedFramesOf({ schema, document, operationName, contextValue }: LiveArgs): SharedFrames | null {
  if (!contextValue.asNobody) return null;
  const operations = shared.get(document) ?? new Map<string, SharedFrames | null>();
  shared.set(document, operations);
  const name = operationName ?? '';
  let frames = operations.get(name);
  if (frames === undefined) {
    frames = showsEventOnly(schema, document, operationName) ? new WeakMap() : null;
    operations.set(name, frames);
  }
  return frames;
}

/** Whether the one root field of a subscription shows a state, which is sent only when what is selected has changed. */
function showsChanges({ schema, document, operationName }: LiveArgs): boolean {
  const [field] = getOperationAST(document, operationName)?.selectionSet.selections ?? [];
  const root = schema.getSubscriptionType()?.getFields();
  return field?.kind === Kind.FIELD && root?.[field.name.value]?.extensions.showsChanges === true;
}

/**
 * Subscribes as graphql-js does. @returns the stream, or the one result of a subscription that could not start
 */
export async function subscribeLive(args: LiveArgs, mask: Mask): Promise<LiveStream | ExecutionResult> {
  const source = await createSourceEventStream(args);
  return Symbol.asyncIterator in source ? new LiveStream(args, source, mask) : source;
}

/**
 * The results of a subscription, for transports that send them unchanged: `take` returns the next one with its text.
 */
export class LiveStream implements AsyncGenerator<ExecutionResult, undefined, undefined> {
  readonly #args: LiveArgs;
  readonly #source: LiveSource;
  readonly #events: AsyncIterator<unknown, unknown>;
  readonly #mask: Mask;
  readonly #shared: SharedFrames | null;
  /** Of a field with `extensions.showsChanges`: the text of the last frame, which is not sent twice. */
  #last: string | null;

  constructor(args: LiveArgs, source: LiveSource, mask: Mask) {
    this.#args = args;
    this.#source = source;
    this.#events = source[Symbol.asyncIterator]();
    this.#mask = mask;
    this.#shared = sharedFramesOf(args);
    this.#last = showsChanges(args) ? '' : null;
  }

  /** The frame of the next event that shows something else; `null` when there are no more. */
  async take(): Promise<Frame | null> {
    if (this.#last === null) return this.#nextFrame();
    let frame = await this.#nextFrame();
    while (frame && frame.text === this.#last) frame = await this.#nextFrame();
    if (frame) this.#last = frame.text;
    return frame;
  }

  async #nextFrame(): Promise<Frame | null> {
    const step = await this.#events.next();
    if (step.done) return null;
    const event: unknown = step.value;
    return this.#shared && isObject(event) ? this.#sharedFrame(event, this.#shared) : this.#ownFrame(event);
  }

  async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    const frame = await this.take();
    return frame ? { done: false, value: frame.result } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<IteratorResult<ExecutionResult, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #sharedFrame(event: object, frames: SharedFrames): Promise<Frame> | Frame {
    const known = frames.get(event);
    if (known) return known instanceof Frame ? known : known.then((frame) => this.#unlessFailed(frame, event));
    // executed without a caller: a field that depends on the reader fails here, instead of showing one reader's answer
    // to all
    const made = this.#execute(event, this.#args.contextValue.asNobody!()).then((result) => {
      const frame = this.#frame(event, result);
      if (!result.errors) frames.set(event, frame);
      return frame;
    });
    frames.set(event, made);
    return made.then((frame) => this.#unlessFailed(frame, event));
  }

  /** A frame that failed without a caller is executed again for each reader, whose trace is in its errors. */
  #unlessFailed(frame: Frame, event: object): Promise<Frame> | Frame {
    return frame.result.errors ? this.#ownFrame(event) : frame;
  }

  async #ownFrame(event: unknown): Promise<Frame> {
    const result = await this.#execute(event, this.#args.contextValue);
    return this.#frame(event, this.#mask(result));
  }

  async #execute(event: unknown, contextValue: object): Promise<ExecutionResult> {
    return execute({ ...this.#args, rootValue: event, contextValue });
  }

  #frame(event: unknown, result: ExecutionResult): Frame {
    return new Frame(result, this.#source.cursorOf?.(event));
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
