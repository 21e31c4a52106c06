/**
 * Runs something at once, and again for all that was asked in the pause after it: never more often than every `pauseMs`.
 * @returns asks for a run
 */
export function atMostEvery(pauseMs: number, run: () => void): () => void {
  let isPausing = false;
  let isWanted = false;
  const begin = (): void => {
    isPausing = true;
    isWanted = false;
    run();
    setTimeout(() => {
      isPausing = false;
      if (isWanted) begin();
    }, pauseMs).unref();
  };
  return () => {
    if (isPausing) isWanted = true;
    else begin();
  };
}
