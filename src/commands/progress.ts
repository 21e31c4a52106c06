const BAR_WIDTH = 30;
const LINE_EVERY_MS = 1_000;

/** How far a command is. */
export interface CommandProgress {
  done: number;
  total: number;
}

/** Shows a progress bar on a terminal, elsewhere one line per second. @param what is counted, such as "tables" */
export function progressWriter(what = ''): (progress: CommandProgress) => void {
  let lastLine = Number.NEGATIVE_INFINITY;
  const unit = what && ` ${what}`;
  return ({ done, total }) => {
    if (process.stdout.isTTY) {
      const filled = Math.round((BAR_WIDTH * done) / Math.max(total, 1));
      process.stdout.write(
        `\r[${'#'.repeat(filled).padEnd(BAR_WIDTH, '.')}] ${done} of ${total}${unit}${done >= total ? '\n' : ''}`,
      );
    } else if (performance.now() - lastLine > LINE_EVERY_MS || done >= total) {
      lastLine = performance.now();
      console.log(`${done} of ${total}${unit}`);
    }
  };
}
