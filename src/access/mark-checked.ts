import type { Permission } from '../core/resources.ts';
import type { Grant } from './permissions.ts';

/** What a caller was asked for, and how far it was granted. */
export interface Asked {
  permission: Permission;
  grant: Grant;
}

/** Says that a place was checked. It is no data: a spread of a marked place is a plain one. */
class Mark {
  readonly #asked: Asked | null;

  constructor(asked: Asked | null) {
    this.#asked = asked;
  }

  /**
   * What the caller was asked for in this place. @throws Error where it was reached by an object and not asked for
   * itself
   */
  get asked(): Asked {
    if (!this.#asked) throw new Error('Nothing was asked for in this place.');
    return this.#asked;
  }
}

export type Marked<Place> = Mark & Readonly<Place>;

/** Marks a place as checked. For the gate alone: `npm run arrows` holds who imports this. */
export const markChecked = <Place extends object>(place: Place, asked: Asked | null = null): Marked<Place> =>
  Object.assign(new Mark(asked), place);
