import type { Sql } from '../data/sql.ts';
import type { Owner } from '../kernel/owner.ts';

/** When an owner has its turn. */
export interface Turn<Name extends string = string> {
  owner: Name;
  /** Owners before it. If one of them did not finish, this one has no turn, and its rows stay until the next run. */
  needs?: readonly Name[];
}

/** What retention needs. */
export interface RetentionOptions {
  sql: Sql;
  /** Everything that may declare retention, by the name that the order and the log have for it. */
  owners: Readonly<Record<string, object & Owner>>;
  /** The owners that declare retention, each once. */
  order: readonly Turn[];
  onFault: (error: unknown, what: string) => void;
}

/** Removes rows past their retention, as their owners declare it. */
export class Retention {
  readonly #options: RetentionOptions;

  /** @throws Error when the order lacks an owner, lists one twice, or puts one before what it needs */
  constructor(options: RetentionOptions) {
    this.#options = options;
    checkOrder(options);
  }

  /**
   * Gives each owner its turn, also after one that failed: its faults are reported under its name.
   * @returns the number of rows removed or emptied
   * @throws AggregateError at the end, naming the owners that failed and those that waited for them
   */
  async run(): Promise<number> {
    const { owners, order } = this.#options;
    const errors: unknown[] = [];
    const failed: string[] = [];
    const waiting: string[] = [];
    let rows = 0;
    for (const { owner, needs = [] } of order) {
      if (needs.some((name) => failed.includes(name) || waiting.includes(name))) {
        waiting.push(owner);
        continue;
      }
      const turn = await this.#turnOf(owner, owners[owner]!);
      rows += turn.rows;
      errors.push(...turn.errors);
      if (turn.errors.length > 0) failed.push(owner);
    }
    if (errors.length === 0) return rows;
    const others = waiting.length > 0 ? `; ${waiting.join(', ')} waited` : '';
    throw new AggregateError(errors, `retention of ${failed.join(', ')} failed${others}`);
  }

  async #turnOf(name: string, owner: Owner): Promise<{ rows: number; errors: unknown[] }> {
    const errors: unknown[] = [];
    let rows = 0;
    const attempt = async (step: () => Promise<unknown>): Promise<void> => {
      try {
        await step();
      } catch (error) {
        this.#options.onFault(error, `retention of '${name}' failed`);
        errors.push(error);
      }
    };
    await attempt(async () => {
      await owner.endElsewhere?.();
      await owner.removeFiles?.();
      await owner.removeParts?.();
    });
    // the rows know what could not be ended or removed
    if (errors.length > 0) return { rows, errors };
    for (const rule of owner.retention ?? [])
      await attempt(async () => {
        rows += await this.#options.sql.write(rule, []);
      });
    return { rows, errors };
  }
}

const STEPS = ['endElsewhere', 'removeFiles', 'removeParts', 'retention'] as const satisfies (keyof Owner)[];

function checkOrder({ owners, order }: RetentionOptions): void {
  const listed = order.map(({ owner }) => owner);
  const declared = Object.keys(owners).filter((name) => STEPS.some((step) => owners[name]![step] !== undefined));
  const early = ({ owner, needs = [] }: Turn) =>
    needs.some((name) => !listed.slice(0, listed.indexOf(owner)).includes(name));
  const mistakes = [
    ...declared.filter((name) => !listed.includes(name)).map((name) => `'${name}' is missing`),
    ...listed.filter((name) => !declared.includes(name)).map((name) => `'${name}' declares no retention`),
    ...listed.filter((name, at) => listed.indexOf(name) !== at).map((name) => `'${name}' is listed twice`),
    ...order.filter(early).map(({ owner }) => `'${owner}' comes before an owner that it needs`),
  ];
  if (mistakes.length > 0)
    throw new Error(`The order of retention (src/wiring/retention-order.ts): ${mistakes.join('; ')}.`);
}
