import { jsonOf } from '../ground/form';

/** Where a secret may be, as a column of the table. */
export interface Column {
  id: string;
  label: string;
}

/** The parts of `input` that say where a secret is. */
export const placeOf = (workspaceId: string, column: string) =>
  column === 'workspace' ? { workspaceId } : { workspaceId, environmentId: column };

/** A value as the service keeps it: an object of JSON, or any other text under one key. */
export function asValue(text: string): Record<string, unknown> {
  const object = text.trimStart().startsWith('{') ? jsonOf(text) : null;
  return object ?? { value: text };
}
