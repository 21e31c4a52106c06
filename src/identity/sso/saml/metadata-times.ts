const DURATION =
  /^P(?:(\d{1,4})Y)?(?:(\d{1,4})M)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,9})(?:\.\d+)?S)?)?$/;
const DAY = 86_400;
const UNITS = [365 * DAY, 30 * DAY, DAY, 3_600, 60, 1];

/** A duration of XML Schema in seconds; `null` for a text that is none, or is negative. */
export function secondsOf(text: string): number | null {
  const parts = DURATION.exec(text);
  if (!parts || !/\d[A-Z]$/.test(text)) return null;
  return UNITS.reduce((sum, unit, index) => sum + unit * Number(parts[index + 1] ?? 0), 0);
}

const LEAST_MS = 3_600_000;
const MOST_MS = 86_400_000;
const USUAL_MS = 21_600_000;
const FIRST_RETRY_MS = 300_000;

/**
 * When metadata is read again: as its publisher says, and half way to its end, but not more often than once an hour,
 * nor more seldom than once a day.
 */
export function nextRead(
  { validUntil, cacheSeconds }: { validUntil: number | null; cacheSeconds: number | null },
  now: Date,
): Date {
  const wanted = cacheSeconds === null ? USUAL_MS : cacheSeconds * 1_000;
  const left = validUntil === null ? MOST_MS : (validUntil - now.getTime()) / 2;
  return new Date(now.getTime() + Math.min(Math.max(Math.min(wanted, left), LEAST_MS), MOST_MS));
}

/** When it is tried again after some failures in a row: after five minutes, then twice as long, and a day at most. */
export const nextTry = (failures: number, now: Date): Date =>
  new Date(now.getTime() + Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20), MOST_MS));
