import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type AuditStream as AuditStreamRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import {
  conflict,
  forbidden,
  InputError,
  type InputIssue,
  invalidInput,
  notFound,
  valueIssue,
} from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import type { Resolution, Vault } from '../../vault/secrets/vault.ts';
import { refuseApplications } from '../sending/refuse-applications.ts';
import { demandAllActivity } from './audit-caller.ts';
import { actionProblem, KEPT_SINCE, MAX_STREAMS, resourceProblem, type TargetType } from './audit-stream.words.ts';
import { putBack } from './put-back.ts';

const OF_READING = ['positionId', 'positionAt', 'begunSnapshot', 'begunXid', 'lastSequence', 'batchBytes'] as const;

/** A stream as everybody sees it who may read it. */
export type AuditStream = Omit<AuditStreamRow, (typeof OF_READING)[number]>;

interface StreamFields {
  description?: string | null;
  bucket?: string | null;
  region?: string | null;
  prefix?: string | null;
  credentialsRef?: string | null;
  isCompressed?: boolean | null;
  actions?: readonly string[] | null;
  resourceTypes?: readonly string[] | null;
  success?: boolean | null;
  isEnabled?: boolean | null;
}

export interface NewAuditStream extends StreamFields {
  name: string;
  targetType: string;
  url: string;
}

export interface ChangedAuditStream extends StreamFields {
  name?: string | null;
  url?: string | null;
}

/** Where a stream sends, and with which secret. */
type Destination = Pick<AuditStreamRow, 'targetType' | 'url' | 'bucket' | 'region' | 'prefix' | 'credentialsRef'>;

const streams = {
  kind: 'audit_stream',
  from: 'audit_streams',
  columns: columnsOf(
    Object.values(Prisma.AuditStreamScalarFieldEnum).filter((name) => !OF_READING.some((hidden) => hidden === name)),
  ),
  below: ['orgId'],
} as const;

export interface AuditStreamDeps extends ServiceDeps {
  vault: Vault;
  secretReads: SecretReads;
  outbound: Pick<Outbound, 'refusalOf'>;
  /** Called when something may have become due. */
  wake: () => void;
}

/**
 * Audit streams of an organization: where its activity records are sent. A stream acts for the user who decided last
 * what goes where, and sends while this user may read all activity.
 */
export class AuditStreamService {
  readonly secretReferences = [
    { resource: 'audit_stream', table: 'audit_streams', column: 'credentials_ref' },
  ] as const;
  readonly reads: Reads<AuditStream, OrganizationPlace>;
  readonly #deps: AuditStreamDeps;

