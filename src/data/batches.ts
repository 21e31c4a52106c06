/**
 * Takes batches until one is not full. @param take does one batch of at most `size`. @returns how many there were in
 * all
 */
export async function inBatches(size: number, take: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let count = size; count === size; total += count) count = await take();
  return total;
}
