import { describe, expect, it } from 'vitest';
import { eventNames, isAction } from '../../src/kernel/actions.ts';
import { slugged } from '../../src/kernel/slug.ts';
import { snakeCase } from '../../src/kernel/snake-case.ts';
import { minuteOf, nameInMail, oneLine, startingNoun, withoutAddresses } from '../../src/kernel/wording.ts';

describe('a noun at the beginning of a sentence', () => {
  it.each([
    ['environment', 'An environment'],
    ['api token', 'An api token'],
    ['identity provider', 'An identity provider'],
    ['organization', 'An organization'],
    ['update', 'An update'],
    ['Artifact', 'An Artifact'],
    ['user', 'A user'],
    ['unit', 'A unit'],
    ['university', 'A university'],
    ['usage', 'A usage'],
    ['workspace', 'A workspace'],
    ['tool action', 'A tool action'],
    ['', 'A '],
  ])('%j has its article', (noun, expected) => expect(startingNoun(noun)).toBe(expected));
});

describe('a text in a sentence', () => {
  it.each([
    [' a  b ', 'a b'],
    ['a\nb\r\n\tc', 'a b c'],
    ['a\u0000\u200b\u202eb', 'a b'],
    ['', ''],
    ['äß 😀', 'äß 😀'],
  ])('%j is one line', (text, expected) => expect(oneLine(text)).toBe(expected));

  it('is at most so long, without the spaces around it', () => {
    expect(oneLine('abcdef', 3)).toBe('abc');
    expect(oneLine('   abc', 3)).toBe('abc');
    expect(oneLine('x'.repeat(200))).toBe('x'.repeat(100));
  });
});

describe('a text in a mail', () => {
  it.each([
    ['Acme Inc. of Dr. No', 'Acme Inc. of Dr. No'],
    ['go to http://evil.example/x NOW', 'go to … NOW'],
    ['evil.example or www.evil.example/x', '… or …'],
    ['write to all@example.test', 'write to …'],
    ['x'.repeat(80), 'x'.repeat(60)],
  ])('%j has no address: %j', (name, expected) => expect(nameInMail(name)).toBe(expected));

  it('keeps the address of its reader, and no other', () => {
    const told = (text: string) => withoutAddresses(text, 200, 'ann@example.test');
    expect(told('Your address is now ann@example.test. Sign in.')).toBe(
      'Your address is now ann@example.test. Sign in.',
    );
    expect(told("'ann@example.test/x' and bob@example.test")).toBe('… and …');
  });

  it.each(['a', 'a.', 'a-', 'http:', '@'])('made of %j without end takes no time', (part) => {
    expect(withoutAddresses(part.repeat(1_000_000), 200).length).toBeLessThanOrEqual(200);
  });
});

it('a time is told to the minute, in UTC', () => {
  expect(minuteOf(new Date('2026-11-22T19:30:59.999Z'))).toBe('2026-11-22 19:30');
});

describe('a slug', () => {
  it.each([
    ['Été 2025!', 'ete-2025'],
    ['  A  b_c  ', 'a-b-c'],
    ['ﬁve', 'five'],
    ['---', ''],
    ['日本', ''],
    ['a'.repeat(50), 'a'.repeat(10)],
    ['abcdefghi jk', 'abcdefghi'],
    ['x', 'x'],
  ])('of %j is %j', (text, slug) => expect(slugged(text, 10)).toBe(slug));
});

describe('a name in snake case', () => {
  it.each([
    ['name', 'name'],
    ['displayName', 'display_name'],
    ['maxCostPer1kTokens', 'max_cost_per_1k_tokens'],
    ['URLPath', 'url_path'],
    ['samlURL', 'saml_url'],
    ['ssoURLOf', 'sso_url_of'],
    ['p95Ms', 'p95_ms'],
    ['sha256', 'sha256'],
    ['a1b', 'a_1b'],
    ['over12months', 'over_12months'],
    ['ABCDef', 'abc_def'],
  ])('of %s is %s', (name, expected) => expect(snakeCase(name)).toBe(expected));
});

describe('an action', () => {
  it('is what changes something, or what is only recorded', () => {
    for (const verb of Object.keys(eventNames)) expect([verb, isAction(verb)]).toEqual([verb, true]);
    for (const verb of `read list execute login logout reveal deploy undeploy connect disconnect export join leave
      view`.split(/\s+/))
      expect([verb, isAction(verb)]).toEqual([verb, true]);
  });

  it.each(['', 'created', 'toString', 'READ', 'write'])('is not %j', (text) => expect(isAction(text)).toBe(false));

  it('has an event in the past tense', () => {
    expect(eventNames).toEqual({
      create: 'created',
      update: 'updated',
      delete: 'deleted',
      destroy: 'destroyed',
      restore: 'restored',
      rotate: 'rotated',
      refresh: 'refreshed',
      revoke: 'revoked',
      toggle: 'toggled',
      upgrade: 'upgraded',
      relate: 'related',
      unrelate: 'unrelated',
      promote: 'promoted',
      apply: 'applied',
      import: 'imported',
      merge: 'merged',
    });
  });
});