  constructor(deps: AuditStreamDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, streams);
  }

  /**
   * @throws InputError for a URL that is not called, fields of another target, words that do not come and a secret that
   * is not there; FORBIDDEN `activity:read`, `secret:reveal` or `granted_application`; RESOURCE_CONFLICT
   * `limit_reached`
   */
  async create(caller: Caller, { orgId }: Checked<OrganizationPlace>, input: NewAuditStream): Promise<AuditStream> {
    refuseApplications(caller, 'audit_stream:create');
    const { targetType } = input;
    const destination = after({ ...NOWHERE, targetType }, input);
    this.#demandInput(destination, input);
    const shown = await this.#demandRights(caller, orgId, destination.credentialsRef);
    const stream = await this.#deps.changes.run(caller, async (tx) => {
      await demandRoom(tx, orgId);
      await this.#demandSecret(tx, orgId, destination.credentialsRef, shown);
      const id = newId('audit_stream');
      const row = await tx.written(
        tx.create('audit_streams', {
          id,
          orgId,
          ...destination,
          name: input.name,
          description: input.description ?? null,
          isCompressed: targetType === 's3' || (input.isCompressed ?? false),
          actions: [...(input.actions ?? [])],
          resourceTypes: [...(input.resourceTypes ?? [])],
          success: input.success ?? null,
          isEnabled: input.isEnabled ?? true,
          actsFor: caller.principal.userId,
          createdBy: caller.principal.userId,
        }),
      );
      recordChange(tx, 'create', 'audit_stream', { id, orgId });
      return row;
    });
    this.#deps.wake();
    return stream;
  }

  /**
   * Changes the given fields; omitted ones stay. Who changes more than the name, the description or that it is
   * disabled, is whom it acts for from then on. What was not delivered yet is sent as the stream is then.
   * @throws RESOURCE_NOT_FOUND, and as {@link create}
   */
  async update(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    input: ChangedAuditStream,
  ): Promise<AuditStream> {
    const { orgId } = place;
    const isSteered = STEERS.some((field) => input[field] !== undefined) || input.isEnabled === true;
    if (isSteered) refuseApplications(caller, 'audit_stream:update');
    const before = await this.reads.get(noCache, place, id);
    this.#demandInput(after(before, input), input);
    const shown = isSteered ? await this.#demandRights(caller, orgId, after(before, input).credentialsRef) : null;
    const stream = await this.#deps.changes.run(caller, async (tx) => {
      const held = await tx.lock('audit_streams', { id, orgId }, 'no key update', () => notFound('audit_stream', id));
      await tx.expectVersion({ table: 'audit_streams', key: { id, orgId } });
      if (isSteered) {
        await this.#demandSecret(tx, orgId, after(held, input).credentialsRef, shown);
        await tx.query(putBack(id));
        if (input.isEnabled === true && !held.isEnabled) await tx.query(goneSince(id));
      }
      recordChange(tx, 'update', 'audit_stream', { id, orgId }, { fields: Object.keys(input) });
      return tx.change('audit_streams', { id, orgId }, setOf(input, held, isSteered ? caller : null), () =>
        notFound('audit_stream', id),
      );
    });
    this.#deps.wake();
    return stream;
  }

  /** Deletes it with its log. What is under way may still arrive. @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return deleteRow(this.#deps, caller, streams, { id, ...place });
  }

  /** @throws InputError */
  #demandInput(destination: Destination, input: ChangedAuditStream): void {
    const refusal = input.url ? this.#deps.outbound.refusalOf(input.url) : null;
    const problems = (field: 'actions' | 'resourceTypes', problemOf: (word: string) => string | null) =>
      (input[field] ?? []).flatMap((word, index) => {
        const problem = problemOf(word);
        return problem ? [valueIssue(['input', field, index], problem)] : [];
      });
    const issues = [
      ...(refusal ? [valueIssue(['input', 'url'], refusal.message)] : []),
      ...issuesOf(destination, input),
      ...problems('actions', actionProblem),
      ...problems('resourceTypes', resourceProblem),
    ];
    if (issues.length > 0) throw new InputError(issues);
  }

  /**
   * A user who decides where records and secrets go could read them there.
   * @returns the secret that would be sent, if any
   * @throws FORBIDDEN with the permission to read it
   */
  async #demandRights(caller: Caller, orgId: string, reference: string | null): Promise<string | null> {
    const { access, sql, vault, secretReads } = this.#deps;
    await demandAllActivity(access, caller, orgId);
    if (reference === null) return null;
    const found = await vault.resolve(sql, orgId, reference);
    if (found.kind !== 'secret') throw invalidInput(SECRET, found.kind === 'missing' ? found.why : NOT_A_SECRET);
    const secret = await secretReads.all.findInTenant(noCache, orgId, found.id);
    if (!secret) throw notFound('secret', found.id);
    await secretReads.demand(caller, secret, 'secret:reveal');
    return secret.id;
  }

  /** Between the check and the change, the reference may have come to mean another secret. */
  async #demandSecret(tx: Tx, orgId: string, reference: string | null, shown: string | null): Promise<void> {
    if (reference === null) return;
    const found: Resolution = await this.#deps.vault.demandReference(tx, orgId, reference, SECRET);
    if (found.kind !== 'secret' || found.id !== shown)
      throw forbidden('secret:reveal', 'The stream would send a secret whose value you may not see.');
  }
}

