import { slugged } from '../../kernel/slug.ts';

/** What has a local name: a given one, or one that is made from its name. */
interface Keyed {
  name: string;
  key?: string | null;
}

/** `Find it!` -> `find-it`; the word for a name without Latin letters and digits. */
export const keyOf = (name: string, word: string): string => slugged(name, 40) || word;

/** The keys of parts, in their order: given ones as they are, others made from the names, and unique. */
export function uniqueKeys(parts: readonly Keyed[], word: string): string[] {
  const taken = new Set(parts.flatMap(({ key }) => key ?? []));
  const next = new Map<string, number>();
  return parts.map(({ name, key: given }) => {
    if (given) return given;
    const base = keyOf(name, word);
    let key = base;
    for (let n = next.get(base) ?? 2; taken.has(key); n++) {
      key = `${base}-${n}`;
      next.set(base, n + 1);
    }
    taken.add(key);
    return key;
  });
}

/** A text that refers to a step of the same augmentation: to what it gave (`steps`), or to the step itself (`step`). */
export interface StepReference {
  kind: 'steps' | 'step';
  key: string;
  /** Where the text is. */
  path: (string | number)[];
}

const REFERENCE = /\{\{(?:(steps)\.([^.{}]+)(?:\.[^{}]*)?|step\.([^{}]+))\}\}/g;

/** The references `{{steps.KEY.field}}` and `{{step.KEY}}` in the texts of a config. */
export function* stepReferences(config: unknown, path: (string | number)[] = []): Generator<StepReference> {
  if (typeof config === 'string') {
    for (const [, steps, ofResult, ofStep] of config.matchAll(REFERENCE))
      yield steps ? { kind: 'steps', key: ofResult!, path } : { kind: 'step', key: ofStep!, path };
  } else if (Array.isArray(config)) {
    for (const [index, item] of config.entries()) yield* stepReferences(item, [...path, index]);
  } else if (typeof config === 'object' && config !== null) {
    for (const [key, item] of Object.entries(config)) yield* stepReferences(item, [...path, key]);
  }
}

/** So many references to nothing are looked for: enough for a refusal. */
const MOST_DANGLING = 50;

/** The first references in configs that lead nowhere, each with the position of its config. */
export function danglingReferences(
  configs: readonly unknown[],
  isKnown: (reference: StepReference, at: number) => boolean,
): (StepReference & { at: number })[] {
  const found: (StepReference & { at: number })[] = [];
  for (const [at, config] of configs.entries())
    for (const reference of stepReferences(config)) {
      if (isKnown(reference, at)) continue;
      found.push({ ...reference, at });
      if (found.length === MOST_DANGLING) return found;
    }
  return found;
}

/** A text with its references to steps as `change` gives them. */
export const mapStepReferences = (text: string, change: (reference: string, key: string) => string): string =>
  text.replaceAll(REFERENCE, (match, _steps: unknown, ofResult: string | undefined, ofStep: string | undefined) =>
    change(match, ofResult ?? ofStep!),
  );
