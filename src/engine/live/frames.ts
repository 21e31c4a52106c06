import type { ExecutionResult } from 'graphql';

/** The frames of a subscription, until there are no more. */
export interface Frames {
  take(): Promise<Frame | null>;
  /** Ends them: nobody reads any longer. */
  return(): Promise<unknown>;
}

/** The result of one event: serialised once, however many streams it goes to. */
export class Frame {
  readonly result: ExecutionResult;
  /** The cursor of the event, for readers that resume. */
  readonly id: string | undefined;
  #text: string | undefined;
  #serverSent: Buffer | undefined;

  constructor(result: ExecutionResult, id: string | undefined) {
    this.result = result;
    this.id = id;
  }

  /** The result as JSON. */
  get text(): string {
    this.#text ??= JSON.stringify(this.result);
    return this.#text;
  }

  /** The `next` event of GraphQL over SSE. */
  get serverSent(): Buffer {
    this.#serverSent ??= Buffer.from(
      `event: next\n${this.id === undefined ? '' : `id: ${this.id}\n`}data: ${this.text}\n\n`,
    );
    return this.#serverSent;
  }
}
