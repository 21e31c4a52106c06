const SECOND = /\b(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d:\d\d)/g;
const PERIODS = ['2026-11-22'.length, '2026-11'.length];

/**
 * Moves all points in time of a text from around `then` to around `now`, by whole seconds: rows and answers of long ago
 * look as if they were just written, so nothing of them has expired. Days and months that stand alone in quotes, by
 * which usage is counted, become those of `now`.
 */
export function shiftTimes(text: string, then: Date, now: Date): string {
  const byMs = Math.floor((now.getTime() - then.getTime()) / 1000) * 1000;
  const shifted = text.replace(SECOND, (_point, date: string, between: string, clock: string) =>
    new Date(Date.parse(`${date}T${clock}Z`) + byMs).toISOString().slice(0, 19).replace('T', between),
  );
  return PERIODS.reduce(
    (result, length) => replaceQuoted(result, periodOf(then, length), periodOf(now, length)),
    shifted,
  );
}

const periodOf = (time: Date, length: number): string => time.toISOString().slice(0, length);

function replaceQuoted(text: string, from: string, to: string): string {
  return ["'", '"'].reduce(
    (result, quote) => result.replaceAll(`${quote}${from}${quote}`, `${quote}${to}${quote}`),
    text,
  );
}
