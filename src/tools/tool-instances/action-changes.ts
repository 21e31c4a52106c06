import type { Tool } from '../../generated/prisma/client.ts';
import type { ConstraintIssue } from '../../kernel/constraints.ts';
import { InputError, type InputIssue } from '../../kernel/errors.ts';
import { transformIssues } from '../data-transforms/transform-checks.ts';
import { parameterDefs, parameters } from '../tools/custom-action-schemas.ts';
import { checkCustomActions } from '../tools/custom-actions.ts';
import { shapeCheck, type ToolJsonSchema, withDefaults } from '../tools/json-shape.ts';
import { entryNames, strayPlaceholders, type Templated } from '../tools/placeholders.ts';
import { toolNames } from '../tools/tool-shapes.ts';
import type { ActionChanges, ToolAction } from './effective-actions.ts';

/** The changes as they are given; what is absent is not changed. */
export interface GivenChanges {
  customActions?: readonly object[] | null;
  customActionParameters?: object | null;
  actionDefaults?: object | null;
  mcpParameterOverrides?: object | null;
}

type CheckedChanges = Partial<
  Pick<ActionChanges, 'customActions' | 'customActionParameters' | 'actionDefaults' | 'mcpParameterOverrides'>
>;

const MAX_ACTIONS = 200;
const CUSTOM_ACTIONS = ['input', 'customActions'];
const parametersByAction: ToolJsonSchema = {
  type: 'object',
  maxProperties: MAX_ACTIONS,
  additionalProperties: parameters,
  $defs: parameterDefs,
};
const valuesByAction: ToolJsonSchema = {
  type: 'object',
  maxProperties: MAX_ACTIONS,
  additionalProperties: { type: 'object' },
};
const overridesByAction: ToolJsonSchema = {
  ...valuesByAction,
  additionalProperties: { type: 'object', additionalProperties: { type: 'object' } },
};

const shapes = {
  customActionParameters: { schema: parametersByAction, check: shapeCheck(parametersByAction) },
  actionDefaults: { schema: valuesByAction, check: shapeCheck(valuesByAction) },
  mcpParameterOverrides: { schema: overridesByAction, check: shapeCheck(overridesByAction) },
} as const;

type Shaped = keyof typeof shapes;

/** What an instance has beside its changes. */
interface Around {
  tool: Pick<Tool, 'customActionType' | 'configSchema' | 'credentialSchema'>;
  configuration: Readonly<Record<string, unknown>>;
  /** The parameters that it has added so far. */
  customActionParameters: object;
}

/**
 * Checks what an instance changes about the actions of its tool.
 * @throws InputError
 */
export function checkActionChanges(around: Around, given: GivenChanges): CheckedChanges {
  const { customActionType: type } = around.tool;
  const issues: InputIssue[] = [];
  const checked: CheckedChanges = {};
  const within = (name: keyof GivenChanges, found: readonly ConstraintIssue[]) =>
    issues.push(...found.map((issue) => ({ ...issue, path: ['input', name, ...issue.path] })));
  if (given.customActions) {
    const { actions, issues: found } = checkCustomActions(type, given.customActions);
    within('customActions', found);
    if (type === 'custom_rest' && found.length === 0) issues.push(...strayNames(around, given));
    if (type === 'data_transform' && found.length === 0)
      issues.push(...transformIssues(actions, namesBeside(around, given), CUSTOM_ACTIONS));
    checked.customActions = actions as ToolAction[];
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

/** Placeholders of custom actions that name nothing. */
const strayNames = (around: Around, given: GivenChanges): InputIssue[] =>
  strayPlaceholders(given.customActions ?? [], namesBeside(around, given), CUSTOM_ACTIONS);

/**
 * The names that custom actions may use beside their own parameters. A tool without a description has the fields that
 * are given.
 */
function namesBeside({ tool, configuration, customActionParameters }: Around, given: GivenChanges) {
  const more = (given.customActionParameters ?? customActionParameters) as Record<string, unknown>;
  const names = [...toolNames(tool), ...Object.keys(configuration)];
  const ofAction = ({ name }: Templated) =>
    typeof name === 'string' && Object.hasOwn(more, name) ? entryNames(more[name]) : [];
  return (action: Templated) => [...names, ...ofAction(action)];
}
