import type { QueryRunner } from '../../data/find-row.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';
import { modelsOf } from '../../models/views.ts';
import { instancesOf, visibleTools } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import { uniqueKeys } from '../augmentations/step-keys.ts';
import { stepName } from './recipe-references.ts';
import type { MissingPart } from './recipe-surroundings.ts';
import { SECRET } from './recipe-uses.ts';

/** What an app lacks. */
export interface MissingParts {
  missing: MissingPart[];
  total: number;
}

/** Most missing things that an answer lists, and most users of each. */
export const limits = { missing: 1_000, users: 100 } as const;

interface FoundPart {
  kind: MissingPart['kind'];
  name: string | null;
  total: number;
  users: { part: string; id: string; key: string | null }[];
}

const OF_APP = 't.org_id = $1 and t.workspace_id = $2 and t.app_id = $3';
const STEPS = `select t.id, p.key, p.name, p.config, p.tool_slug, p.tool_instance_id, p.logical_model_id
  from augmentations t join augmentation_stages g on g.augmentation_id = t.id
  join augmentation_steps p on p.stage_id = g.id where ${OF_APP}`;
const mention = (part: string, free: string) =>
  `select '${part}' as part, t.id, null as key, jsonb_build_array(t.name, t.description, t.${free}) as json
    from ${part}s t where ${OF_APP}`;

/**
 * Steps without their tool instance, models that the organization does not have, and secrets that no text of the app
 * can name: the same for all who may read the app. Secrets are those that apps of the workspace can name.
 */
const FIND = `with steps as (${STEPS}),
  texts as (
    select 'app' as part, a.id, null as key, jsonb_build_array(a.name, a.description, a.metadata) as json
      from apps a where a.org_id = $1 and a.workspace_id = $2 and a.id = $3
    union all ${mention('augmentation', 'metadata')}
    union all select 'step', s.id, s.key, jsonb_build_array(s.name, s.config) from steps s
    union all ${mention('endpoint', 'metadata')}
    union all ${mention('action', 'input')}),
  uses as (
    select case when s.tool_slug is null or exists (select 1 from (${visibleTools('$1')}) v where v.slug = s.tool_slug)
        then 'tool_instance' else 'tool' end as kind, s.tool_slug as name, 'step' as part, s.id, s.key
      from steps s where (s.tool_slug is not null or s.tool_instance_id is not null)
        and not exists (select 1 from (${instancesOf('$1', '$2')}) i where i.id = s.tool_instance_id)
    union all
    select 'model', s.logical_model_id, 'step', s.id, s.key from steps s where s.logical_model_id is not null
      and not exists (select 1 from (${modelsOf('$1')}) m where m.id = s.logical_model_id)
    union
    select 'secret', found[1], x.part, x.id, x.key from texts x,
      jsonb_path_query(x.json, '$.** ? (@.type() == "string")') w,
      regexp_matches(w #>> '{}', '${SECRET.source}', 'g') found
    where x.json::text like '%{{secret.%' and not exists
      (select 1 from (${nameableSecrets('$1', '$2', 'true', 'true')}) n
        where n.name = found[1] and n.status = 'active'))
  select u.kind, u.name, count(*) over ()::int as total,
    (select coalesce(json_agg(json_build_object('part', l.part, 'id', l.id, 'key', l.key)), '[]')
      from (select o.part, o.id, o.key from uses o where o.kind = u.kind and o.name is not distinct from u.name
        order by o.part, o.id, o.key limit ${limits.users}) l) as users
  from (select distinct kind, name from uses) u
  order by array_position(array['tool', 'tool_instance', 'model', 'secret'], u.kind), u.name limit ${limits.missing}`;

const PARTS = ['augmentation', 'endpoint', 'action'] as const;
type NamedKind = (typeof PARTS)[number];

const NAMES = `select ${PARTS.map(
  (part) => `(select coalesce(json_agg(json_build_object('id', t.id, 'name', t.name) order by t.id), '[]')
    from ${part}s t where ${OF_APP}) as "${part}"`,
).join(',\n  ')}`;

/** What an app lacks now. Its parts have the local names that an export of the app gives them. */
export async function missingPartsOf(sql: QueryRunner, { orgId, workspaceId, appId }: AppPlace): Promise<MissingParts> {
  const values = [orgId, workspaceId, appId];
  const found = await sql.query<FoundPart>({ text: FIND, values });
  if (found.length === 0) return { missing: [], total: 0 };
  const [names] = await sql.query<Record<NamedKind, { id: string; name: string }[]>>({ text: NAMES, values });
  const keys = new Map(
    PARTS.flatMap((part) => {
      const made = uniqueKeys(names![part], part);
      return names![part].map(({ id }, at) => [id, made[at]!] as const);
    }),
  );
  const localName = ({ part, id, key }: FoundPart['users'][number]): string => {
    if (part === 'app') return part;
    return key !== null ? stepName(keys.get(id), key) : `${part}.${keys.get(id)}`;
  };
  return {
    missing: found.map(({ kind, name, users }) => ({ kind, name, usedBy: users.map(localName) })),
    total: found[0]!.total,
  };
}
