import { closestWord } from '../../kernel/closest-word.ts';
import { type InputIssue, invalidInput, valueIssue } from '../../kernel/errors.ts';
import { stepsOf } from '../tool-actions/result-path.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { MAX_PARAMETERS } from '../tools/custom-action-schemas.ts';
import { checkCustomActions } from '../tools/custom-actions.ts';
import { entryNames, namesIn } from '../tools/placeholders.ts';
import {
  chunkingOf,
  inputNames,
  resultTemplates,
  rootOf,
  TOKENIZER,
  type TransformAction,
  withInputs,
} from './transform-action.ts';
import { compiledPattern } from './transform-patterns.ts';

const MAX_ISSUES = 50;
/** Instructions of all expressions of one list of actions: about 100 ms to compile. */
const MAX_PROGRAMS = 200_000;
/** The search for a longer text may take long. */
const MAX_NEEDLE = 256;

type Path = (string | number)[];
type TellIssue = (path: Path, why: string) => void;

/** What a list of checks shares. */
interface Checking {
  /** Whether as many issues are reported as may be. */
  isFull: () => boolean;
  report: TellIssue;
  programs: number;
}

/**
 * What is wrong with data transforms that have the right form: what their kind needs and they do not have, expressions
 * that cannot be used, and placeholders that name nothing.
 * @param known names that each may use beside its parameters: fields of the configuration
 */
export function transformIssues(
  actions: readonly object[],
  known: (action: ToolAction) => Iterable<string>,
  path: Path,
): InputIssue[] {
  const issues: InputIssue[] = [];
  let at = 0;
  const checking: Checking = {
    programs: 0,
    isFull: () => issues.length === MAX_ISSUES,
    report: (place, why) => {
      if (!checking.isFull()) issues.push(valueIssue([...path, at, ...place], why));
    },
  };
  for (const given of actions) {
    if (checking.isFull()) break;
    const action = given as ToolAction;
    if (typeof action.url_template === 'string')
      checking.report(['url_template'], 'a data transform sends no request: leave it out');
    checkKind(action as unknown as TransformAction, checking);
    checkNames(action, known(action), checking);
    at += 1;
  }
  return issues;
}

function checkKind(action: TransformAction, checking: Checking): void {
  const { report } = checking;
  switch (action.transform_type) {
    case 'chunk':
      checkChunking(action, report);
      break;
    case 'extract':
      if (!action.extract_patterns?.length) report(['extract_patterns'], 'an extraction needs a pattern');
      checkPatterns(action, checking);
      break;
    case 'filter':
      checkConditions(action, checking);
      break;
    case 'map':
      if (Object.keys(action.field_mappings ?? {}).length === 0)
        report(['field_mappings'], 'a mapping needs a property');
      break;
    case 'aggregate':
      if (!action.aggregate_operation) report(['aggregate_operation'], 'an aggregation needs an operation');
      break;
    case 'template':
      if (!action.output_template) report(['output_template'], 'a template needs an output');
      break;
    case 'flatten': // has a depth without being told one
      break;
  }
}

function checkChunking(action: TransformAction, report: TellIssue): void {
  const { strategy, chunk_size, chunk_overlap, delimiter, tokenizer_model } = chunkingOf(action);
  const at = (name: string) => ['chunking', name];
  if (tokenizer_model !== TOKENIZER) report(at('tokenizer_model'), `the only tokenizer is ${TOKENIZER}`);
  if (chunk_overlap >= chunk_size) report(at('chunk_overlap'), 'it must be less than chunk_size');
  if (strategy === 'delimiter' && !delimiter) report(at('delimiter'), 'the strategy needs a delimiter');
}

function checkPatterns({ extract_patterns: patterns = [] }: TransformAction, checking: Checking): void {
  const names = new Set<string>();
  for (const [index, { name, pattern, flags, group = 0 }] of patterns.entries()) {
    const at = (property: string) => ['extract_patterns', index, property];
    if (names.has(name)) checking.report(at('name'), 'another pattern has this name');
    names.add(name);
    const groups = checkPattern(pattern, flags, at('pattern'), checking);
    if (groups !== null && group > groups) checking.report(at('group'), `the expression has no group ${group}`);
  }
}

/** @returns how many groups an expression has; `null` if it cannot be used */
function checkPattern(pattern: string, flags: string | undefined, at: Path, checking: Checking): number | null {
  const found =
    checking.programs > MAX_PROGRAMS ? 'the expressions together are too large' : compiledPattern(pattern, flags);
  if (typeof found === 'string') {
    checking.report(at, found);
    return null;
  }
  checking.programs += found.programSize();
  return found.groupCount();
}

const LISTS = new Set(['in', 'not_in']);
const NEEDLES = new Set(['contains', 'not_contains']);

function checkConditions({ filter_conditions: conditions = [] }: TransformAction, checking: Checking): void {
  for (const [index, { field, operator = 'eq', value }] of conditions.entries()) {
    const at = (property: string) => ['filter_conditions', index, property];
    if (stepsOf(field) === null) checking.report(at('field'), 'it is no path such as author.name or items[0]');
    if (LISTS.has(operator) && !Array.isArray(value)) checking.report(at('value'), 'the operator needs a list');
    if (NEEDLES.has(operator) && typeof value === 'string' && value.length > MAX_NEEDLE)
      checking.report(at('value'), `it has more than ${MAX_NEEDLE} characters`);
    if (operator === 'regex' && typeof value !== 'string') checking.report(at('value'), 'the operator needs a text');
    else if (operator === 'regex') checkPattern(value as string, '', at('value'), checking);
  }
}

/** What the work itself names. */
const ownNames = (kind: unknown, path: readonly string[]): string[] =>
  path[0] === 'output_template' ? ['input', 'result'] : kind === 'map' ? ['input', 'item', 'index'] : ['input'];

function checkNames(action: ToolAction, known: Iterable<string>, { report, isFull }: Checking): void {
  if (inputNames(action).size > MAX_PARAMETERS)
    report(['name'], `the templates of the action name more than ${MAX_PARAMETERS} inputs`);
  const given = [...entryNames(withInputs(action).parameters), ...known];
  for (const [path, template] of resultTemplates(action)) {
    const names = new Set([...given, ...ownNames(action.transform_type, path)]);
    for (const name of new Set(namesIn(template))) {
      if (isFull()) return;
      if (!names.has(name) && !names.has(rootOf(name))) report([...path], strayMessage(name, names));
    }
  }
}

function strayMessage(name: string, names: ReadonlySet<string>): string {
  const inItem = names.has('item') && !names.has(name) ? `item.${name}` : null;
  const meant = closestWord(name, names) ?? inItem;
  return (
    `{{${name.slice(0, 200)}}} names no input of the transform and no field of the configuration` +
    (meant === null ? '' : `: did you mean {{${meant.slice(0, 200)}}}?`)
  );
}

/**
 * A stored transform as it can run: it may be older than these checks.
 * @param known names of fields of the configuration
 * @throws InputError at `action`, with the place in it
 */
export function runnableTransform(action: ToolAction, known: Iterable<string>): TransformAction {
  // parameters are checked with the arguments
  const { issues, actions } = checkCustomActions('data_transform', [{ ...action, parameters: [] }]);
  const names = [...entryNames(action.parameters), ...known];
  const wrong = issues.length > 0 ? issues : transformIssues(actions, () => names, []);
  const [first] = wrong;
  if (!first) return actions[0] as unknown as TransformAction;
  const place = first.path.slice(1).join('.');
  throw invalidInput(['input', 'action'], `the action cannot run: ${place}: ${first.msg}`);
}
