/** Runs batches until one is not full. @param take runs one batch of at most `size` @returns the total number */
export async function inBatches(size: number, take: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let count = size; count === size; total += count) count = await take();
  return total;
}
