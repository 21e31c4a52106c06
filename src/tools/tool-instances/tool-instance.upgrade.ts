import { conflict, InputError } from '../../kernel/errors.ts';
import { checkConfiguration, faultOf, type ToolFields } from './configuration.ts';
import { SafePatterns } from './safe-pattern.ts';
import type { StoredInstance } from './tool-instance.reads.ts';

/** An instance after an upgrade. */
interface Upgraded {
  plain: Record<string, unknown>;
  secrets: Record<string, unknown>;
  cleared: string[];
  metadata: Record<string, unknown>;
}

/**
 * The configuration of an instance at the current schema of its tool. Values of fields that became sensitive go to the
 * vault, keys that are no fields any more to `metadata.removed`.
 * @param given values for fields that need one
 * @throws RESOURCE_CONFLICT `manual_migration_required` with the fields that are required and have neither a value nor
 * a default, or whose value the tool does not accept any more; InputError for a given value that it does not accept
 */
export function upgraded(
  fields: ToolFields,
  { id, configuration, metadata }: StoredInstance,
  given: Readonly<Record<string, unknown>>,
  path: readonly string[],
): Upgraded {
  const removed = Object.entries(configuration).filter(([name]) => !fields.isFree && !fields.fields.has(name));
  const names = new Set(removed.map(([name]) => name));
  const kept = Object.fromEntries(Object.entries(configuration).filter(([name]) => !names.has(name)));
  const patterns = new SafePatterns();
  const faulty = Object.entries(kept).filter(([name, value]) => {
    const field = fields.fields.get(name);
    return (
      field !== undefined && !Object.hasOwn(given, name) && value !== null && faultOf(field, value, patterns) !== null
    );
  });
  const checked = checkConfiguration(fields, { ...kept, ...given }, {}, path);
  const isGiven = (name: string | number | undefined) => typeof name === 'string' && Object.hasOwn(given, name);
  const wrong = checked.issues.filter((issue) => isGiven(issue.path[path.length]));
  if (wrong.length > 0) throw new InputError(wrong);
  const missing = checked.issues.flatMap(({ type, path: at }) => (type === 'missing' ? [String(at[path.length])] : []));
  const manual = [...new Set([...missing, ...faulty.map(([name]) => name)])];
  if (manual.length > 0)
    throw conflict(
      'tool_instance',
      id,
      'manual_migration_required',
      `The latest schema of the tool needs other values. Give them with the upgrade: ${manual.join(', ')}.`,
      { fields: manual },
    );
  const before = (metadata.removed ?? {}) as Record<string, unknown>;
  return {
    plain: checked.plain,
    secrets: checked.secrets,
    cleared: checked.cleared,
    metadata: removed.length > 0 ? { ...metadata, removed: { ...before, ...Object.fromEntries(removed) } } : metadata,
  };
}
