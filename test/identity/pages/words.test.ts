import { describe, expect, test } from 'vitest';
import { grantableScopes, meaningOf } from '../../../src/identity/oauth/granted-scopes.ts';
import { agentName } from '../../../src/identity/pages/agent-name.ts';

describe('a scope', () => {
  test.each([
    ['workspace:read', 'See workspaces'],
    ['secret:reveal', 'See the values of secrets'],
    ['organization:update', 'Change the organization'],
    ['tool_instance:execute', 'Use tool instances'],
    ['entity:create', 'Create entities'],
    ['offline_access', 'Go on when you have signed out'],
  ])('is told in plain words: %s', (scope, meaning) => expect(meaningOf(scope)).toBe(meaning));

  test('is told in words that no other has', () => {
    const meanings = grantableScopes.map(meaningOf);
    expect(new Set(meanings).size).toBe(grantableScopes.length);
    expect(meanings.filter((text) => /[:_]|^ | $/.test(text))).toEqual([]);
  });
});

test.each([
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
    'Chrome on Linux',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0',
    'Edge on Windows',
  ],
  ['Mozilla/5.0 (Macintosh; Intel Mac OS X 14.1; rv:132.0) Gecko/20100101 Firefox/132.0', 'Firefox on a Mac'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) (KHTML, like Gecko) Version/18.1 Safari/604.1',
    'Safari on an iPhone',
  ],
  ['curl/8.5.0', 'curl/8.5.0'],
  ['', 'A program'],
  [null, 'A program'],
])('a browser is called as people call it: %s', (text, name) => expect(agentName(text)).toBe(name));
