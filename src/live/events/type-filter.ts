import { InputError, valueIssue } from '../../kernel/errors.ts';
import { isEventName } from '../../kernel/event-types.ts';

/** Whether a reader selected the events of a type. */
export type TypeFilter = (type: string) => boolean;

/**
 * The filter that a reader selected: exact types, and `<resource>.*` for all events of a resource. Default: all events.
 * @throws InputError at `types` for each name that no event has
 */
export function typeFilterOf(types: readonly string[] | null | undefined): TypeFilter {
  if (!types) return () => true;
  const issues = [...types.entries()]
    .filter(([, name]) => !isEventName(name))
    .map(([index, name]) => issueOf(index, name));
  if (issues.length > 0) throw new InputError(issues);
  const wanted = new Set(types);
  return (type) => wanted.has(type) || wanted.has(`${type.split('.')[0]}.*`);
}

const issueOf = (index: number, name: string) =>
  valueIssue(
    ['types', index],
    `there is no event called ${JSON.stringify(name)}: name a type like 'thread.created', or 'thread.*'`,
  );
