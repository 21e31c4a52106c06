import { getOperationAST } from 'graphql';
import type { OperationRequest } from './operation-request.ts';

/** How an operation ended: `refused` before it ran, `failed` with errors in its answer, or `answered`. */
type OperationOutcome = 'answered' | 'failed' | 'refused';

/** How many operations there were since the start. */
export class OperationCounts {
  readonly #counts = new Map<string, { type: string; outcome: OperationOutcome; count: number }>();

  /** @returns the result, as it is */
  add<T>({ document, operationName }: OperationRequest, outcome: OperationOutcome, result: T): T {
    const type = getOperationAST(document, operationName)?.operation ?? 'none';
    const key = `${type} ${outcome}`;
    const counted = this.#counts.get(key) ?? { type, outcome, count: 0 };
    counted.count += 1;
    this.#counts.set(key, counted);
    return result;
  }

  get all(): readonly { type: string; outcome: OperationOutcome; count: number }[] {
    return [...this.#counts.values()];
  }
}
