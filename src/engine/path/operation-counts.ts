import { getOperationAST } from 'graphql';
import type { OperationRequest } from './operation-request.ts';

/** How an operation ended: `refused` before it ran, `failed` with errors in its answer, or `answered`. */
type Outcome = 'answered' | 'failed' | 'refused';

/** How many operations there were since the start. */
export class OperationCounts {
  readonly #counts = new Map<string, { type: string; outcome: Outcome; count: number }>();

  /** @returns the result, as it is */
  add<T>({ document, operationName }: OperationRequest, outcome: Outcome, result: T): T {
    const type = getOperationAST(document, operationName)?.operation ?? 'none';
    const key = `${type} ${outcome}`;
    const counted = this.#counts.get(key) ?? { type, outcome, count: 0 };
    counted.count += 1;
    this.#counts.set(key, counted);
    return result;
  }

  get all(): readonly { type: string; outcome: Outcome; count: number }[] {
    return [...this.#counts.values()];
  }
}
