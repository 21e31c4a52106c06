import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';

interface LanguageDeps {
  sql: Sql;
  changes: Changes;
  /** The operator's setting. */
  language?: string | null | undefined;
}

/** Artifacts that are marked together. */
const BATCH = 200;
const DUE = 'from search_language_changes where not is_marked';
const NEXT = `select workspace_id as "workspaceId", changed_at::text as "changedAt" ${DUE} order by changed_at limit 1`;
const MARK = `update artifacts set index_version = 0 where id in (
  select a.id from namespaces n join artifacts a on a.namespace_id = n.id
  where n.workspace_id = $1 and a.id > $2 and a.is_latest and a.deleted_at is null and a.language is null
  order by a.id limit ${BATCH} for no key update of a) returning id`;
// unless the language changed again
const MARKED = `update search_language_changes set is_marked = true
  where workspace_id = $1 and changed_at = $2::timestamptz`;

/**
 * Marks the artifacts that say no language of their own as outdated, in workspaces whose language changed: they are
 * indexed again after that. An index that was made meanwhile, in the language of before, is marked as well.
 */
export async function markForLanguages({ sql }: LanguageDeps, signal: AbortSignal): Promise<void> {
  const next = async () => (await sql.read<{ workspaceId: string; changedAt: string }>(NEXT, []))[0];
  for (let change = await next(); change && !signal.aborted; change = await next()) {
    const { workspaceId, changedAt } = change;
    let after = '';
    await inBatches(BATCH, async () => {
      const marked = await sql.change<{ id: string }>(MARK, [workspaceId, after]);
      after = marked.reduce((last, { id }) => (id > last ? id : last), after);
      return marked.length;
    });
    await sql.write(MARKED, [workspaceId, changedAt]);
  }
}

/** The task that does so. */
export const languageTask = (deps: LanguageDeps): Task =>
  scheduled('search_languages', { everySeconds: 1, ifAny: `select 1 ${DUE}` }, async ({ signal }) =>
    markForLanguages(deps, signal),
  );

/** The task that brings the operator's setting to where statements find it, when it is another one than before. */
export function languageSettingTask({ changes, language = null }: LanguageDeps): Task {
  const name = 'search_language_setting';
  // one of a list: see `languages`
  const value = language === null ? 'null' : `'${language}'`;
  const ifAny = `select 1 where not exists (
    select 1 from search_settings where name = 'language' and value is not distinct from ${value})`;
  return scheduled(name, { everySeconds: 5, ifAny }, () =>
    changes.run(systemCaller(name), async (tx) => {
      const [before] = await tx.query<{ value: string | null }>(
        statement`select value from search_settings where name = 'language' for update`,
      );
      tx.write(statement`insert into search_settings (name, value) values ('language', ${language})
        on conflict (name) do update set value = excluded.value`);
      if ((before?.value ?? null) === language) return;
      tx.write(statement`insert into search_language_changes (workspace_id)
        select id from workspaces where language is null order by id on conflict (workspace_id)
        do update set changed_at = clock_timestamp(), is_marked = false`);
    }),
  );
}
