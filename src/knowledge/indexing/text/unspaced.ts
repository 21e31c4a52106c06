/**
 * The characters of scripts that put no spaces between words, or join particles to them as Korean does: the same as of
 * `has_unspaced` in the database, for use within a character class.
 */
export const UNSPACED =
  '\\u0E00-\\u109F\\u1100-\\u11FF\\u1780-\\u17FF\\u3005-\\u3007\\u3040-\\u318F\\u31F0-\\u31FF\\u3400-\\u4DBF' +
  '\\u4E00-\\uA4CF\\uA960-\\uA97F\\uAC00-\\uD7FB\\uF900-\\uFAFF\\u{20000}-\\u{3FFFF}';
