import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects the garbage of this process, at once. What a collection finds is let go of in a later turn. */
export const collectGarbage = runInNewContext('gc') as () => void;
