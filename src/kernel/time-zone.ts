import { lruOf } from './lru.ts';

/** The length of the spans of a series. */
export type StepLength = 'hour' | 'day' | 'month';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Since then, every zone is whole quarters of an hour from UTC. What is earlier is told as it would be then. */
const EARLIEST = Date.UTC(1980, 0);

/** No zone has changed its clocks and changed them back within such a time. */
const STRIDE_MS = 4 * DAY_MS;
/** Eleven years. */
const MOST_STRIDES = 1_000;

/** Longer than any change of the clocks, except for days that a zone leaves out. */
const LONGEST_CHANGE_MS = 3 * HOUR_MS;

/** Whether a text names an IANA time zone. */
export function isTimezone(text: string): boolean {
  // an offset such as `+02:00` is no time zone, though JavaScript may take it for one
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/**
 * The hours, days and months of an IANA time zone. Where the clocks change, a day has 23 or 25 hours; where they change
 * by half an hour, an hour has 90 minutes: each begins at a full hour of the clocks.
 */
export class TimeZone {
  readonly #clock: Intl.DateTimeFormat;
  /** Offsets at the starts of strides. */
  readonly #strides = new Map<number, number>();

  private constructor(name: string) {
    this.#clock = new Intl.DateTimeFormat('en', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
  }

  /** @throws RangeError for what is no time zone */
  static of(name: string): TimeZone {
    const key = name.toLowerCase();
    const zone = zones.get(key) ?? new TimeZone(name);
    zones.set(key, zone);
    return zone;
  }

  /** The start of the hour, the day or the month that contains a time. */
  startOf(step: StepLength, time: Date): Date {
    if (step === 'hour') return new Date(this.#startOfHour(time.getTime()));
    return new Date(this.#startOfDay(step === 'day' ? time.getTime() : this.#inFirstDay(time.getTime())));
  }

  /** The start of the next hour, day or month. */
  next(step: StepLength, start: Date): Date {
    if (step === 'month') return this.startOf('month', new Date(start.getTime() + 32 * DAY_MS));
    if (step === 'day') return this.startOf('day', new Date(start.getTime() + 1.5 * DAY_MS));
    const later = start.getTime() + HOUR_MS;
    const over = this.#sinceFullHour(later);
    return new Date(over === 0 ? later : later + HOUR_MS - over);
  }

  /** The start of the hour, the day or the month before. */
  previous(step: StepLength, start: Date): Date {
    return this.startOf(step, new Date(start.getTime() - (step === 'hour' ? MINUTE_MS : DAY_MS / 2)));
  }

  /** How far the clocks are ahead of UTC. Asking them costs microseconds, so they are asked every four days. */
  #offsetAt(time: number): number {
    const at = Math.floor(time / STRIDE_MS);
    const [before, after] = [this.#offsetOfStride(at), this.#offsetOfStride(at + 1)];
    return before === after ? before : this.#askedAt(time);
  }

  #offsetOfStride(at: number): number {
    const known = this.#strides.get(at);
    if (known !== undefined) return known;
    const offset = this.#askedAt(at * STRIDE_MS);
    if (this.#strides.size >= MOST_STRIDES) this.#strides.clear();
    this.#strides.set(at, offset);
    return offset;
  }

  #askedAt(time: number): number {
    const at = Math.floor(Math.max(time, EARLIEST) / MINUTE_MS) * MINUTE_MS;
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#clock.formatToParts(at)) parts[type] = Number(value);
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute) - at;
  }

  #sinceFullHour = (time: number): number => remainder(time + this.#offsetAt(time), HOUR_MS);

  #startOfHour(time: number): number {
    let start = time;
    // what is before a change of the clocks may be no full hour
    for (let over = this.#sinceFullHour(start); over > 0; over = this.#sinceFullHour(start)) start -= over;
    return start;
  }

  #startOfDay(time: number): number {
    const offset = this.#offsetAt(time);
    const midnight = time + offset - remainder(time + offset, DAY_MS);
    const before = this.#offsetAt(midnight - DAY_MS);
    const offsets = new Set([before, offset, this.#offsetAt(midnight + DAY_MS)]);
    // midnight may come twice
    const starts = [...offsets].map((of) => midnight - of).filter((at) => this.#offsetAt(at) === midnight - at);
    return starts.length > 0 ? Math.min(...starts) : this.#changeBefore(midnight - before, before);
  }

  /** About noon of the first day of the month that contains a time. */
  #inFirstDay(time: number): number {
    const offset = this.#offsetAt(time);
    const local = new Date(time + offset);
    return Date.UTC(local.getUTCFullYear(), local.getUTCMonth(), 1, 12) - offset;
  }

  /** When the clocks changed from an offset that they had some hours before a time. */
  #changeBefore(time: number, offset: number): number {
    let [since, until] = [time - LONGEST_CHANGE_MS, time];
    while (until - since > MINUTE_MS) {
      const middle = Math.floor((since + until) / 2 / MINUTE_MS) * MINUTE_MS;
      if (this.#offsetAt(middle) === offset) since = middle;
      else until = middle;
    }
    return until;
  }
}

const zones = lruOf<TimeZone>(200);

const remainder = (of: number, by: number): number => ((of % by) + by) % by;
