/**
 * Waits for all that is under way, also when some of it has failed: the rest would go on with what is closed next.
 * @throws the first error, in the order of what is given
 */
export async function allDone(work: readonly Promise<unknown>[]): Promise<void> {
  const ends = await Promise.allSettled(work);
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
}
