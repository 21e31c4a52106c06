import type { ConstraintIssue } from '../../kernel/constraints.ts';
import { type CustomActionKind, customActionForms } from './custom-action-schemas.ts';
import { type ShapeCheck, shapeCheck, withDefaults, withoutNulls } from './json-shape.ts';

/** Most custom actions of an instance. */
export const MAX_CUSTOM_ACTIONS = 100;
/** Most bytes of all of them. */
const MAX_BYTES = 256 * 1024;

const checks = Object.fromEntries(
  Object.entries(customActionForms).map(([kind, { schema }]) => [kind, shapeCheck(schema)]),
) as Readonly<Record<CustomActionKind, ShapeCheck>>;

const isKind = (text: string): text is CustomActionKind => Object.hasOwn(customActionForms, text);

/** What {@link checkCustomActions} found. */
export interface CheckedActions {
  /** What is wrong; paths start with the index of the action. */
  issues: ConstraintIssue[];
  /** The actions with the defaults of their form. Of no use if something is wrong. */
  actions: Record<string, unknown>[];
}

/**
 * Checks the custom actions of an instance with the very forms that the operation `custom-action-schemas` answers.
 * @param type the `custom_action_type` of the tool: only `custom_rest` and `data_transform` have custom actions
 */
export function checkCustomActions(type: string, given: readonly object[]): CheckedActions {
  if (given.length === 0) return { issues: [], actions: [] };
  const refuse = (path: (string | number)[], error: string, input: unknown) => ({
    actions: [],
    issues: [{ path, type: 'value_error', msg: `Value error, ${error}`, input, ctx: { error } }],
  });
  if (!isKind(type)) return refuse([], 'the tool has no custom actions', given);
  if (given.length > MAX_CUSTOM_ACTIONS) return refuse([], `there are more than ${MAX_CUSTOM_ACTIONS}`, '[too large]');
  if (Buffer.byteLength(JSON.stringify(given)) > MAX_BYTES)
    return refuse([], `they have more than ${MAX_BYTES} bytes`, '[too large]');
  const { schema } = customActionForms[type];
  const issues = given.flatMap((action, index) =>
    checks[type](action).map((issue) => ({ ...issue, path: [index, ...issue.path] })),
  );
  const names = given.map((action) => ('name' in action ? action.name : undefined));
  const repeated = names.findIndex((name, index) => typeof name === 'string' && names.indexOf(name) < index);
  if (repeated >= 0) issues.push(...refuse([repeated, 'name'], 'another action has this name', names[repeated]).issues);
  const actions = given.map((action) => withDefaults(withoutNulls(action, schema, schema), schema));
  return { issues, actions: actions as Record<string, unknown>[] };
}
