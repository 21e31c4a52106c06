/**
 * Words that nobody searches for, with what says it.
 * @type {Readonly<Record<string, string>>}
 */
const PRIVATE = {
  unkept: 'noCache',
  tellingOfModels: 'emitModelStatusChanges',
  isTelling: 'affectsHealth',
  toldByStatements: 'ignoreConnectionError',
  isHeardBy: 'mayReceive',
  narrowed: 'withFilters',
  door: 'endpointPath',
  told: 'recordedAs, eventNames',
  happened: 'pastTense',
  Actor: 'Caller: an actor is only what events show',
  actor: 'caller: an actor is only what events show',
};

/** Types whose name alone says nothing: they need a noun. */
const BARE = new Set('Deps Options Json Asked Found Named Told Wish Way Answer Outcome Finding Result'.split(' '));

/**
 * Exported names that two files may declare, with why.
 * @type {Readonly<Record<string, string>>}
 */
export const ALLOWED = {};

const TYPE = /^(export )?(?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)(?=[ <])/gm;
/**
 * Functions and variables, and parameters with a type. Members may be words of the API, such as the actor of an event.
 */
const VALUE = /\b(?:function|const|let|class)\s+(\w+)|[(,]\s*(\w+)\??: [A-Z]\w*(?=[,)<[ ])/g;

/**
 * What is wrong with the names of modules: an exported type whose name another module declares too, and words of the
 * lists above.
 * @param {readonly { path: string, text: string }[]} modules
 * @param {Readonly<Record<string, string>>} [allowed]
 * @returns {string[]}
 */
export function problemsOfNames(modules, allowed = ALLOWED) {
  /** @type {Map<string, { path: string, isExported: boolean }[]>} */
  const declared = new Map();
  const problems = [];
  for (const { path, text } of modules) {
    for (const [, exported, name = ''] of text.matchAll(TYPE)) {
      declared.set(name, [...(declared.get(name) ?? []), { path, isExported: exported !== undefined }]);
      if (BARE.has(name)) problems.push(`${path}: the type ${name} needs a noun`);
      if (Object.hasOwn(PRIVATE, name)) problems.push(`${path}: ${name}, say ${PRIVATE[name]}`);
    }
    for (const [, value, parameter] of text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '').matchAll(VALUE)) {
      const name = value ?? parameter ?? '';
      if (Object.hasOwn(PRIVATE, name)) problems.push(`${path}: ${name}, say ${PRIVATE[name]}`);
    }
  }
  const isDouble = (/** @type {string} */ name) => {
    const files = new Set((declared.get(name) ?? []).map(({ path }) => path));
    return files.size > 1 && (declared.get(name) ?? []).some(({ isExported }) => isExported);
  };
  for (const [name, places] of declared) {
    if (isDouble(name) && !Object.hasOwn(allowed, name))
      problems.push(`${name} is declared in ${places.map(({ path }) => path).join(' and ')}`);
  }
  for (const name of Object.keys(allowed)) if (!isDouble(name)) problems.push(`${name} needs no exception`);
  return problems;
}
