import type { ImportGap } from './import-plan.ts';
import type { Gap } from './references.ts';

const MAX_GAPS = 500;

/** The gaps of a document, as many as are listed. */
export class Gaps {
  readonly listed: ImportGap[] = [];
  readonly #seen = new Set<string>();

  get count(): number {
    return this.#seen.size;
  }

  add(gap: Gap, operation: string | null): void {
    const place = gap.place.slice(0, 500).toWellFormed().replaceAll('\u0000', '');
    const key = JSON.stringify([operation, place, gap.kind]);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    if (this.listed.length < MAX_GAPS) this.listed.push({ place, operation, kind: gap.kind, message: gap.message });
  }
}
