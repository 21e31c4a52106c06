import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { allDone } from '../../src/kernel/all-done.ts';

test('what fails is told when the rest has ended, and the first failure of the list is', async () => {
  const ended: string[] = [];
  const store = new EventEmitter();
  const work = [once(store, 'answer'), Promise.reject(new Error('no tools')), Promise.reject(new Error('no files'))];
  const all = allDone(work).catch((error: Error) => ended.push(error.message));
  await setImmediate();
  expect(ended).toEqual([]);
  store.emit('answer');
  await all;
  expect(ended).toEqual(['no tools']);
  await allDone([Promise.resolve(1), Promise.resolve('two')]);
});
