import { describe, expect, it } from 'vitest';
import { coveringTests, needDatabase } from '../../scripts/mutants/covering-tests.mjs';

describe('the tests that judge a source file', () => {
  it('are light where they need a database and no service, and whole where they start it', () => {
    const { light, whole } = coveringTests('src/data/paging.ts');
    expect(light).toContain('test/data/paging.test.ts');
    expect(whole).toContain('test/data/keyset-list.test.ts');
    expect(light.filter((test) => whole.includes(test))).toEqual([]);
    expect(needDatabase(['test/data/paging.test.ts'])).toBe(true);
  });

  it('are in the folder of its name, or import it and need no database', () => {
    const { light } = coveringTests('src/kernel/ids.ts');
    expect(light.filter((test) => !test.startsWith('test/kernel/') && needDatabase([test]))).toEqual([]);
    expect(light).toContain('test/kernel/ids.test.ts');
  });

  it('are none that start processes', () => {
    const { light, whole } = coveringTests('src/access/signing-keys.ts');
    expect([...light, ...whole]).not.toContain('test/access/key-rotation.test.ts');
  });
});
