import { isDeepStrictEqual } from 'node:util';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { withSecrets } from './recipe-mapping.ts';
import { secretsNamedIn } from './secret-hider.ts';

type SecretNames = ReadonlyMap<string, string>;

/** Longest name of a part. */
const MAX_NAME = 255;
/** Most bytes of the texts of a part, and of all steps that change. */
const MAX_BYTES = 256 * 1024;
const MENTIONS = '%{{secret.%';

/** The parts of an app that have texts, with the column that is free-form. */
const parts = [
  { table: 'apps', kind: 'app', json: 'metadata' },
  { table: 'endpoints', kind: 'endpoint', json: 'metadata' },
  { table: 'actions', kind: 'action', json: 'input' },
  // the record of the change is that of the last part
  { table: 'augmentations', kind: 'augmentation', json: 'metadata' },
] as const;

interface TextPart {
  id: string;
  name: string;
  description: string | null;
  json: object;
}

const textsOf = ({ table, json }: (typeof parts)[number]) =>
  `select t.id, t.name, t.description, t.${json} as json from ${table} t
    where t.org_id = $1 and t.workspace_id = $2 and t.${table === 'apps' ? 'id' : 'app_id'} = $3
      and jsonb_build_array(t.name, t.description, t.${json})::text like '${MENTIONS}' order by t.id`;

interface TextStep {
  id: string;
  augmentationId: string;
  name: string;
  config: Record<string, unknown>;
}

const STEPS = `select p.id, t.id as "augmentationId", p.name, p.config
  from augmentations t join augmentation_stages g on g.augmentation_id = t.id
  join augmentation_steps p on p.stage_id = g.id
  where t.org_id = $1 and t.workspace_id = $2 and t.app_id = $3
    and jsonb_build_array(p.name, p.config)::text like '${MENTIONS}'`;

/**
 * Has all texts of an app name other secrets. The app and its augmentations are locked.
 * @returns the augmentations whose steps were changed: their versions are the caller's to raise
 * @throws InputError for a part that would be larger than it may be
 */
export async function renameSecrets(
  tx: Tx,
  { orgId, workspaceId, appId }: AppPlace,
  names: SecretNames,
): Promise<Set<string>> {
  const ofApp = statement`t.org_id = ${orgId} and t.workspace_id = ${workspaceId} and t.app_id = ${appId}`;
  for (const table of ['endpoints', 'actions'] as const) await tx.lockUnread(table, ofApp, 'no key update');
  for (const part of parts) {
    const rows = await tx.query<TextPart>({ text: textsOf(part), values: [orgId, workspaceId, appId] });
    for (const { id, ...before } of rows) {
      if (!mentions(before, names)) continue;
      const after = renamed(before, names);
      const fields = (['name', 'description', 'json'] as const).filter(
        (field) => !isDeepStrictEqual(before[field], after[field]),
      );
      const set = Object.fromEntries(fields.map((field) => [field === 'json' ? part.json : field, after[field]]));
      tx.update(part.table, { id }, set);
      recordChange(tx, 'update', part.kind, { id, orgId, workspaceId, appId }, { fields: Object.keys(set) });
    }
  }
  const steps = await tx.query<TextStep>({ text: STEPS, values: [orgId, workspaceId, appId] });
  const changed = steps.filter((step) => mentions(step, names));
  const after = changed.map(({ id, name, config }) => ({ id, ...renamed({ name, config }, names) }));
  demandSize('steps', after);
  tx.write(statement`update augmentation_steps p set name = r.name, config = r.config
    from jsonb_to_recordset(${JSON.stringify(after)}::jsonb) r(id text, name text, config jsonb) where p.id = r.id`);
  return new Set(changed.map(({ augmentationId }) => augmentationId));
}

const mentions = (value: object, names: SecretNames): boolean =>
  [...secretsNamedIn(value)].some((name) => names.has(name));

function renamed<Part extends { name: string }>(part: Part, names: SecretNames): Part {
  const after = withSecrets(part, names);
  if ([...after.name].length > MAX_NAME)
    throw invalidInput(['input'], `the name '${part.name}' would have more than ${MAX_NAME} characters`);
  demandSize(`part '${part.name}'`, after);
  return after;
}

function demandSize(what: string, value: object): void {
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES)
    throw invalidInput(['input'], `the ${what} would have more than ${MAX_BYTES} bytes`);
}
