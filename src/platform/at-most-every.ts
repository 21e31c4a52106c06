/**
 * Runs something at once, and once more for all requests of the pause after it: never more often than every `pauseMs`.
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
