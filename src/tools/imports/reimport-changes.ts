import { conflict, InputError, invalidInput, valueIssue } from '../../kernel/errors.ts';
import type { ReadDocument, ReadOperation } from './import-plan.ts';
import { actionDigest, type ImportedOperation, type ImportSource, operationsOf } from './import-source.ts';
import { UniqueNames } from './unique-names.ts';

type Action = Record<string, unknown>;

/** What became of an operation since it was imported. */
export const changeKinds = {
  added: 'The document has the operation, and the tool has no action of it.',
  changed: 'The operation makes another action than the tool has.',
  removed: 'The document no longer has the operation.',
} as const;

/** How a document differs from a tool in one operation. */
export interface OperationChange {
  operation: string;
  /** The name of the action. */
  action: string;
  change: keyof typeof changeKinds;
  /** Whether the action was changed in the tool since, which applying would undo. */
  isEdited: boolean;
  /** The action of the tool; `null` if it has none. */
  before: Action | null;
  /** The action of the document; `null` if it has none, or cannot be taken. */
  after: Action | null;
}

/** What of a tool a document can change. */
interface Imported {
  actions: readonly Action[];
  source: ImportSource | null;
}

/** The operations in which a document differs from a tool, in the order of the document; those it lost come last. */
export function changesOf({ actions, source }: Imported, { operations }: ReadDocument): OperationChange[] {
  const known = operationsOf(source);
  const present = new Map(actions.map((action) => [action.name, action]));
  const taken = new UniqueNames([...present.keys()].map(String));
  const changes = operations.flatMap((found) => changeOf(found, known.get(found.operation), present, taken));
  const found = new Set(operations.map(({ operation }) => operation));
  const lost = [...known.values()].flatMap((imported): OperationChange[] => {
    const before = present.get(imported.action);
    if (found.has(imported.operation) || !before) return [];
    const { operation, action } = imported;
    return [{ operation, action, change: 'removed', isEdited: isEdited(before, imported), before, after: null }];
  });
  return [...changes, ...lost];
}

const isEdited = (action: Action, { digest }: ImportedOperation): boolean => actionDigest(action) !== digest;

function changeOf(
  { operation, action: made }: ReadOperation,
  imported: ImportedOperation | undefined,
  present: ReadonlyMap<unknown, Action>,
  taken: UniqueNames,
): OperationChange[] {
  const before = imported ? present.get(imported.action) : undefined;
  if (!imported || !before) {
    if (!made) return [];
    const isFree = imported !== undefined && !taken.has(imported.action);
    const action = isFree ? imported.action : taken.take(String(made.name));
    taken.add(action);
    const after = { ...made, name: action };
    return [{ operation, action, change: 'added', isEdited: false, before: null, after }];
  }
  const { action } = imported;
  const after = made && { ...made, name: action };
  if (after && (actionDigest(after) === imported.digest || actionDigest(after) === actionDigest(before))) return [];
  return [{ operation, action, change: 'changed', isEdited: isEdited(before, imported), before, after }];
}

/** What is applied of a document. */
export interface ReimportChoice {
  /** Operations whose changes are wanted. */
  operations: readonly string[];
  /** Those of them whose changes in the tool may be lost. */
  overwrite: readonly string[];
}

/**
 * The actions of a tool with the chosen changes, and what is kept of where they came from.
 * @throws InputError at an operation that cannot be taken; RESOURCE_CONFLICT `locally_changed` with `operations`
 */
export function applied(id: string, imported: Imported, read: ReadDocument, { operations, overwrite }: ReimportChoice) {
  const changes = new Map(changesOf(imported, read).map((change) => [change.operation, change]));
  const inDocument = new Set(read.operations.map(({ operation }) => operation));
  const known = operationsOf(imported.source);
  const issues = operations.flatMap((operation, index) => {
    const change = changes.get(operation);
    if (change ? change.after === null && change.change !== 'removed' : !known.has(operation))
      return [valueIssue(['input', 'operations', index], refusalOf(operation, inDocument))];
    return [];
  });
  if (issues.length > 0) throw new InputError(issues);
  const chosen = [...new Set(operations)].flatMap((operation) => changes.get(operation) ?? []);
  const lost = chosen.filter(({ isEdited: edited, operation }) => edited && !overwrite.includes(operation));
  if (lost.length > 0) throw locallyChanged(id, lost);
  const actions = [...imported.actions];
  for (const { before, after } of chosen) {
    const index = before ? actions.indexOf(before) : actions.length;
    if (index < 0) throw locallyChanged(id, chosen); // never an action that nobody chose
    if (after) actions.splice(index, 1, after);
    else actions.splice(index, 1);
  }
  for (const { operation, action, after } of chosen) {
    // an action is of one operation: of another, which had it before, it is no more
    for (const other of known.values())
      if (other.action === action && other.operation !== operation) known.delete(other.operation);
    if (after) known.set(operation, { operation, action, digest: actionDigest(after) });
    else known.delete(operation);
  }
  return { actions, operations: [...known.values()] };
}

const locallyChanged = (id: string, changes: readonly OperationChange[]) =>
  conflict('tool', id, 'locally_changed', 'Actions were changed in the tool since they were imported.', {
    operations: changes.map(({ operation }) => operation),
  });

const refusalOf = (operation: string, inDocument: ReadonlySet<string>): string =>
  inDocument.has(operation)
    ? 'the operation cannot be taken: see the gaps of the preview'
    : 'the document has no such operation';

/** The actions of a document that were chosen. @throws InputError at an operation that cannot be taken */
export function chosenActions(
  operations: readonly string[],
  read: ReadDocument,
): { actions: Action[]; imported: ImportedOperation[] } {
  const found = new Map(read.operations.map((operation) => [operation.operation, operation]));
  const actions: Action[] = [];
  const imported: ImportedOperation[] = [];
  for (const [index, operation] of operations.entries()) {
    if (operations.indexOf(operation) < index) throw invalidInput(['input', 'operations', index], 'it is named twice');
    const action = found.get(operation)?.action;
    if (!action) throw invalidInput(['input', 'operations', index], refusalOf(operation, new Set(found.keys())));
    actions.push(action);
    imported.push({ operation, action: String(action.name), digest: actionDigest(action) });
  }
  return { actions, imported };
}
