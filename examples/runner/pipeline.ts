/** An object of JSON. */
export type Json = Record<string, unknown>;

export interface Step {
  step_id: string;
  key: string;
  step_type: string;
  config: Json;
  logical_model_id: string | null;
  tool_instance_id: string | null;
  tool_slug: string | null;
  action: string | null;
}

/** The definition of a pipeline, as the service has it in an augmentation. */
export interface Pipeline {
  stages: { stage_id: string; steps: Step[] }[];
}

/** Does one step. @returns what it gives: `{{steps.KEY.FIELD}}` of later steps */
export type StepRunner = (step: Step, config: Json, item: unknown) => Json | Promise<Json>;

export interface RunOptions {
  /** What does the steps, by their type. `condition` and `output` need nothing. */
  runners: Readonly<Record<string, StepRunner>>;
  /** Called after each stage, with the number of stages that are done. */
  onStage?: (completed: number) => Promise<void>;
}

/** A run that goes back more often than this does not end. */
const MOST_ROUNDS = 5;
const REFERENCE = /\{\{([^{}]+)\}\}/g;
const WHOLE = /^\{\{([^{}]+)\}\}$/;

/**
 * Runs a pipeline as docs/guides/pipelines.md says: stage after stage, step after step. A reference that leads nowhere
 * ends the run. @returns what its output step gives
 */
export function runPipeline(pipeline: Pipeline, input: Json, options: RunOptions): Promise<Json> {
  return new Run(pipeline, input, options).toEnd();
}

class Run {
  readonly #stages: Pipeline['stages'];
  readonly #input: Json;
  readonly #options: RunOptions;
  /** What the steps gave, by key. */
  readonly #given = new Map<string, Json>();
  readonly #ids = new Map<string, string>();

  constructor({ stages }: Pipeline, input: Json, options: RunOptions) {
    this.#stages = stages;
    this.#input = input;
    this.#options = options;
    for (const { key, step_id } of stages.flatMap(({ steps }) => steps)) this.#ids.set(key, step_id);
  }

  async toEnd(): Promise<Json> {
    let answer: Json | null = null;
    let rounds = 0;
    for (let at = 0; at < this.#stages.length; at++) {
      let next: number | null = null;
      for (const step of this.#stages[at]!.steps) {
        if (step.step_type === 'output') answer = this.#resolved(step.config) as Json;
        else if (step.step_type === 'condition')
          next = this.#holds(step.config) ? this.#placeOf(step.config.goto) : next;
        else this.#given.set(step.key, await this.#giftOf(step));
      }
      await this.#options.onStage?.(at + 1);
      if (next === null) continue;
      if (++rounds > MOST_ROUNDS) throw new Error('The run does not end.');
      at = next - 1;
    }
    if (!answer) throw new Error('No step says what the answer is.');
    return answer;
  }

  /** Once, or for each item of a list. */
  async #giftOf(step: Step): Promise<Json> {
    const { for_each, limit, ...config } = step.config;
    if (for_each === undefined) return this.#once(step, config);
    const items = (this.#resolved(for_each) as unknown[]).slice(0, (limit as number | undefined) ?? Infinity);
    const all: Json[] = [];
    for (const item of items) all.push(await this.#once(step, config, item));
    const [name] = Object.keys(all[0] ?? {});
    return { [`${name}s`]: all.map((one) => one[name!]) };
  }

  async #once(step: Step, written: Json, item?: unknown): Promise<Json> {
    const run = this.#options.runners[step.step_type];
    if (!run) throw new Error(`This runner has no steps of the type ${step.step_type}.`);
    return run(step, this.#resolved(written, item) as Json, item);
  }

  /** `A != 'B'`, the one form that the recipes have. */
  #holds({ if: condition }: Json): boolean {
    const [, left, right] = /^(.*) != '(.*)'$/s.exec(String(this.#resolved(condition))) ?? [];
    if (left === undefined) throw new Error(`This runner does not know the condition ${String(condition)}.`);
    return left !== right;
  }

  #placeOf(stageId: unknown): number {
    const at = this.#stages.findIndex((stage) => stage.stage_id === stageId);
    if (at < 0) throw new Error(`There is no stage ${String(stageId)}.`);
    return at;
  }

  /** A text that is one reference becomes the value itself. */
  #resolved(value: unknown, item?: unknown): unknown {
    if (typeof value === 'string') {
      const [, whole] = WHOLE.exec(value) ?? [];
      if (whole) return this.#valueOf(whole, item);
      return value.replaceAll(REFERENCE, (_match, name: string) => {
        const found = this.#valueOf(name, item);
        return typeof found === 'string' ? found : JSON.stringify(found);
      });
    }
    if (Array.isArray(value)) return value.map((one) => this.#resolved(one, item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#resolved(one, item)]));
  }

  #valueOf(name: string, item: unknown): unknown {
    const [kind, key, ...fields] = name.split('.');
    const found = (() => {
      if (kind === 'item') return item;
      if (kind === 'input') return this.#input[key!];
      if (kind === 'step') return this.#ids.get(key!);
      if (kind !== 'steps') return undefined;
      return fields.reduce<unknown>((at, field) => (at as Json | undefined)?.[field], this.#given.get(key!));
    })();
    if (found === undefined) throw new Error(`{{${name}}} leads nowhere.`);
    return found;
  }
}
