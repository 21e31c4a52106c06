import { describe, expect, it } from 'vitest';
import { effectiveRole, reachesEveryWorkspace } from '../../src/access/role-grants.ts';
import { roles } from '../../src/kernel/roles.ts';

describe('an effective role', () => {
  it('is the higher one of an administrator, and that of the membership for the others', () => {
    expect(effectiveRole('owner', 'viewer')).toBe('owner');
    expect(effectiveRole('admin', 'owner')).toBe('owner');
    expect(effectiveRole('editor', 'viewer')).toBe('viewer');
    expect(effectiveRole('editor', null)).toBeNull();
    expect(roles.map(reachesEveryWorkspace)).toEqual([false, false, false, true, true]);
  });
});
