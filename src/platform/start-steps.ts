import type { Logger } from './logger.ts';

const SPEAK_MS = 4_000;
const DRAW_MS = 500;
const BAR_WIDTH = 24;

/** How much of a step is done. */
export interface StepProgress {
  done: number;
  total: number;
}

/**
 * Tells what a start does while it does it: one line of the log for each step, and another one every four seconds that
 * it takes. A terminal shows the seconds and the progress below the log instead.
 */
export class StartSteps {
  readonly #logger: Logger;
  readonly #showBelow: ((text: string) => void) | undefined;
  #step = '';
  #beganAt = 0;
  #progress: StepProgress | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param showBelow replaces the text below the log, on a terminal */
  constructor(logger: Logger, showBelow?: (text: string) => void) {
    this.#logger = logger;
    this.#showBelow = showBelow;
  }

  /** Begins a step, which ends the one before. `step` is what is done, like "creating the database". */
  begin(step: string, details: object = {}): void {
    this.end();
    this.#step = step;
    this.#beganAt = Date.now();
    this.#logger.info(details, step);
    this.#timer = setInterval(() => this.#tell(), this.#showBelow ? DRAW_MS : SPEAK_MS);
  }

  /** How far the step is. */
  progress(progress: StepProgress): void {
    this.#progress = progress;
    if (this.#showBelow) this.#tell();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#progress = undefined;
    this.#showBelow?.('');
  }

  #tell(): void {
    const seconds = Math.round((Date.now() - this.#beganAt) / 1_000);
    if (this.#showBelow) this.#showBelow(`  ${barOf(this.#progress)}${this.#step} … ${seconds} s`);
    else this.#logger.info({ ...this.#progress, seconds }, `still ${this.#step}`);
  }
}

function barOf(progress: StepProgress | undefined): string {
  if (!progress) return '';
  const filled = Math.round((BAR_WIDTH * progress.done) / Math.max(progress.total, 1));
  return `[${'#'.repeat(filled).padEnd(BAR_WIDTH, '.')}] ${progress.done} of ${progress.total}, `;
}
