import type { Augmentation } from '../augmentations/pipeline.ts';

type Json = Record<string, unknown>;
type Step = Augmentation['stages'][number]['steps'][number];

/** What a runner has besides the definition: models and tools. Each is asked with the identifier that the step has. */
export interface Surroundings {
  ask: (modelId: string, config: Json, key: string) => string;
  call: (instanceId: string, slug: string, action: string, config: Json) => unknown;
}

/** A run that goes back more often than this does not end. */
const MOST_ROUNDS = 5;
const REFERENCE = /\{\{([^{}]+)\}\}/g;
const WHOLE = /^\{\{([^{}]+)\}\}$/;

/**
 * A small runner: it reads an augmentation as docs/guides/pipelines.md says, and ends with what its output step gives.
 * A reference that leads nowhere ends the run.
 */
export class Runner {
  readonly #stages: Augmentation['stages'];
  readonly #around: Surroundings;
  readonly #input: Json;
  /** What the steps gave, by key. */
  readonly #given = new Map<string, Json>();
  readonly #ids = new Map<string, string>();

  constructor({ stages }: Augmentation, input: Json, around: Surroundings) {
    this.#stages = stages;
    this.#input = input;
    this.#around = around;
    for (const { key, step_id } of stages.flatMap(({ steps }) => steps)) this.#ids.set(key, step_id);
  }

  run(): Json {
    let answer: Json | null = null;
    let rounds = 0;
    for (let at = 0; at < this.#stages.length; at++) {
      let next: number | null = null;
      for (const step of this.#stages[at]!.steps) {
        const config = step.config as Json;
        if (step.step_type === 'output') answer = this.#resolved(config) as Json;
        else if (step.step_type === 'condition') next = this.#holds(config) ? this.#placeOf(config.goto) : next;
        else this.#given.set(step.key, this.#giftOf(step));
      }
      if (next === null) continue;
      if (++rounds > MOST_ROUNDS) throw new Error('The run does not end.');
      at = next - 1;
    }
    if (!answer) throw new Error('No step says what the answer is.');
    return answer;
  }

  /** Once, or for each item of a list. */
  #giftOf(step: Step): Json {
    const { for_each, limit, ...config } = step.config as Json;
    if (for_each === undefined) return this.#once(step, config);
    const items = (this.#resolved(for_each) as unknown[]).slice(0, (limit as number | undefined) ?? Infinity);
    const all = items.map((item) => this.#once(step, config, item));
    const [name] = Object.keys(all[0] ?? {});
    return { [`${name}s`]: all.map((one) => one[name!]) };
  }

  #once(step: Step, written: Json, item?: unknown): Json {
    const config = this.#resolved(written, item) as Json;
    switch (step.step_type) {
      case 'llm':
        return {
          text: this.#around.ask(step.logical_model_id!, config, step.key),
          call: { url: 'https://example.test' },
        };
      case 'embedding':
        return { vector: [this.#around.ask(step.logical_model_id!, config, step.key).length] };
      case 'tool':
        return {
          result: this.#around.call(step.tool_instance_id!, step.tool_slug!, step.action!, { ...config, item }),
        };
      case 'retrieval':
        return { context: `what is known of ${String(config.query)}`, documents: ['a.txt', 'b.txt'] };
      case 'transform':
        return { result: String(config.input_template).split('. ') };
      default:
        throw new Error(`There is no step of the type ${step.step_type}.`);
    }
  }

  /** `A != 'B'`, the one form that the recipes have. */
  #holds({ if: condition }: Json): boolean {
    const [, left, right] = /^(.*) != '(.*)'$/.exec(String(this.#resolved(condition)))!;
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
