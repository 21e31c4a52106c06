import { expect, test } from 'vitest';
import { secretReferencesOf } from '../../src/wiring/secret-references.ts';

const of = (resource: 'provider_account' | 'tool_instance' | 'secret') => ({
  secretReferences: [{ resource, table: 'things', column: 'secret_ref' }],
});

test('references are listed in one order, whoever declares them first', () => {
  const found = secretReferencesOf([of('tool_instance'), {}, of('provider_account')]);
  expect(found.map(({ resource }) => resource)).toEqual(['provider_account', 'tool_instance']);
});

test('those of a resource without a place in the order are refused', () => {
  expect(() => secretReferencesOf([of('secret')])).toThrow('secret-references.ts lacks them');
});