const SECRET = ['input', 'credentialsRef'];
const NOT_A_SECRET = "name a secret of the vault: 'sec_…', or 'secret://name'";
/** Fields of which each decides what goes where. */
const STEERS = [
  'url',
  'bucket',
  'region',
  'prefix',
  'credentialsRef',
  'isCompressed',
  'actions',
  'resourceTypes',
  'success',
] as const;
const ADDRESS = ['url', 'bucket', 'region'] as const;
const OF_STORE = ['bucket', 'region', 'prefix'] as const;

/** How the names of buckets end that want a session before anything is stored. */
const OF_DIRECTORY = '--x-s3';

const NOWHERE = { url: '', bucket: null, region: null, prefix: null, credentialsRef: null };

const kept = (given: string | null | undefined, before: string | null): string | null =>
  given === undefined ? before : given;

const after = (stream: Destination, input: ChangedAuditStream): Destination => ({
  targetType: stream.targetType,
  url: input.url ?? stream.url,
  bucket: kept(input.bucket, stream.bucket),
  region: kept(input.region, stream.region),
  prefix: kept(input.prefix, stream.prefix),
  credentialsRef: kept(input.credentialsRef, stream.credentialsRef),
});

/** What a destination lacks, and what it has that is not for its target. */
function issuesOf(destination: Destination, input: ChangedAuditStream): InputIssue[] {
  const type = destination.targetType as TargetType;
  const issue = (field: string, problem: string) => valueIssue(['input', field], problem);
  const issues: InputIssue[] = [];
  if (type !== 'http' && destination.credentialsRef === null)
    issues.push(issue('credentialsRef', `a stream to ${type} needs a secret`));
  if (type === 's3') {
    if (destination.bucket === null) issues.push(issue('bucket', 'a stream to s3 needs a bucket'));
    if (input.bucket?.endsWith(OF_DIRECTORY)) issues.push(issue('bucket', 'directory buckets are not supported'));
    if (input.isCompressed === false) issues.push(issue('isCompressed', 'files in s3 are always compressed'));
    if (input.url && !isOrigin(input.url)) issues.push(issue('url', 'a store has an address without path and query'));
  } else {
    for (const field of OF_STORE) if (destination[field] !== null) issues.push(issue(field, 'this is for s3 only'));
  }
  return issues;
}

/** Whether an address is nothing but a host. One that is none is refused with its reason. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return true;
  const { pathname, search, hash } = new URL(text);
  return pathname === '/' && search === '' && hash === '';
}

const setOf = (input: ChangedAuditStream, held: Destination, decider: Caller | null): Columns<'audit_streams'> => ({
  name: input.name ?? undefined,
  description: input.description,
  url: input.url ?? undefined,
  bucket: input.bucket,
  region: input.region,
  prefix: input.prefix,
  credentialsRef: input.credentialsRef,
  isCompressed: input.isCompressed ?? undefined,
  actions: input.actions ? [...input.actions] : undefined,
  resourceTypes: input.resourceTypes ? [...input.resourceTypes] : undefined,
  success: input.success,
  ...(decider && { actsFor: decider.principal.userId, batchBytes: null }),
  // what failed there says nothing of where it sends from now on
  ...(ADDRESS.some((field) => after(held, input)[field] !== held[field]) && { failingSince: null }),
  ...(typeof input.isEnabled === 'boolean' && {
    isEnabled: input.isEnabled,
    disabledReason: null,
    failingSince: null,
  }),
});

/** A stream that was disabled for months says which records may be gone. */
const goneSince = (id: string) => ({
  text: `update audit_streams set gone_before = ${KEPT_SINCE} where id = $1 and position_at < ${KEPT_SINCE}`,
  values: [id],
});

/** Streams of one organization are added one after the other. @throws RESOURCE_CONFLICT */
async function demandRoom(tx: Tx, orgId: string): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`audit streams of ${orgId}`}, 0))`);
  const [found] = await tx.query<{ count: number }>(
    statement`select count(*)::int as count from audit_streams where org_id = ${orgId}`,
  );
  if (found!.count < MAX_STREAMS) return;
  throw conflict('organization', orgId, 'limit_reached', `There are at most ${MAX_STREAMS} audit streams here.`, {
    limit: MAX_STREAMS,
  });
}
