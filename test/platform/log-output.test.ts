import { describe, expect, it } from 'vitest';
import { LogOutput } from '../../src/platform/log-output.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { waitUntil } from '../support/wait.ts';

/** What a disk or a reader does with a write: takes so many bytes, or fails. */
class Target {
  text = '';
  tries = 0;
  fault: string | null = null;
  most = Number.POSITIVE_INFINITY;

  readonly write = (
    _fd: number,
    bytes: Buffer,
    done: (error: NodeJS.ErrnoException | null, written: number) => void,
  ): void => {
    this.tries++;
    const { fault } = this;
    const taken = bytes.subarray(0, this.most);
    if (!fault) this.text += taken.toString('latin1');
    setImmediate(() => done(fault ? Object.assign(new Error(fault), { code: fault }) : null, fault ? 0 : taken.length));
  };
}

describe('the output of the log', () => {
  it('has every line once and in order, however little of it is taken at a time', async () => {
    const target = new Target();
    target.most = 7;
    const output = new LogOutput(1, target.write);
    const lines = Array.from({ length: 50 }, (_, n) => `line ${n}\n`);
    for (const line of lines) output.write(line);
    await output.flush(10_000);
    expect([target.text, output.lost]).toEqual([lines.join(''), 0]);
  });

  it('writes whole lines and few bytes at once where other processes write as well', async () => {
    const target = new Target();
    const written: number[] = [];
    const output = new LogOutput(
      1,
      (fd, bytes, done) => {
        written.push(bytes.length);
        expect(bytes.at(-1)).toBe('\n'.charCodeAt(0));
        target.write(fd, bytes, done);
      },
      100,
    );
    const lines = [...Array.from({ length: 50 }, (_, n) => `line ${n}\n`), `${'long '.repeat(30)}\n`, 'last\n'];
    for (const line of lines) output.write(line);
    await output.flush(10_000);
    expect([target.text, Math.max(...written)]).toEqual([lines.join(''), 151]);
    expect(written.filter((bytes) => bytes > 100)).toHaveLength(1);
  });

  it.each(['ENOSPC', 'EPIPE', 'EAGAIN', 'EIO'])('keeps lines until they can be written again: %s', async (fault) => {
    const target = new Target();
    target.fault = fault;
    const output = new LogOutput(1, target.write);
    output.write('before\n');
    await waitUntil(() => target.tries > 0);
    output.write('meanwhile\n');
    target.fault = null;
    await output.flush(10_000);
    expect([target.text, output.lost]).toEqual(['before\nmeanwhile\n', 0]);
  });

  it('loses and counts the lines beyond 1 MiB, and goes on with later ones', async () => {
    const target = new Target();
    target.fault = 'ENOSPC';
    const output = new LogOutput(1, target.write);
    output.write('first\n');
    const line = `${'x'.repeat(1_023)}\n`;
    for (let n = 0; n < 1_100; n++) output.write(line);
    expect(output.lost).toBe(1_100 - 1_024);
    target.fault = null;
    await output.flush(10_000);
    output.write('last\n');
    await output.flush(10_000);
    expect(target.text).toBe(`first\n${line.repeat(1_024)}last\n`);
  });

  it('does not hold up a process that logs a fatal line, or ends', async () => {
    const target = new Target();
    target.fault = 'ENOSPC';
    const output = new LogOutput(1, target.write);
    createLogger({ logLevel: 'info' }, output).fatal('a fault');
    await output.flush(1);
    expect(target.text).toBe('');
  });
});
