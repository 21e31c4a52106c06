import { expect, it } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';
import { ReadableLog } from '../../src/platform/readable-log.ts';

function logTo(parts: string[]) {
  const log = new ReadableLog({ write: (text) => void parts.push(text) });
  return { log, logger: createLogger({ logLevel: 'info' }, log) };
}

it('shows the time, the message and the fields on one line, whatever strangers put into them', () => {
  const parts: string[] = [];
  const { logger } = logTo(parts);
  logger.info({ port: 80, name: 'a b\nFATAL x', password: 'hunter2', word: 'plain' }, 'it listens');
  expect(parts).toEqual([
    expect.stringMatching(/^[\d:.]{12} it listens port=80 name="a b\\nFATAL x" password=\[redacted\] word=plain\n$/),
  ]);
});

it('names levels that are not the usual one, and shows where an error comes from below', () => {
  const parts: string[] = [];
  const { logger } = logTo(parts);
  logger.warn({ err: new Error('no room') }, 'it failed');
  expect(parts.join('')).toMatch(/^[\d:.]{12} WARN it failed\n {2}Error: no room\n {2} {4}at .*/);
});

it('keeps what is under way below the lines of the log', () => {
  const parts: string[] = [];
  const { log, logger } = logTo(parts);
  log.showBelow('one');
  log.showBelow('one');
  logger.info('a line');
  log.showBelow('');
  logger.info('another');
  expect(parts[1]!.startsWith('\r\u001b[2K')).toBe(true);
  expect(parts).toEqual([
    'one',
    expect.stringMatching(/[\d:.]{12} a line\none$/),
    '\r\u001b[2K',
    expect.stringMatching(/^[\d:.]{12} another\n$/),
  ]);
});
