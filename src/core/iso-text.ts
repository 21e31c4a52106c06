const DAY_MS = 86_400_000;

const padded = (count: number, digits: number) =>
  Array.from({ length: count }, (_, n) => String(n).padStart(digits, '0'));
const two = padded(60, 2);
const three = padded(1_000, 3);

let knownDay = Number.NaN;
let knownText = '';

/**
 * `date.toISOString()`, but three times as fast for consecutive dates of one day: a page of 50 rows has a hundred.
 * @throws RangeError for an invalid date
 */
export function isoText(date: Date): string {
  const time = date.getTime();
  const day = Math.floor(time / DAY_MS);
  if (day !== knownDay) {
    knownText = date.toISOString().slice(0, -'00:00:00.000Z'.length);
    knownDay = day;
  }
  const ms = time - day * DAY_MS;
  const seconds = Math.floor(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  return `${knownText}${two[Math.floor(minutes / 60)]}:${two[minutes % 60]}:${two[seconds % 60]}.${three[ms % 1_000]}Z`;
}
