import { describe, expect, it } from 'vitest';
import { coveringTests } from '../../scripts/mutants/covering-tests.mjs';

describe('the tests that judge a source file', () => {
  it('are light ones where they need the database alone, and whole ones where they start the service', () => {
    const { light, whole } = coveringTests('src/access/access.ts');
    expect(light).toContain('test/access/access.test.ts');
    expect(whole).toContain('test/access/revocation.test.ts');
    expect(light).not.toContain('test/access/revocation.test.ts');
  });

  it('are none that start processes', () => {
    const { light, whole } = coveringTests('src/access/signing-keys.ts');
    expect([...light, ...whole]).not.toContain('test/access/key-rotation.test.ts');
  });
});
