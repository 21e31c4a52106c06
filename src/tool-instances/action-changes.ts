import type { ConstraintIssue } from '../core/constraints.ts';
import { InputError } from '../core/errors.ts';
import { parameterDefs, parameters } from '../tools/custom-action-schemas.ts';
import { checkCustomActions } from '../tools/custom-actions.ts';
import { type JsonSchema, shapeCheck, withDefaults } from '../tools/json-shape.ts';
import type { Action, ActionChanges } from './effective-actions.ts';

/** The changes as they are given; what is absent is not changed. */
export interface GivenChanges {
  customActions?: readonly object[] | null;
  customActionParameters?: object | null;
  actionDefaults?: object | null;
  mcpParameterOverrides?: object | null;
}

type Checked = Partial<
  Pick<ActionChanges, 'customActions' | 'customActionParameters' | 'actionDefaults' | 'mcpParameterOverrides'>
>;

const MAX_ACTIONS = 200;
const parametersByAction: JsonSchema = {
  type: 'object',
  maxProperties: MAX_ACTIONS,
  additionalProperties: parameters,
  $defs: parameterDefs,
};
const valuesByAction: JsonSchema = {
  type: 'object',
  maxProperties: MAX_ACTIONS,
  additionalProperties: { type: 'object' },
};
const overridesByAction: JsonSchema = {
  ...valuesByAction,
  additionalProperties: { type: 'object', additionalProperties: { type: 'object' } },
};

const shapes = {
  customActionParameters: { schema: parametersByAction, check: shapeCheck(parametersByAction) },
  actionDefaults: { schema: valuesByAction, check: shapeCheck(valuesByAction) },
  mcpParameterOverrides: { schema: overridesByAction, check: shapeCheck(overridesByAction) },
} as const;

type Shaped = keyof typeof shapes;

/**
 * Checks what an instance changes about the actions of its tool.
 * @param type the `custom_action_type` of the tool
 * @throws InputError
 */
export function checkActionChanges(type: string, given: GivenChanges): Checked {
  const issues: ConstraintIssue[] = [];
  const checked: Checked = {};
  const within = (name: keyof GivenChanges, found: readonly ConstraintIssue[]) =>
    issues.push(...found.map((issue) => ({ ...issue, path: ['input', name, ...issue.path] })));
  if (given.customActions) {
    const { actions, issues: found } = checkCustomActions(type, given.customActions);
    within('customActions', found);
    checked.customActions = actions as Action[];
  }
  for (const name of Object.keys(shapes) as Shaped[]) {
    const value = given[name];
    if (!value) continue;
    within(name, shapes[name].check(value));
    checked[name] = withDefaults(value, shapes[name].schema) as never;
  }
  if (issues.length > 0) throw new InputError(issues);
  return checked;
}
