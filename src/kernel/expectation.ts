import { ApiError } from './errors.ts';

/** The versions that a caller accepts for the resource to be changed. */
export class Expectation {
  readonly #versions: readonly number[];
  #isMet = false;

  constructor(versions: readonly number[]) {
    this.#versions = versions;
  }

  /** Whether a change has checked it against a row and was committed, or is about to be. */
  get isMet(): boolean {
    return this.#isMet;
  }

  /**
   * @throws ApiError PRECONDITION_FAILED unless the change found an expected version; Error when it never looked for
   * one
   */
  demand(found: number | null): void {
    if (found === null) throw new Error('A change did not look at the version that its caller expects.');
    if (!this.#versions.includes(found))
      throw new ApiError(
        'PRECONDITION_FAILED',
        { current_version: found },
        `The resource is at version ${found}, not at the expected version. Read the resource again.`,
      );
    this.#isMet = true;
  }
}
