import { closestWord } from '../../kernel/closest-word.ts';
import { type InputIssue, valueIssue } from '../../kernel/errors.ts';

/*
 * Placeholders of the templates of actions: {{name}} stands for a parameter of the action, a field of the configuration
 * or a credential of the tool (docs/decisions/0032). What writes tools checks them here, and what makes requests fills
 * them in here.
 */

const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g;

/** The value of a name; `undefined` if it has none. */
export type LookUp = (name: string) => unknown;

/** The names in a template, in their order. */
export const namesIn = (template: string): string[] => Array.from(template.matchAll(PLACEHOLDER), ([, name]) => name!);

/** A template with something in place of each placeholder. */
export const replaced = (template: string, write: (name: string, at: number) => string): string =>
  template.replaceAll(PLACEHOLDER, (_whole, name: string, at: number) => write(name, at));

/** The first name in a template that has no value; `null` if all have one. */
export const unresolvedIn = (template: string, lookUp: LookUp): string | null =>
  namesIn(template).find((name) => lookUp(name) === undefined) ?? null;

/** A template with the values of all names; `null` if one has no value: then there is no text to send. */
export const filled = (template: string, lookUp: LookUp, write: (value: unknown) => string): string | null =>
  unresolvedIn(template, lookUp) === null ? replaced(template, (name) => write(lookUp(name))) : null;

/** An action as far as it has templates and names of its own. */
export interface Templated {
  name?: unknown;
  url_template?: unknown;
  headers?: unknown;
  query_params_template?: unknown;
  body_template?: unknown;
  parameters?: unknown;
}

const MAX_ISSUES = 50;

type Path = (string | number)[];

const textsOf = (source: unknown): [string, unknown][] => Object.entries((typeof source === 'object' && source) || {});

/** The templates of an action with their places in it. */
function templatesOf({ url_template, headers, query_params_template, body_template }: Templated) {
  const given: [Path, unknown][] = [
    [['url_template'], url_template],
    ...textsOf(headers).map(([name, text]): [Path, unknown] => [['headers', name], text]),
    ...textsOf(query_params_template).map(([name, text]): [Path, unknown] => [['query_params_template', name], text]),
    [['body_template'], body_template],
  ];
  return given.filter((entry): entry is [Path, string] => typeof entry[1] === 'string');
}

/** The names of entries, such as parameters or fields. */
export const entryNames = (entries: unknown): string[] =>
  (Array.isArray(entries) ? (entries as { name?: unknown }[]) : []).flatMap((entry) =>
    typeof entry.name === 'string' ? [entry.name] : [],
  );

/** The names that an action uses and that are none of its own parameters. */
export function foreignNames(action: Templated): Set<string> {
  const own = new Set(entryNames(action.parameters));
  return new Set(templatesOf(action).flatMap(([, text]) => namesIn(text).filter((name) => !own.has(name))));
}

/**
 * The placeholders of actions that name nothing.
 * @param known the names that each action may use beside its own parameters
 * @param path of the actions
 */
export function strayPlaceholders(
  actions: readonly Templated[],
  known: (action: Templated) => Iterable<string>,
  path: Path,
): InputIssue[] {
  const issues: InputIssue[] = [];
  for (const [index, action] of actions.entries()) {
    const names = new Set([...entryNames(action.parameters), ...known(action)]);
    for (const [at, template] of templatesOf(action))
      for (const name of new Set(namesIn(template)))
        if (!names.has(name)) {
          if (issues.length === MAX_ISSUES) return issues;
          issues.push(valueIssue([...path, index, ...at], strayMessage(name, names)));
        }
  }
  return issues;
}

function strayMessage(name: string, names: ReadonlySet<string>): string {
  const last = name.slice(name.lastIndexOf('.') + 1);
  const meant = names.has(last) ? last : closestWord(name, names);
  return (
    `{{${name.slice(0, 200)}}} names no parameter of the action, no field of the configuration and no credential` +
    (meant === null ? '' : `: did you mean {{${meant}}}?`)
  );
}
