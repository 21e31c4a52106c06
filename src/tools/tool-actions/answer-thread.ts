// Runs in a thread of its own: whoever answers decides how long it takes to read.
import type { JsonBounds } from '../../kernel/json-shape.ts';
import { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { serveTasks } from '../../platform/threads/thread-work.ts';
import { type PromisedAnswer, type ShownAnswer, shownAnswer } from './action-answer.ts';
import { Redactor } from './redactor.ts';

/** An answer to read. */
export interface AnswerTask {
  action: PromisedAnswer;
  answer: { status: number; headers: [string, string][]; body: Uint8Array; url: string };
  /** What is removed from it. */
  secrets: readonly string[];
}

/** No request waits for this thread but those with such answers. */
const JSON_BOUNDS: JsonBounds = { maxDepth: 64, maxValues: 1_000_000 };

serveTasks(({ action, answer, secrets }: AnswerTask): ShownAnswer => {
  const { headers, body, ...about } = answer;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const response = new OutboundResponse({ ...about, headers: new Headers(headers), body: bytes });
  return shownAnswer(action, response, new Redactor(secrets), JSON_BOUNDS);
});
