import { MAX_PARAMETERS } from '../tools/custom-action-schemas.ts';
import { entryNames, namesIn } from '../tools/placeholders.ts';

/** An action as its schema describes it, of whatever kind. */
type UntypedAction = Readonly<Record<string, unknown>> & { name: string };

/** What a transform does. */
export type TransformKind = 'chunk' | 'extract' | 'filter' | 'map' | 'flatten' | 'aggregate' | 'template';

/** How a text is cut. */
export interface Chunking {
  strategy: 'tokens' | 'characters' | 'sentences' | 'paragraphs' | 'delimiter';
  chunk_size: number;
  chunk_overlap: number;
  delimiter?: string | null;
  tokenizer_model: string;
  include_metadata: boolean;
}

/** What is taken from a text. */
export interface ExtractPattern {
  name: string;
  pattern: string;
  flags?: string;
  group?: number;
  multiple?: boolean;
  default?: string | null;
}

/** What is asked of an element. */
export interface FilterCondition {
  field: string;
  operator?: string;
  value?: unknown;
}

/** A data transform in its form (`custom-action-schemas.ts`), with the defaults of the form. */
export interface TransformAction {
  name: string;
  transform_type: TransformKind;
  input_template: string;
  chunking?: Partial<Chunking>;
  extract_patterns?: readonly ExtractPattern[];
  filter_conditions?: readonly FilterCondition[];
  filter_mode?: 'include' | 'exclude';
  field_mappings?: Readonly<Record<string, string>>;
  flatten_template?: string | null;
  flatten_depth?: number;
  aggregate_operation?: string | null;
  aggregate_separator?: string;
  output_template?: string | null;
}

/** The only tokens that are counted. */
export const TOKENIZER = 'cl100k_base';

/** The chunks of an action that says nothing else. */
export const chunkingOf = ({ chunking }: TransformAction): Chunking => ({
  strategy: 'tokens',
  chunk_size: 500,
  chunk_overlap: 50,
  tokenizer_model: TOKENIZER,
  include_metadata: true,
  ...chunking,
});

/** Whether an action works on data. A request has an address. */
export const isTransform = (action: UntypedAction): boolean =>
  typeof action.transform_type === 'string' && typeof action.url_template !== 'string';

/** The word of a name before its first dot: `document` of `document.text`. */
export const rootOf = (name: string): string => name.split('.', 1)[0]!;

/** A template with its place in the action. */
export type PlacedTemplate = [path: string[], template: string];

const placed = (name: string, template: unknown): PlacedTemplate[] =>
  typeof template === 'string' && template !== '' ? [[[name], template]] : [];

/** The template that the work begins with, beside the input. `null` if it begins with the input. */
function ownTemplate(action: UntypedAction): PlacedTemplate | null {
  const { transform_type: kind } = action;
  const name = kind === 'template' ? 'output_template' : kind === 'flatten' ? 'flatten_template' : null;
  return name === null ? null : (placed(name, action[name])[0] ?? null);
}

/** The templates of results, which may only use names that are known. */
export function resultTemplates(action: UntypedAction): PlacedTemplate[] {
  const { transform_type: kind, field_mappings: mappings } = action;
  const entries = kind === 'map' && typeof mappings === 'object' && mappings !== null ? Object.entries(mappings) : [];
  return [
    ...entries.flatMap(([name, template]) =>
      placed(name, template).map(([path, text]): PlacedTemplate => [['field_mappings', ...path], text]),
    ),
    ...(kind === 'template' ? [] : placed('output_template', action.output_template)),
  ];
}

/** Whether any template of an action asks for its input. */
export function usesInput(action: UntypedAction): boolean {
  const own = ownTemplate(action);
  return (
    !own || [own, ...resultTemplates(action)].some(([, text]) => namesIn(text).some((name) => rootOf(name) === 'input'))
  );
}

/** The names that a transform takes from its caller: those in its templates that nothing else explains. */
export function inputNames(action: UntypedAction): Set<string> {
  const known = new Set(entryNames(action.parameters));
  const own = ownTemplate(action);
  const input = typeof action.input_template === 'string' ? action.input_template : '{{input}}';
  const names = [
    ...(own ? namesIn(own[1]).filter((name) => rootOf(name) !== 'input') : []),
    ...(usesInput(action) ? namesIn(input) : []),
  ];
  const unknown = names.filter((name) => !known.has(name) && !known.has(rootOf(name)));
  return new Set(unknown.map(rootOf));
}

/**
 * An action whose parameters say all that it takes. The form of a transform has `{{input}}` without a parameter of this
 * name, so a transform takes any value for each name of its templates that it does not describe.
 */
export function withInputs(action: UntypedAction): UntypedAction {
  if (!isTransform(action)) return action;
  const names = [...inputNames(action)].slice(0, MAX_PARAMETERS);
  if (names.length === 0) return action;
  const parameters = Array.isArray(action.parameters) ? (action.parameters as UntypedAction[]) : [];
  return {
    ...action,
    parameters: [...parameters, ...names.map((name) => ({ name, type: 'any', required: true }))],
  };
}
