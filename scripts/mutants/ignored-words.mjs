/**
 * The part of a Babel path that is used here.
 * @typedef {{ type: string, name?: string, callee?: Node, object?: Node, property?: Node, key?: Node }} Node
 * @typedef {{ node: Node, key?: string | number | null, listKey?: string | null, parent?: Node }} NodePath
 */

/** Words for people, which no program reads: the descriptions of fields, parameters and metrics. */
const DESCRIBING = new Set(['description', 'help', 'summary']);

/** Errors whose message only a log shows. Errors of the catalogue are another matter: their callers read them. */
const INTERNAL_ERRORS = new Set(['Error', 'TypeError', 'RangeError']);

/**
 * Words that no mutant is made of, and why.
 * @param {NodePath} path
 * @returns {string | undefined}
 */
function reasonToIgnore(path) {
  const { node, parent, listKey } = path;
  if (node.type === 'ObjectProperty' && DESCRIBING.has(node.key?.name ?? '')) return 'words of the documentation';
  if (parent?.type === 'NewExpression' && listKey === 'arguments' && INTERNAL_ERRORS.has(parent.callee?.name ?? ''))
    return 'words of an internal error';
  if (node.type === 'CallExpression' && /^(?:logger|log)$/.test(loggedBy(node))) return 'an entry of the log';
  return undefined;
}

/** @param {Node} call the name of the object that a method is called on */
function loggedBy({ callee }) {
  const object = callee?.object;
  return object?.name ?? object?.property?.name ?? '';
}

/** What Stryker loads; `Ignore` is its word for the kind of a plugin. */
export const strykerPlugins = [{ kind: 'Ignore', name: 'words', value: { shouldIgnore: reasonToIgnore } }];
