import { MAX_JSON_DEPTH } from '../../core/constraints.ts';

/** A value as deep as it may be, in an input, in the variables, in the body. */
export const jsonBounds = { maxDepth: MAX_JSON_DEPTH + 16, maxBrackets: 100_000 };

/** What is longer is not answered: smaller pages are. */
export const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;
