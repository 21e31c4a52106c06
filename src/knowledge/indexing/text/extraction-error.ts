/** Sentences for `index_error`: none contains anything of the file. */
export const extractionFailures = {
  unreadable: 'The file is damaged or does not match its type.',
  encrypted: 'The file is encrypted.',
  too_large: 'The file is too large to be indexed: the limit is 32 MiB.',
  expands: 'The file unpacks to more than the limit of 100 times its size.',
  entries: 'The file has more parts than the limit of 10,000.',
  overlaps: 'The parts of the file overlap.',
  timeout: 'Reading the file took more than 10 seconds of processor time.',
  memory: 'Reading the file took more memory than the limit.',
  crash: 'Reading the file failed.',
} as const;

export type ExtractionFailure = keyof typeof extractionFailures;

/** A file that has no text for us. */
export class ExtractionError extends Error {
  readonly reason: ExtractionFailure;

  constructor(reason: ExtractionFailure, cause?: unknown) {
    super(extractionFailures[reason], { cause });
    this.name = 'ExtractionError';
    this.reason = reason;
  }

  /** Whether another try would end the same. What took too long or too much may have met a busy machine. */
  get isFinal(): boolean {
    return !['timeout', 'memory', 'crash'].includes(this.reason);
  }
}
