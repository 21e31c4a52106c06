import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cursors, Positions } from '../../src/data/cursors.ts';
import { emptyPage, pageOf } from '../../src/data/page.ts';

const cursors = new Cursors(Buffer.from('secret'));
const scope = { list: 'workspaces', filters: ['org_1', null] };
const refusal = (argument: string) =>
  expect.objectContaining({
    code: 'VALIDATION_ERROR',
    issues: [
      {
        path: [argument],
        type: 'value_error',
        msg: 'Value error, the cursor is malformed or was made for another list',
        ctx: { error: 'the cursor is malformed or was made for another list' },
      },
    ],
  });

describe('a cursor', () => {
  it('gives back its key', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), (key) => {
        fc.pre(!key.includes('\ud800'));
        expect(cursors.decode(scope, cursors.encode(scope, key))).toBe(key);
      }),
    );
  });

  it('is none where nothing is given', () => {
    for (const cursor of [null, undefined, '']) expect(cursors.decode(scope, cursor)).toBeNull();
  });

  it('is of one list, with one set of filters and one secret', () => {
    const cursor = cursors.encode(scope, 'ws_1');
    const others = [
      { ...scope, list: 'apps' },
      { ...scope, filters: [] },
      { ...scope, filters: ['org_2', null] },
      { ...scope, filters: ['org_1', 'null'] },
    ];
    for (const other of others) expect(() => cursors.decode(other, cursor)).toThrow(refusal('after'));
    expect(() => new Cursors(Buffer.from('other')).decode(scope, cursor)).toThrow(refusal('after'));
    expect(new Cursors(Buffer.from('secret')).decode(scope, cursor)).toBe('ws_1');
  });

  it('is refused when any of its characters is another', () => {
    const cursor = cursors.encode(scope, 'ws_1');
    for (let at = 0; at < cursor.length; at++) {
      const other = cursor[at] === 'A' ? 'B' : 'A';
      expect(() => cursors.decode(scope, `${cursor.slice(0, at)}${other}${cursor.slice(at + 1)}`)).toThrow(
        refusal('after'),
      );
    }
  });

  it.each([
    'x',
    'AAAA',
    Buffer.alloc(13).toString('base64url'),
    Buffer.alloc(14).toString('base64url'),
    'é',
    ' ',
    'A'.repeat(600),
  ])('is not %j', (text) => {
    expect(() => cursors.decode(scope, text, 'last')).toThrow(refusal('last'));
  });

  it('has one spelling', () => {
    const cursor = cursors.encode(scope, 'ws_1');
    for (const other of [`${cursor}=`, `${cursor} `, `${cursor}\n`, ` ${cursor}`])
      expect(() => cursors.decode(scope, other)).toThrow(refusal('after'));
  });

  it('has at most 512 characters', () => {
    const longest = cursors.encode(scope, 'k'.repeat(371));
    expect(longest).toHaveLength(512);
    expect(cursors.decode(scope, longest)).toBe('k'.repeat(371));
    const longer = cursors.encode(scope, 'k'.repeat(372));
    expect(() => cursors.decode(scope, longer)).toThrow(refusal('after'));
  });

  it('stays that of its row from one release to the next', () => {
    expect(cursors.encode(scope, 'ws_1')).toBe('d3NfMQB4BEN7WyyHUftTSV8');
  });

  it('is of some row, and has its mark after a NUL', () => {
    const bytes = Buffer.from(cursors.encode(scope, 'ws_1'), 'base64url');
    const other = Buffer.from(bytes).fill(1, 4, 5);
    expect(() => cursors.decode(scope, other.toString('base64url'))).toThrow(refusal('after'));
    expect(() => cursors.decode(scope, cursors.encode(scope, ''))).toThrow(refusal('after'));
  });
});

describe('a position', () => {
  const positions = new Positions(scope);

  it('gives back its key, with whatever is in it', () => {
    for (const key of ['ws_1', '2026-11-24 10:00:00+00 act_1', '', ' '])
      expect(new Positions({ ...scope }).keyAt(positions.of(key))).toBe(key);
  });

  it('is none where nothing is given', () => {
    for (const position of [null, undefined, '']) expect(positions.keyAt(position)).toBeNull();
  });

  it('is of one list, with one set of filters', () => {
    const others = [
      { ...scope, list: 'apps' },
      { ...scope, filters: [] },
      { ...scope, filters: ['org_2', null] },
      { list: 'workspaces', filters: ['org_1', { where: 't.id = any(?)', value: ['ws_1'] }] },
    ];
    for (const other of others)
      expect(() => new Positions(other).keyAt(positions.of('ws_1'))).toThrow(refusal('after'));
  });

  it('has no other form, such as the cursor that earlier releases had in its place', () => {
    const earlier = cursors.encode(scope, 'ws_1');
    for (const text of [earlier, 'ws_1', ' ws_1', `${positions.of('').trim()}ws_1`])
      expect(() => positions.keyAt(text)).toThrow(refusal('after'));
  });
});

describe('a page', () => {
  const rows = [
    { id: 'a', name: 'x' },
    { id: 'b', name: 'y' },
  ];

  const positions = new Positions(scope);

  it('is what was read, with a position for each row', async () => {
    const page = pageOf(positions, { rows, hasMore: true }, 'before', () => 7);
    expect(page).toMatchObject({ nodes: rows, hasNextPage: true, hasPreviousPage: true });
    expect(positions.keyAt(page.cursorOf(rows[1]!))).toBe('b');
    expect(await page.total()).toBe(7);
  });

  it('is the first one where it comes after nothing', () => {
    for (const after of [undefined, null, ''])
      expect(pageOf(positions, { rows, hasMore: false }, after, () => 0)).toMatchObject({
        hasNextPage: false,
        hasPreviousPage: false,
      });
  });

  it('may have another key than the id', () => {
    const page = pageOf(
      positions,
      { rows, hasMore: false },
      null,
      () => 0,
      ({ name }) => name,
    );
    expect(positions.keyAt(page.cursorOf(rows[0]!))).toBe('x');
  });

  it('of somebody else’s list is empty', () => {
    expect(emptyPage).toMatchObject({ nodes: [], hasNextPage: false, hasPreviousPage: false });
    expect([emptyPage.total(), emptyPage.cursorOf(undefined as never)]).toEqual([0, '']);
  });
});
