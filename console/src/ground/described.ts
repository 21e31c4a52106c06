/**
 * What describes a value: a field of a tool's configuration, a parameter of an action, a part of one, or a JSON Schema.
 * Nothing is certain of it, for tools are written by many.
 */
export type Described = Readonly<Record<string, unknown>>;

export interface Choice {
  value: unknown;
  label: string;
}

/** A value that a form asks for. */
export interface Part {
  name: string;
  label: string;
  kind: 'text' | 'lines' | 'secret' | 'number' | 'boolean' | 'choice' | 'choices' | 'list' | 'object' | 'json';
  isRequired: boolean;
  isInteger: boolean;
  hint?: string;
  placeholder?: string;
  initial?: unknown;
  choices: readonly Choice[];
  /** Of an object. */
  parts: readonly Part[];
  /** Of a list. */
  item: Part | null;
}

/** How deep structures are drawn; below that they are a text of JSON. */
const MOST_DEEP = 4;

export const isObject = (value: unknown): value is Described =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function choicesOf({ options, enum: listed, validation }: Described): Choice[] {
  const given = listIn(options).filter(isObject);
  if (given.length > 0) return given.map(({ value, label }) => ({ value, label: textIn(label) ?? String(value) }));
  const values = listIn(listed).length > 0 ? listIn(listed) : listIn(isObject(validation) ? validation.enum : []);
  return values.map((value) => ({ value, label: String(value) }));
}

const isSecret = ({ type, widget, sensitive, format }: Described) =>
  type === 'secret' || widget === 'password' || sensitive === true || format === 'password';

function kindOf(described: Described, depth: number): Part['kind'] {
  const { type, properties, items, multiline, widget } = described;
  if (isSecret(described)) return 'secret';
  const hasChoices = choicesOf(described).length > 0;
  if (type === 'array') {
    if (hasChoices) return 'choices';
    return isObject(items) && depth < MOST_DEEP ? 'list' : 'json';
  }
  if (hasChoices) return 'choice';
  if (type === 'boolean') return 'boolean';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'object' || isObject(properties))
    return isObject(properties) && Object.keys(properties).length > 0 && depth < MOST_DEEP ? 'object' : 'json';
  return multiline === true || widget === 'textarea' ? 'lines' : 'text';
}

/** What a form asks for, of what describes it. */
export function partOf(name: string, described: Described, { depth = 0, isRequired = false } = {}): Part {
  const { display_name: label, title, description, placeholder, required, type, properties, items } = described;
  const kind = kindOf(described, depth);
  const hint = textIn(description);
  const shown = textIn(placeholder);
  const needed = listIn(required);
  return {
    name,
    label: textIn(label) ?? textIn(title) ?? name,
    kind,
    isRequired: (isRequired || required === true) && kind !== 'boolean',
    isInteger: type === 'integer',
    ...(hint && { hint }),
    ...(shown && { placeholder: shown }),
    ...(kind !== 'secret' && described.default !== null && { initial: described.default }),
    choices: choicesOf(described),
    parts:
      kind === 'object' && isObject(properties)
        ? Object.entries(properties).map(([key, part]) =>
            partOf(key, isObject(part) ? part : {}, { depth: depth + 1, isRequired: needed.includes(key) }),
          )
        : [],
    item: kind === 'list' && isObject(items) ? partOf('', items, { depth: depth + 1 }) : null,
  };
}

/** The parts of a list of descriptions, each with its name. */
export const partsOf = (list: unknown): Part[] =>
  listIn(list).flatMap((one) => (isObject(one) && textIn(one.name) ? [partOf(String(one.name), one)] : []));

/** What is filled in at first. */
export const initialOf = (parts: readonly Part[]): Described =>
  Object.fromEntries(parts.flatMap(({ name, initial }) => (initial === undefined ? [] : [[name, initial]])));

export type Path = readonly (string | number)[];
export interface PlacedFault {
  path: Path;
  msg: string;
}

/** The faults of what is below a place, with their paths from there. */
export const faultsBelow = (faults: readonly PlacedFault[], key: string | number): PlacedFault[] =>
  faults.flatMap(({ path, msg }) => (path[0] === key ? [{ path: path.slice(1), msg }] : []));

/** What is wrong with a value itself, or with something in it that no field is drawn for. */
export function faultOfPart({ kind, parts }: Part, faults: readonly PlacedFault[], value: unknown): string | undefined {
  const hasField = ([first]: Path) =>
    (kind === 'object' && parts.some(({ name }) => name === first)) ||
    (kind === 'list' && typeof first === 'number' && first < listIn(value).length);
  const own = faults.filter(({ path }) => !hasField(path)).map(({ msg }) => msg);
  return own.length > 0 ? own.join(' ') : undefined;
}
