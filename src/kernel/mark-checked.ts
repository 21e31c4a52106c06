import type { Permit } from './permit.ts';

/** Marks a place as checked. A spread of a marked place loses the mark. */
class Mark {
  readonly #asked: Permit | null;

  constructor(asked: Permit | null) {
    this.#asked = asked;
  }

  /**
   * The permission that was checked in this place, with what was found for the caller: no service looks it up again.
   * @throws Error if the place was reached through an object and had no check of its own
   */
  get asked(): Permit {
    if (!this.#asked) throw new Error('Nothing was asked for in this place.');
    return this.#asked;
  }
}

export type Marked<Place> = Mark & Readonly<Place>;

/** Marks a place as checked. Only for the gate: `npm run arrows` restricts who imports this. */
export const markChecked = <Place extends object>(place: Place, asked: Permit | null = null): Marked<Place> =>
  Object.assign(new Mark(asked), place);
