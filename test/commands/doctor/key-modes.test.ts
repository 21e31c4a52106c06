import { expect, it } from 'vitest';
import { mayOthersRead } from '../../../src/commands/doctor/key-modes.ts';

const file = (mode: number) => ({ mode: 0o100000 | mode, isDirectory: () => false });
const folder = (mode: number) => ({ mode: 0o040000 | mode, isDirectory: () => true });

it('keys of our own are for us alone', () => {
  expect([file(0o600), file(0o400), folder(0o700)].map((entry) => mayOthersRead(entry, false))).not.toContain(true);
  expect([file(0o640), file(0o604), folder(0o750)].map((entry) => mayOthersRead(entry, false))).not.toContain(false);
});

it('keys of a mounted Secret are for the group of the pod too', () => {
  expect([file(0o440), file(0o400), folder(0o3777)].map((entry) => mayOthersRead(entry, true))).not.toContain(true);
  expect([file(0o444), file(0o644)].map((entry) => mayOthersRead(entry, true))).not.toContain(false);
});
