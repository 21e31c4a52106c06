import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FreshCache } from '../../src/access/fresh-cache.ts';
import { hurryTimers, type PassingTime, stopAges } from '../support/passing-time.ts';

let clocks: PassingTime[];
beforeEach(() => {
  // the cache asks for the time only now and then, by a short timer
  clocks = [stopAges(), hurryTimers(1)];
});

function pass(ms: number): void {
  for (const clock of clocks) clock.pass(ms);
}

/** A load that answers when it is told to. */
function slowLoad(answer: { name: string }) {
  const told = new EventEmitter();
  const loaded = once(told, 'finish').then(() => answer);
  return { load: () => loaded, finish: () => told.emit('finish') };
}

const value = (name: string) => ({ name });
const never = () => Promise.reject(new Error('it was kept: nothing is to be loaded'));

describe('what access checks read', () => {
  it('is as old as the question, not as the answer', async () => {
    const cache = new FreshCache<{ name: string }>({ ttlMs: 900 });
    const { load, finish } = slowLoad(value('old'));
    const asked = cache.get('key', load);
    pass(800);
    finish();
    expect(await asked).toEqual(value('old'));
    expect(await cache.get('key', never)).toEqual(value('old'));
    pass(200);
    expect(await cache.get('key', async () => value('new'))).toEqual(value('new'));
  });

  it('is kept for its time when the answer was quick, and loaded once for all who ask meanwhile', async () => {
    const cache = new FreshCache<{ name: string }>({ ttlMs: 900 });
    const load = vi.fn(async () => value('one'));
    await Promise.all([cache.get('key', load), cache.get('key', load)]);
    pass(850);
    expect(await cache.get('key', load)).toEqual(value('one'));
    expect(load).toHaveBeenCalledTimes(1);
    pass(100);
    await cache.get('key', load);
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('is kept for less than a second, and counted', async () => {
    const cache = new FreshCache<{ name: string }>();
    await cache.get('key', async () => value('one'));
    pass(899);
    expect(cache.peek('key')).toEqual(value('one'));
    pass(30);
    expect(cache.peek('key')).toBeUndefined();
    const small = new FreshCache<{ name: string }>({ max: 2 });
    for (const key of ['a', 'b', 'c']) await small.get(key, async () => value(key));
    expect(['a', 'b', 'c'].map((key) => small.peek(key)?.name)).toEqual([undefined, 'b', 'c']);
  });

  it('is loaded again after a load that failed, and the failure is told to who asked', async () => {
    const cache = new FreshCache<{ name: string }>();
    const lost = new Error('lost');
    const fail = () => Promise.reject(lost);
    await expect(Promise.all([cache.get('key', fail), cache.get('key', never)])).rejects.toBe(lost);
    expect(await cache.get('key', async () => value('one'))).toEqual(value('one'));
  });

  it('is not asked for a third time when a load fails that was dropped', async () => {
    const cache = new FreshCache<{ name: string }>();
    const [first, second] = [slowLoad(value('first')), slowLoad(value('second'))];
    const failing = cache.get('key', async () => {
      await first.load();
      throw new Error('lost');
    });
    cache.drop('key');
    const asked = cache.get('key', second.load);
    first.finish();
    await expect(failing).rejects.toThrow('lost');
    const again = cache.get('key', never);
    second.finish();
    expect(await Promise.all([asked, again])).toEqual([value('second'), value('second')]);
  });

  it('is dropped by the start of its key, and nothing else is', async () => {
    const cache = new FreshCache<{ name: string }>();
    for (const key of ['org_1 a', 'org_1 b', 'org_10 a', 'org_2 a']) await cache.get(key, async () => value(key));
    cache.dropAll('org_1 ');
    expect(await cache.get('org_1 a', async () => value('new'))).toEqual(value('new'));
    expect(await cache.get('org_1 b', async () => value('new'))).toEqual(value('new'));
    for (const key of ['org_10 a', 'org_2 a']) expect(await cache.get(key, never)).toEqual(value(key));
  });

  it.each([
    ['its key', (cache: FreshCache<{ name: string }>) => cache.drop('org_1 a')],
    ['the start of its key', (cache: FreshCache<{ name: string }>) => cache.dropAll('org_1 ')],
    ['the end of its key', (cache: FreshCache<{ name: string }>) => cache.dropEnding('1 a')],
    ['everything', (cache: FreshCache<{ name: string }>) => cache.clear()],
  ])('is not kept when it was still being read as %s was dropped', async (_what, drop) => {
    const cache = new FreshCache<{ name: string }>();
    const { load, finish } = slowLoad(value('from before'));
    const asked = cache.get('org_1 a', load);
    drop(cache);
    finish();
    expect(await asked).toEqual(value('from before'));
    expect(await cache.get('org_1 a', async () => value('after'))).toEqual(value('after'));
  });

  it.each([
    ['another key', (cache: FreshCache<{ name: string }>) => cache.drop('org_1 b')],
    ['the start of another key', (cache: FreshCache<{ name: string }>) => cache.dropAll('org_2')],
    ['the end of another key', (cache: FreshCache<{ name: string }>) => cache.dropEnding(' b')],
  ])('is kept when it was still being read as %s was dropped', async (_what, drop) => {
    const cache = new FreshCache<{ name: string }>();
    const { load, finish } = slowLoad(value('one'));
    const asked = cache.get('org_1 a', load);
    drop(cache);
    finish();
    expect(await asked).toEqual(value('one'));
    expect(cache.peek('org_1 a')).toEqual(value('one'));
  });

  it('is as old as the question when many keys are read', async () => {
    const cache = new FreshCache<{ name: string }>({ ttlMs: 900 });
    const { load, finish } = slowLoad(value('old'));
    const reading = cache.readAgain(['key'], async () => [await load()]);
    pass(800);
    finish();
    await reading;
    expect(cache.peek('key')).toEqual(value('old'));
    pass(200);
    expect(cache.peek('key')).toBeUndefined();
  });

  it('is not read when there is no key to read', async () => {
    await new FreshCache<{ name: string }>().readAgain([], never);
  });

  it('is what it was when many keys could not be read', async () => {
    const cache = new FreshCache<{ name: string }>();
    await cache.get('a', async () => value('old'));
    await expect(cache.readAgain(['a', 'b'], never)).rejects.toThrow('nothing is to be loaded');
    expect([cache.peek('a'), cache.peek('b')]).toEqual([value('old'), undefined]);
  });

  it('is read anew for many keys in one go', async () => {
    const cache = new FreshCache<{ name: string }>({ ttlMs: 900 });
    await cache.get('a', async () => value('old'));
    pass(800);
    const load = vi.fn(async (keys: readonly string[]) => keys.map((key) => value(`new ${key}`)));
    await cache.readAgain(['a', 'b'], load);
    pass(800);
    for (const key of ['a', 'b']) expect(await cache.get(key, never)).toEqual(value(`new ${key}`));
    expect(load).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['its key', (cache: FreshCache<{ name: string }>) => cache.drop('org_1 a')],
    ['the start of its key', (cache: FreshCache<{ name: string }>) => cache.dropAll('org_1 ')],
    ['the end of its key', (cache: FreshCache<{ name: string }>) => cache.dropEnding('1 a')],
    ['everything', (cache: FreshCache<{ name: string }>) => cache.clear()],
  ])('is not kept when it was being read with others as %s was dropped', async (_what, drop) => {
    const cache = new FreshCache<{ name: string }>();
    const { load, finish } = slowLoad(value('from before'));
    const reading = cache.readAgain(['org_1 a', 'org_2 a'], async () => [await load(), value('other')]);
    drop(cache);
    finish();
    await reading;
    expect(await cache.get('org_1 a', async () => value('after'))).toEqual(value('after'));
  });

  it.each([
    ['its key', (cache: FreshCache<{ name: string }>) => cache.drop('org_1 a')],
    ['the start of its key', (cache: FreshCache<{ name: string }>) => cache.dropAll('org_1 ')],
    ['the end of its key', (cache: FreshCache<{ name: string }>) => cache.dropEnding('1 a')],
  ])('is kept for the other keys that were read as %s was dropped', async (_what, drop) => {
    const cache = new FreshCache<{ name: string }>();
    const { load, finish } = slowLoad(value('from before'));
    const reading = cache.readAgain(['org_1 a', 'org_2 a'], async () => [await load(), value('other')]);
    drop(cache);
    finish();
    await reading;
    expect([cache.peek('org_1 a'), cache.peek('org_2 a')]).toEqual([undefined, value('other')]);
  });
});
