import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';

function logged(record: object): string {
  let line = '';
  createLogger({ logLevel: 'info' }, { write: (text) => void (line += text) }).info(record, 'message');
  return line;
}

describe('the logger', () => {
  it.each([
    { password: 'hunter2' },
    { input: { newPassword: 'hunter2' } },
    { req: { headers: { authorization: 'Bearer hunter2' } } },
    { res: { headers: { 'set-cookie': 'hunter2' } } },
    { req: { body: { refresh_token: 'hunter2' } } },
    { req: { query: { code: 'hunter2', state: 'x' } } },
  ])('redacts %j', (record) => {
    expect(logged(record)).not.toContain('hunter2');
    expect(logged(record)).toContain('[redacted]');
  });

  it('keeps the code of an error and names the level in words', () => {
    const line = logged({ err: Object.assign(new Error('away'), { code: 'ECONNREFUSED' }) });
    expect(JSON.parse(line)).toMatchObject({ level: 'info', err: { message: 'away', code: 'ECONNREFUSED' } });
  });
});
