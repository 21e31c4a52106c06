/**
 * Repeats work of this process, each time a pause after the last run has ended. The pauses vary by a tenth, so that
 * nodes that were started together do not run at the same moment.
 * @param firstMs the first pause
 * @returns a function that ends it; resolves when the current run has ended
 */
export function every(
  pauseMs: number,
  run: () => Promise<unknown>,
  onFault: (error: unknown) => void,
  firstMs = pauseMs,
): () => Promise<void> {
  let isOver = false;
  let running: Promise<void> = Promise.resolve();
  let timer = setTimeout(begin, firstMs).unref();
  function begin(): void {
    running = run().then(wait, (error: unknown) => {
      onFault(error);
      wait();
    });
  }
  function wait(): void {
    if (!isOver) timer = setTimeout(begin, pauseMs * (0.9 + Math.random() * 0.2)).unref();
  }
  return async () => {
    isOver = true;
    clearTimeout(timer);
    await running;
  };
}
