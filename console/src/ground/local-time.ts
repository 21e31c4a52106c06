/** What clocks of a time zone show at an instant, as if that were a time of UTC. */
function shownAt(at: number, zone: string): number {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/**
 * The instant at which clocks of a time zone show a day, or a day and a time, as inputs of browsers write them. Of an
 * hour that the clocks leave out, it is the one after it.
 * @returns milliseconds since 1970; `null` for what is no time
 */
export function instantOf(local: string, zone: string): number | null {
  const wanted = Date.parse(local.includes('T') ? `${local}Z` : `${local}T00:00Z`);
  if (Number.isNaN(wanted)) return null;
  const offsetAt = (at: number) => shownAt(at, zone) - at;
  // the offset may change between the guess and the instant
  const near = wanted - offsetAt(wanted);
  const exact = wanted - offsetAt(near);
  return shownAt(exact, zone) < wanted ? near : exact;
}

/** The day that clocks of a time zone show at an instant, as `2026-11-26`. */
export const dayOf = (at: number, zone: string): string =>
  new Date(shownAt(Math.floor(at / 1_000) * 1_000, zone)).toISOString().slice(0, 10);

/** The day after so many others. */
export const dayAfter = (day: string, days: number): string => {
  const at = Date.parse(`${day}T00:00Z`) + days * 86_400_000;
  return Number.isNaN(at) ? '' : new Date(at).toISOString().slice(0, 10);
};
