import { withInputs } from '../data-transforms/transform-action.ts';

/** An action, or a parameter of one, as its schema describes it. */
export type ToolAction = Readonly<Record<string, unknown>> & { name: string };

/** What an instance changes about the actions of its tool. */
export interface ActionChanges {
  /** Actions of its own; one with the name of an action of the tool takes its place. */
  customActions: ToolAction[];
  /** More parameters by action; one with the name of another takes its place. */
  customActionParameters: Record<string, ToolAction[]>;
  /** Values of parameters, by action and parameter. */
  actionDefaults: Record<string, Record<string, unknown>>;
  /** Names of the only actions there are; empty for all. */
  mcpActionFilter: string[];
  mcpActionDescriptions: Record<string, string>;
  mcpRequiresConfirmation: boolean;
  /** Properties of parameters, by action and parameter. */
  mcpParameterOverrides: Record<string, Record<string, unknown>>;
}

/** The actions of a tool as an instance has them that changes nothing: whatever may destroy something asks first. */
export const initialActions = (actions: readonly ToolAction[]): readonly ToolAction[] =>
  actions.map((action) => confirmed(action, false));

/**
 * The actions that an instance has: those of its tool and its own, filtered, with its parameters, defaults and
 * descriptions.
 */
export function effectiveActions(actions: readonly ToolAction[], changes: ActionChanges): readonly ToolAction[] {
  if (changesNothing(changes)) return actions;
  const { customActions, mcpActionFilter } = changes;
  const own = new Set(customActions.map(({ name }) => name));
  const all = [...actions.filter(({ name }) => !own.has(name)), ...customActions];
  const wanted = new Set(mcpActionFilter);
  return (wanted.size > 0 ? all.filter(({ name }) => wanted.has(name)) : all).map((action) => changed(action, changes));
}

const isEmpty = (value: object): boolean => {
  for (const _key in value) return false;
  return true;
};

const changesNothing = (changes: ActionChanges): boolean =>
  changes.customActions.length === 0 &&
  changes.mcpActionFilter.length === 0 &&
  !changes.mcpRequiresConfirmation &&
  isEmpty(changes.customActionParameters) &&
  isEmpty(changes.actionDefaults) &&
  isEmpty(changes.mcpActionDescriptions) &&
  isEmpty(changes.mcpParameterOverrides);

/** The value of a key that callers chose. */
const at = <Value>(map: Record<string, Value>, key: string): Value | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** An action that may destroy something always needs confirmation (defaults §4). */
function confirmed(action: ToolAction, always: boolean): ToolAction {
  if (action.requires_confirmation === true || !(always || action.is_destructive === true)) return action;
  return { ...action, requires_confirmation: true };
}

function changed(action: ToolAction, changes: ActionChanges): ToolAction {
  const description = at(changes.mcpActionDescriptions, action.name);
  const described = description === undefined ? action : { ...action, description };
  const parameters = parametersOf(action, changes);
  return confirmed(withInputs(parameters ? { ...described, parameters } : described), changes.mcpRequiresConfirmation);
}

/** The parameters of an action; `null` if the instance leaves them alone. */
function parametersOf({ name, parameters }: ToolAction, changes: ActionChanges): ToolAction[] | null {
  const more = at(changes.customActionParameters, name) ?? [];
  const defaults = at(changes.actionDefaults, name) ?? {};
  const overrides = at(changes.mcpParameterOverrides, name) ?? {};
  if (more.length === 0 && isEmpty(defaults) && isEmpty(overrides)) return null;
  const replaced = new Set(more.map((parameter) => parameter.name));
  const initial = ((parameters ?? []) as ToolAction[]).filter((parameter) => !replaced.has(parameter.name));
  return [...initial, ...more].map((parameter) => {
    const properties = at(overrides, parameter.name);
    const value = at(defaults, parameter.name);
    return {
      ...parameter,
      ...(typeof properties === 'object' && properties !== null ? properties : {}),
      // a parameter with a value need not be given
      ...(value === undefined ? {} : { default: value, required: false }),
      name: parameter.name,
    };
  });
}
