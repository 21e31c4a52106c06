import { locale } from '../texts';

let zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The time zone of the reader's account, else that of the browser. */
export function setTimeZone(name: string | null | undefined): void {
  try {
    if (name) zone = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // a zone that this browser does not know
  }
}

export const timeZone = (): string => zone;

/** By zone and options: to make one takes as long as to draw a row. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`;
  const known = formats.get(key) ?? new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
  formats.set(key, known);
  return known;
}

export const formatted = (
  at: string | number,
  options: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'short' },
): string => formatOf(options).format(new Date(at));

const day = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;

/** A time in the time zone of the reader: of today the hour, else the day too. All of it is in the title. */
export function Time({ at }: { at: string }) {
  const isToday = formatted(at, day) === formatted(Date.now(), day);
  return (
    <time dateTime={at} title={formatted(at, { dateStyle: 'full', timeStyle: 'long' })}>
      {formatted(at, { ...(!isToday && { dateStyle: 'medium' }), timeStyle: isToday ? 'medium' : 'short' })}
    </time>
  );
}

const numbers = new Intl.NumberFormat(locale);
export const count = (value: number): string => numbers.format(value);

/** A number where there is little room: of millions, what matters. */
export const brief = (value: number): string =>
  value < 1_000_000
    ? count(value)
    : new Intl.NumberFormat(locale, { notation: 'compact', maximumSignificantDigits: 4 }).format(value);

/** A small number, such as a price, with what matters of its fraction. */
export const exact = (value: number): string =>
  new Intl.NumberFormat(locale, { maximumSignificantDigits: 4 }).format(value);

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, value > 0 ? Math.floor(Math.log2(value) / 10) : 0);
  const number = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  return `${number.format(value / 1024 ** power)} ${units[power]}`;
}
