import { overloadOf } from '../../kernel/json-shape.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { aggregated } from './aggregate-list.ts';
import { chunkedText } from './chunk-text.ts';
import { filteredList } from './filter-list.ts';
import { chunkingOf, type TransformAction, usesInput } from './transform-action.ts';
import { TransformBudget, TransformFault } from './transform-budget.ts';
import { extracted } from './transform-patterns.ts';
import { filledTemplate, neededTemplate, plainText, type TransformValues } from './transform-templates.ts';

/** A transform with the values that its templates may name. */
export interface TransformTask {
  action: TransformAction;
  parameters: Readonly<Record<string, unknown>>;
  configuration: Readonly<Record<string, unknown>>;
}

/** What a transform makes of its values. @throws TransformFault */
export function runTransform({ action, parameters, configuration }: TransformTask): unknown {
  const budget = new TransformBudget();
  const given = [parameters, configuration];
  const input = usesInput(action as unknown as ToolAction)
    ? neededTemplate(action.input_template, { own: {}, given }, budget)
    : undefined;
  const values: TransformValues = { own: input === undefined ? {} : { input }, given };
  const result = resultOf(action, input, values, budget);
  if (!action.output_template || action.transform_type === 'template') return result;
  return neededTemplate(action.output_template, { own: { ...values.own, result }, given }, budget);
}

function resultOf(action: TransformAction, input: unknown, values: TransformValues, budget: TransformBudget): unknown {
  switch (action.transform_type) {
    case 'chunk':
      return chunkedText(plainText(input), chunkingOf(action), budget);
    case 'extract':
      return extracted(action.extract_patterns ?? [], plainText(input), budget);
    case 'filter':
      return filteredList(
        listOf(input, budget),
        action.filter_conditions ?? [],
        action.filter_mode ?? 'include',
        budget,
      );
    case 'map':
      return mapped(action, input, values, budget);
    case 'flatten': {
      const list = action.flatten_template ? neededTemplate(action.flatten_template, values, budget) : input;
      return flattened(listOf(list, budget), action.flatten_depth ?? 1, budget);
    }
    case 'aggregate':
      return aggregated(
        listOf(input, budget),
        action.aggregate_operation ?? '',
        action.aggregate_separator ?? '\n',
        budget,
      );
    case 'template':
      return neededTemplate(action.output_template ?? '', values, budget);
  }
}

/** A list, or the text of one in JSON: what a template with more than one placeholder makes is a text. */
function listOf(value: unknown, budget: TransformBudget): readonly unknown[] {
  const list = typeof value === 'string' ? parsed(value) : value;
  if (!Array.isArray(list)) throw new TransformFault('the input is no list');
  budget.items(list.length);
  return list;
}

/** What of a text is taken apart: deeper lists would end the thread. */
const JSON_BOUNDS = { maxDepth: 64, maxValues: 60_000 };

function parsed(text: string): unknown {
  if (overloadOf(text, JSON_BOUNDS)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null; // a text that is no JSON is no list
  }
}

/** Each element in another form; an input that is no list is one element. */
function mapped(action: TransformAction, input: unknown, values: TransformValues, budget: TransformBudget): unknown {
  const mappings = Object.entries(action.field_mappings ?? {});
  const one = (item: unknown, index: number) => {
    const own = { ...values.own, item, index };
    const entries = mappings.map(([name, template]): [string, unknown] => {
      budget.write(name.length + 8);
      return [name, filledTemplate(template, { ...values, own }, budget)];
    });
    budget.tick();
    // what has no value is left out, as in the body of a request
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  };
  return Array.isArray(input) ? listOf(input, budget).map(one) : one(input, 0);
}

function flattened(list: readonly unknown[], depth: number, budget: TransformBudget): unknown[] {
  const flat: unknown[] = [];
  const add = (items: readonly unknown[], left: number) => {
    for (const item of items) {
      if (Array.isArray(item) && left > 0) add(item, left - 1);
      else flat.push(item);
      budget.items(flat.length);
    }
  };
  add(list, depth);
  return flat;
}
