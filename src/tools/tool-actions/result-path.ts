/** The steps of a path into JSON: `$.items[0].name`, where `$` is the whole. `null` for what is no such path. */
export function stepsOf(path: string): (string | number)[] | null {
  const text = path.trim();
  if (text === '' || text === '$') return [];
  const whole = text.startsWith('$') ? text.slice(1) : `.${text}`;
  const steps: (string | number)[] = [];
  let at = 0;
  for (const [step, name, index] of whole.matchAll(/\.([^.[\]]+)|\[(\d{1,9})\]/g)) {
    steps.push(name ?? Number(index));
    at += step.length;
  }
  // what the steps do not cover was no step
  return at === whole.length ? steps : null;
}

/** The value at a path into JSON; `undefined` if there is none. */
export function valueAt(json: unknown, path: string): unknown {
  let found = json;
  for (const step of stepsOf(path) ?? [NOWHERE]) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<string | number, unknown>)[step];
  }
  return found;
}

/** No answer has it. */
const NOWHERE = '\0';
