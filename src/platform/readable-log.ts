import type { DestinationStream } from 'pino';

const ERASE = '\r\u001b[2K';

/** A line of the log as it arrives: what pino writes. */
interface LogLine {
  level: string;
  time: string;
  msg?: string;
  err?: { type?: string; message?: string; stack?: string };
  [key: string]: unknown;
}

/**
 * Writes the lines of the log for people: the time, the level if it is not the usual one, the message, and the rest as
 * `name=value`. On a terminal, one more line below them shows what is under way.
 */
export class ReadableLog implements DestinationStream {
  readonly #output: DestinationStream;
  #below = '';

  constructor(output: DestinationStream) {
    this.#output = output;
  }

  write(line: string): void {
    this.#output.write(`${this.#below && ERASE}${readable(JSON.parse(line) as LogLine)}\n${this.#below}`);
  }

  /** Shows a text below the log until it is replaced; an empty one takes it away. For terminals only. */
  showBelow(text: string): void {
    if (text === this.#below) return;
    this.#output.write(`${this.#below && ERASE}${text}`);
    this.#below = text;
  }
}

function readable({ level, time, msg = '', err, ...rest }: LogLine): string {
  const shownLevel = level === 'info' ? '' : ` ${level.toUpperCase()}`;
  const fields = Object.entries(rest).map(([name, value]) => ` ${name}=${shown(value)}`);
  const reason = err ? `\n  ${(err.stack ?? err.message ?? '').replaceAll('\n', '\n  ')}` : '';
  return `${time.slice(11, 23)}${shownLevel} ${msg}${fields.join('')}${reason}`;
}

/** A word as it is, anything else as JSON, which also keeps line feeds of strangers on one line. */
const shown = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
