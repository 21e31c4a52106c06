import { describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { DEFAULT_NAMESPACE, placeOf, placeOfArgs, placeOfRow } from '../../src/kernel/place.ts';
import { isResourceWord, placeKinds, placesOf, resourceWords } from '../../src/kernel/resources.ts';
import { asRole, atLeast, higherRole, type Role, roles } from '../../src/kernel/roles.ts';

describe('roles', () => {
  it('rise from viewer to owner', () => {
    expect(roles).toEqual(['viewer', 'member', 'editor', 'admin', 'owner']);
    for (const [high, role] of roles.entries())
      for (const [low, least] of roles.entries()) {
        expect([role, least, atLeast(role, least)]).toEqual([role, least, high >= low]);
        expect(higherRole(role, least)).toBe(roles[Math.max(high, low)]);
      }
  });

  it('are higher than none', () => {
    expect(higherRole(null, 'viewer')).toBe('viewer');
    expect(higherRole('admin', null)).toBe('admin');
    expect(higherRole(null, null)).toBeNull();
  });

  it('are read from the database, which has no other', () => {
    for (const role of roles) expect(asRole(role)).toBe<Role>(role);
    for (const text of ['', 'Owner', 'root', 'toString']) expect(() => asRole(text)).toThrow(`'${text}' is no role.`);
  });
});

describe('the place of a resource', () => {
  const none = { namespaceId: undefined, environmentId: undefined, appId: undefined };

  it('is what it names', () => {
    const named = { namespaceId: 'ns', environmentId: 'env', appId: 'app' };
    expect(placeOf({ id: 'x', ...named }, 'thread')).toEqual(named);
    expect(placeOf({ id: 'x', ...named }, undefined)).toEqual(named);
    expect(placeOf({ id: 'x', ...named }, 'namespace')).toEqual(named);
  });

  it('is the resource itself where it is a place', () => {
    expect(placeOf({ id: 'x' }, 'namespace')).toEqual({ ...none, namespaceId: 'x' });
    expect(placeOf({ id: 'x', namespaceId: null }, 'namespace')).toEqual({ ...none, namespaceId: 'x' });
    expect(placeOf({ id: 'x' }, 'environment')).toEqual({ ...none, environmentId: 'x' });
    expect(placeOf({ id: 'x' }, 'app')).toEqual({ ...none, appId: 'x' });
    expect(placeOf({ id: 'x' }, 'workspace')).toEqual(none);
    expect(placeOf({ id: 'x' }, null)).toEqual(none);
  });

  it('of a row follows from the prefix of its id', () => {
    const [namespaceId, environmentId, appId] = [newId('namespace'), newId('environment'), newId('app')];
    expect(placeOfRow({ id: namespaceId })).toEqual({ ...none, namespaceId });
    expect(placeOfRow({ id: environmentId })).toEqual({ ...none, environmentId });
    expect(placeOfRow({ id: appId })).toEqual({ ...none, appId });
    expect(placeOfRow({ id: newId('thread'), namespaceId })).toEqual({ ...none, namespaceId });
    for (const id of [undefined, null, '']) expect(placeOfRow({ id })).toEqual(none);
  });

  it('of arguments follows from the operation, because callers write ids', () => {
    const forged = newId('namespace');
    expect(placeOfArgs({ id: forged }, 'thread')).toEqual(none);
    expect(placeOfArgs({ id: forged }, undefined)).toEqual(none);
    expect(DEFAULT_NAMESPACE).toBe('default');
    expect(placeOfArgs({ id: 'default' }, 'namespace')).toEqual({ ...none, namespaceId: 'default' });
  });
});

describe('the kinds of places that a resource is in', () => {
  it.each([
    ['organization', ['organization']],
    ['workspace', ['workspace']],
    ['thread', ['namespace']],
    ['deployment', ['environment', 'app']],
    ['entity', ['namespace', 'app']],
    ['secret', []],
    ['session', null],
    ['user', null],
    ['nothing', null],
    ['toString', null],
  ])('%s: %j', (word, places) => expect(placesOf(word)).toEqual(places));

  it('are kinds that there are, for all resources', () => {
    expect(placeKinds).toEqual(['organization', 'workspace', 'namespace', 'environment', 'app']);
    for (const word of resourceWords) for (const kind of placesOf(word) ?? []) expect(placeKinds).toContain(kind);
  });

  it('are asked of resource words only', () => {
    expect(isResourceWord('secret')).toBe(true);
    for (const text of ['', 'secrets', 'constructor']) expect(isResourceWord(text)).toBe(false);
  });
});
