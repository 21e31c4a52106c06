import { canonicalJson } from '../../kernel/json-object.ts';
/** A part of a tool that instances depend on: lists of entries with names. */
export interface ToolSchemas {
  configSchema: readonly object[];
  actionSchemas: readonly object[];
}

const nameOf = (entry: object) => ('name' in entry ? String(entry.name) : '');
const MAX_NAMES = 10;

function listed(verb: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return [`${verb} ${names.slice(0, MAX_NAMES).join(', ')}${more}`];
}

/** `fields: added a; changed b`. `null` if the lists are the same. */
function differenceOf(noun: string, before: readonly object[], after: readonly object[]): string | null {
  if (canonicalJson(before) === canonicalJson(after)) return null;
  const known = new Map(before.map((entry) => [nameOf(entry), canonicalJson(entry)]));
  const left = new Set(after.map(nameOf));
  const changes = [
    ...listed(
      'added',
      after.map(nameOf).filter((name) => !known.has(name)),
    ),
    ...listed(
      'changed',
      after
        .filter((entry) => known.has(nameOf(entry)) && known.get(nameOf(entry)) !== canonicalJson(entry))
        .map(nameOf),
    ),
    ...listed(
      'removed',
      [...known.keys()].filter((name) => !left.has(name)),
    ),
  ];
  return `${noun}: ${changes.length > 0 ? changes.join('; ') : 'the order changed'}`;
}

/**
 * What a changelog says of a new version: `Fields: added region. Actions: removed ping.`; `null` if nothing changed
 * that instances depend on.
 */
export function changeOf(before: ToolSchemas, after: ToolSchemas): string | null {
  const changes = [
    differenceOf('Fields', before.configSchema, after.configSchema),
    differenceOf('Actions', before.actionSchemas, after.actionSchemas),
  ].filter((change) => change !== null);
  return changes.length > 0 ? `${changes.join('. ')}.` : null;
}
