import { describe, expect, it } from 'vitest';
import { startFault } from '../src/start-fault.ts';

const config = { host: '127.0.0.1', port: 80, dataDir: '/data' };
const fault = (code: string, details: object = {}, message = 'raw') =>
  Object.assign(new Error(message), { code, ...details });
const said = (error: unknown) => startFault(error, config);

describe('why a start failed', () => {
  it.each([
    ['EADDRINUSE', { syscall: 'listen' }, 'Port 80 of 127.0.0.1 is in use. Stop the other process, or set PORT.'],
    ['EACCES', { syscall: 'listen' }, 'This user may not listen on port 80. Set PORT to 1024 or higher.'],
    [
      'EADDRNOTAVAIL',
      { syscall: 'listen' },
      /^HOST is '127\.0\.0\.1', which is not an address of this machine\. Set HOST/,
    ],
    ['EACCES', { path: '/data/x' }, /^This user may not write to \/data\/x\. Give the folder to the user/],
    ['EROFS', { path: '/data/x' }, /^\/data\/x is on a read-only disk\. Set DATA_DIR/],
    ['ENOSPC', {}, /^The disk of \/data is full\. Make room/],
    ['53100', {}, 'The disk of the database is full. Make room there.'],
    ['42501', {}, /^The database refuses the role of DATABASE_URL: raw\. Make the role the owner of the database/],
    ['53300', {}, /^The database has no free connection\. Raise its max_connections/],
    ['28P01', {}, 'raw'],
  ])('%s with %j is one sentence with the remedy', (code, details, sentence) => {
    const expected: unknown = sentence instanceof RegExp ? expect.stringMatching(sentence) : sentence;
    expect(said(fault(code, details))).toEqual(expected);
  });

  it('is found below the error that names the migration', () => {
    const cause = fault('42501', {}, 'permission denied for database platform');
    expect(said(new Error('The migration x failed: …', { cause }))).toContain(
      'permission denied for database platform',
    );
    expect(said(new Error('The migration x failed: bad', { cause: new Error('bad') }))).toBe(
      'The migration x failed: bad',
    );
  });

  it('is found in what PostgreSQL says of a full disk', () => {
    expect(said(new Error('The embedded PostgreSQL could not be initialised:\nNo space left on device'))).toBe(
      'The disk of /data is full. Make room, or set DATA_DIR to a folder on another disk.',
    );
  });
});
