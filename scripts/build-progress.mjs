// Tells what a build does while it does it. Its steps hold up the thread that runs them, so another one counts.
import { readFileSync, writeSync } from 'node:fs';
import tty from 'node:tty';
import { parseEnv } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const SPEAK_MS = 4_000;
const DRAW_MS = 500;
const ERASE = '\r\u001b[2K';

/** @typedef {{ fd: 1 | 2, isJson: boolean, isTerminal: boolean }} Target */

export class BuildProgress {
  /** @type {Target} */
  #target;
  /** @type {Worker | undefined} */
  #counter;

  /** @param {Pick<Target, 'fd' | 'isJson'>} to */
  constructor({ fd, isJson }) {
    this.#target = { fd, isJson, isTerminal: tty.isatty(fd) && !isJson };
  }

  /** Begins a step, which ends the one before. @param {string} step what is done, like "compiling" */
  begin(step) {
    say(step, this.#target);
    this.#counter ??= new Worker(new URL(import.meta.url), { workerData: this.#target });
    this.#counter.postMessage(step);
  }

  async end() {
    await this.#counter?.terminate();
    if (this.#counter && this.#target.isTerminal) write(this.#target.fd, ERASE);
  }
}

/**
 * Where a service tells its start, as its settings say it: the log has not been opened yet.
 * @param {readonly string[]} args of the command line
 * @returns {boolean} whether its lines are JSON
 */
export function isJsonLog(args) {
  const at = args.findIndex((arg) => arg.startsWith('--env-file'));
  const file = at < 0 ? undefined : (args[at]?.split('=')[1] ?? args[at + 1]);
  const { LOG_FORMAT: format, NODE_ENV: environment } = { ...valuesOf(file), ...process.env };
  return format ? format === 'json' : environment === 'production';
}

/** @param {string | undefined} file @returns {NodeJS.Dict<string>} */
function valuesOf(file) {
  try {
    return file ? parseEnv(readFileSync(file, 'utf8')) : {};
  } catch {
    return {}; // the service says what is wrong with it
  }
}

/** @param {string} text @param {Target} target */
function say(text, { fd, isJson, isTerminal }) {
  const time = new Date().toISOString();
  const line = isJson ? JSON.stringify({ level: 'info', time, msg: text }) : `${time.slice(11, 23)} ${text}`;
  write(fd, `${isTerminal ? ERASE : ''}${line}\n`);
}

/** @param {number} fd @param {string} text */
function write(fd, text) {
  try {
    writeSync(fd, text);
  } catch {
    // nobody reads it, or the disk under it is full: the build goes on
  }
}

function count() {
  const target = /** @type {Target} */ (workerData);
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  parentPort?.on('message', (step) => {
    const beganAt = Date.now();
    clearInterval(timer);
    timer = setInterval(
      () => {
        const seconds = Math.round((Date.now() - beganAt) / 1_000);
        if (target.isTerminal) write(target.fd, `${ERASE}  ${step} … ${seconds} s`);
        else say(`still ${step}, ${seconds} s`, target);
      },
      target.isTerminal ? DRAW_MS : SPEAK_MS,
    );
  });
}

if (!isMainThread) count();
