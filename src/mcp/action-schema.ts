import { isJsonObject } from '../kernel/json-object.ts';
import type { InputSchema } from './tool.ts';

/** An action, or a parameter of one, as a tool describes it: the tool is somebody's, so nothing in it is certain. */
export type ActionPart = Readonly<Record<string, unknown>>;

const TYPES = new Set(['string', 'integer', 'number', 'boolean', 'array', 'object']);
const MAX_PARAMETERS = 40;
const MAX_PROPERTIES = 20;
const MAX_VALUES = 20;
const MAX_DEPTH = 3;
const LONGEST_DESCRIPTION = 160;

/** The name under which a confirmation comes with the parameters of an action. */
export const CONFIRMATION = '_confirmation';

export const shortText = (text: unknown, most = LONGEST_DESCRIPTION): string =>
  typeof text !== 'string' ? '' : text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;

/**
 * What an action takes, as JSON Schema.
 * @param known names of values that its instance has already
 */
export function actionSchema(action: ActionPart, known: ReadonlySet<string>, withConfirmation: boolean): InputSchema {
  const parameters = parametersOf(action);
  const properties = Object.fromEntries(parameters.map((parameter) => [parameter.name, partSchema(parameter, 0)]));
  const required = parameters
    .filter(
      ({ name, required: isRequired, default: initial }) =>
        isRequired === true && !known.has(name) && isMissing(initial),
    )
    .map(({ name }) => name);
  if (withConfirmation)
    properties[CONFIRMATION] = { type: 'string', description: 'Of the first answer, if the user agrees.' };
  return {
    type: 'object',
    properties: properties as NonNullable<InputSchema['properties']>,
    ...(required.length > 0 && { required }),
  };
}

const isMissing = (value: unknown): boolean => value === undefined || value === null;

function parametersOf({ parameters }: ActionPart): (ActionPart & { name: string })[] {
  const all = Array.isArray(parameters) ? (parameters as unknown[]) : [];
  return all
    .filter((one): one is ActionPart & { name: string } => isJsonObject(one) && typeof one.name === 'string')
    .filter(({ name }) => name !== CONFIRMATION && name !== '__proto__')
    .slice(0, MAX_PARAMETERS);
}

function partSchema(part: ActionPart, depth: number): Record<string, unknown> {
  const { type, description, items, properties } = part;
  const listed = valuesOf(part);
  // a parameter without a type is a text, a part without one anything
  const known =
    typeof type === 'string' && TYPES.has(type) ? type : depth === 0 && type === undefined ? 'string' : null;
  const text = shortText(description);
  return {
    ...(known && { type: known }),
    ...(text && { description: text }),
    ...(listed && { enum: listed }),
    ...(known === 'array' && depth < MAX_DEPTH && isJsonObject(items) && { items: partSchema(items, depth + 1) }),
    ...(known === 'object' && depth < MAX_DEPTH && isJsonObject(properties) && propertiesOf(properties, depth)),
  };
}

function propertiesOf(properties: ActionPart, depth: number): Record<string, unknown> {
  const parts = Object.entries(properties)
    .filter((entry): entry is [string, Record<string, unknown>] => isJsonObject(entry[1]) && entry[0] !== '__proto__')
    .slice(0, MAX_PROPERTIES);
  const required = parts.filter(([, { required: isRequired }]) => isRequired === true).map(([name]) => name);
  return {
    properties: Object.fromEntries(parts.map(([name, part]) => [name, partSchema(part, depth + 1)])),
    ...(required.length > 0 && { required }),
  };
}

/** The only values of a parameter, if they are few. */
function valuesOf({ enum: listed, options }: ActionPart): unknown[] | null {
  const values = Array.isArray(listed)
    ? (listed as unknown[])
    : Array.isArray(options)
      ? (options as unknown[]).map((option) => (isJsonObject(option) ? option.value : option))
      : [];
  const isPlain = values.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
  return values.length > 0 && values.length <= MAX_VALUES && isPlain ? values : null;
}
