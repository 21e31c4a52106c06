import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeAbandoned } from './cluster.ts';

test('the files of runs that are over are removed, and those of others and of running servers are not', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'clusters-'));
  // a process that was there and has ended
  const gone = spawnSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).stdout.trim();
  const base = (name: string, server: string | number | null) => {
    mkdirSync(path.join(folder, name, 'postgres'), { recursive: true });
    if (server !== null) writeFileSync(path.join(folder, name, 'postgres', 'postmaster.pid'), `${server}\n/data\n`);
    return name;
  };
  base(`platform-tests-${gone}-stopped`, null);
  base(`platform-tests-${gone}-killed`, gone);
  const kept = [
    base(`platform-tests-${gone}-serves`, process.pid),
    base(`platform-tests-${process.pid}-runs`, gone),
    base('platform-tests-x-of-nobody', null),
    base(`other-${gone}`, null),
  ];
  removeAbandoned(folder);
  expect(readdirSync(folder)).toEqual(kept.sort());
  rmSync(folder, { recursive: true });
});
