import { expect, it } from 'vitest';
import { summaryOf } from '../../../src/platform/postgres/statement-span.ts';

it.each([
  ['select * from apps a where a.id = $1', 'select apps'],
  ['SELECT "public"."users"."id" FROM "public"."users" WHERE 1=1', 'select users'],
  [
    'with p0 as (update secrets set name = $1 returning id), p1 as (insert into activity (id) values ($2)) select',
    'update secrets, insert into activity',
  ],
  ['insert into locks (id) values ($1) on conflict (id) do update set n = 1', 'insert into locks'],
  ['select id from apps where id = $1 for update', 'select apps'],
  ['delete from ONLY events', 'delete from events'],
  ['commit', 'commit'],
  ['select 1', 'select'],
  ['', 'statement'],
])('a statement is called by what it does: %s', (text, summary) => {
  expect(summaryOf(text)).toBe(summary);
});
