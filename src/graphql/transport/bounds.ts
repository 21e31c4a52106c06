import { MAX_JSON_DEPTH } from '../../core/constraints.ts';

/** Room for a value of maximum depth inside an input, inside the variables, inside the body. */
export const jsonBounds = { maxDepth: MAX_JSON_DEPTH + 16, maxBrackets: 100_000 };

/** Longer answers are refused: the client must request smaller pages. */
export const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;
