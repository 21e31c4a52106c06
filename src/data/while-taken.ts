import { brokenUnique } from './changes.ts';

const ATTEMPTS = 3;

/** Repeats a change if another one takes, at the same moment, a value that may be there only once. */
export async function whileTaken<Result>(change: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (!brokenUnique(error) || attempt === ATTEMPTS) throw error;
    }
  }
}
