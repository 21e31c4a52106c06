import { MAX_JSON_DEPTH } from '../../kernel/constraints.ts';
import { type JsonBounds, MAX_JSON_VALUES } from '../../kernel/json-shape.ts';

/** Room for a value of maximum depth inside an input, inside the variables, inside the body. */
export const jsonBounds: JsonBounds = { maxDepth: MAX_JSON_DEPTH + 16, maxValues: MAX_JSON_VALUES };

/** Longer answers are refused: the client must request smaller pages. */
export const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;
