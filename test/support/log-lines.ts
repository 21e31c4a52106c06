import { Writable } from 'node:stream';
import { createLogger, type Logger } from '../../src/platform/logger.ts';

/** The logger of the service, from warnings on, and the lines that it has written. */
export function keptLog(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const target = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return { logger: createLogger({ logLevel: 'warn' }, target), lines };
}
