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
export function stepReferences(config: unknown): StepReference[] {
  const found: StepReference[] = [];
  const visit = (at: unknown, path: (string | number)[]): void => {
    if (typeof at === 'string')
      for (const [, steps, ofResult, ofStep] of at.matchAll(REFERENCE))
        found.push(steps ? { kind: 'steps', key: ofResult!, path } : { kind: 'step', key: ofStep!, path });
    else if (Array.isArray(at)) for (const [index, item] of at.entries()) visit(item, [...path, index]);
    else if (typeof at === 'object' && at !== null)
      for (const [key, item] of Object.entries(at)) visit(item, [...path, key]);
  };
  visit(config, []);
  return found;
}

/** A text with its references to steps as `change` gives them. */
export const mapStepReferences = (text: string, change: (reference: string, key: string) => string): string =>
  text.replaceAll(REFERENCE, (match, _steps: unknown, ofResult: string | undefined, ofStep: string | undefined) =>
    change(match, ofResult ?? ofStep!),
  );
