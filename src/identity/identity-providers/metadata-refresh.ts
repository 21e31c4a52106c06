import type { Changes } from '../../data/changes.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { ApiError } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import { ownersOf } from '../../tenancy/organizations/people-in-charge.ts';
import { isLiveOrganization } from '../../tenancy/views.ts';
import type { SamlMetadata } from '../sso/saml/metadata-check.ts';
import type { MetadataSource } from '../sso/saml/metadata-source.ts';
import { nextTry } from '../sso/saml/metadata-times.ts';
import { SsoRefusal } from '../sso/sso-refusal.ts';
import { columnsOfMetadata, fingerprintsOf } from './saml-metadata.ts';

/** How many are read at once. */
const AT_ONCE = 4;
/** Nobody waits for what is read on its own, but the providers of others do. */
const TIMEOUT_MS = 4_000;
const NAME = 'saml_metadata';

interface Due {
  id: string;
  orgId: string;
  url: string;
  signers: string | null;
}

/** What came of a look: metadata, or why there is none. `fault`: an error of the service itself. */
type MetadataLook = { read: SamlMetadata } | { error: string; fault?: unknown };
/** What came of one that was due. `isBusy`: nothing, for now. */
interface Refreshed {
  fault?: unknown;
  isBusy?: boolean;
}

// organizations take turns: one with many addresses that are slow keeps no other waiting for all of them
const DUE = `select o.id, o.org_id as "orgId", o.saml_metadata_url as url, o.saml_metadata_certificate as signers
  from (select distinct on (p.org_id) p.* from identity_providers p
    where p.saml_metadata_refresh_at <= now() and p.is_active and ${isLiveOrganization('p.org_id')}
    order by p.org_id, p.saml_metadata_refresh_at) o
  order by o.saml_metadata_refresh_at limit ${AT_ONCE}`;

/** What metadata decides, without the name of the provider, which it never changes. */
const DECIDED = { samlSsoUrl: 'ssoUrl', samlSloUrl: 'sloUrl', samlCertificate: 'certificate' } as const;
const columns = Object.keys(DECIDED) as (keyof typeof DECIDED)[];

/**
 * Reads the metadata of SAML providers again when it is time, on one node. What it says of addresses and certificates
 * is taken; another entity id never is. While it cannot be read, what was read before stays (docs/decisions/0079).
 */
export class MetadataRefresh {
  readonly tasks: readonly Task[];
  readonly #deps: { sql: Sql; changes: Changes; source: MetadataSource };

  constructor(deps: { sql: Sql; changes: Changes; source: MetadataSource }) {
    this.#deps = deps;
    this.tasks = [
      scheduled(NAME, { everySeconds: 60, ifAny: DUE }, async ({ signal }) => {
        while (!signal.aborted && (await this.refresh()) > 0);
      }),
    ];
  }

  /**
   * Reads some that are due, of an organization one at most.
   * @returns how many: those for which there was no room stay due
   * @throws the first fault of the service, after all were looked at
   */
  async refresh(): Promise<number> {
    const due = await this.#deps.sql.read<Due>(DUE, []);
    const ends = await Promise.allSettled(due.map((one) => this.#refreshOne(one)));
    const done = ends.map((end): Refreshed => (end.status === 'fulfilled' ? end.value : { fault: end.reason }));
    const failed = done.find(({ fault }) => fault !== undefined);
    if (failed) throw new Error('The metadata of a provider could not be read.', { cause: failed.fault });
    return done.filter(({ isBusy }) => !isBusy).length;
  }

  async #refreshOne(due: Due): Promise<Refreshed> {
    const look = await this.#lookAt(due);
    if (look === null) return { isBusy: true };
    try {
      await this.#keep(due, look);
      return 'fault' in look ? { fault: look.fault } : {};
    } catch (fault) {
      // what cannot be kept waits like what cannot be read: else it would be due for ever, before all others
      await this.#keep(due, { error: 'the service could not keep it' });
      return { fault };
    }
  }

  #keep(due: Due, look: MetadataLook): Promise<void> {
    return this.#deps.changes.run(systemCaller(NAME), (tx) => keep(tx, due, look));
  }

  /** @returns `null` while the service has no room for it */
  async #lookAt(due: Due): Promise<MetadataLook | null> {
    try {
      return { read: await this.#deps.source.read({ ...due, timeoutMs: TIMEOUT_MS }) };
    } catch (error) {
      if (error instanceof ApiError && error.code === 'SERVICE_UNAVAILABLE') return null;
      if (error instanceof SsoRefusal || error instanceof OutboundError) return { error: error.message };
      // it waits like the others, so that it keeps nobody else waiting
      return { error: 'the service could not read it', fault: error };
    }
  }
}

/** Keeps what came of a look, unless somebody has changed meanwhile where to look. */
async function keep(tx: Tx, { id, orgId, url, signers }: Due, look: MetadataLook): Promise<void> {
  const before = await tx.lock('identity_providers', { id, orgId, samlMetadataUrl: url }, 'no key update');
  if (!before || before.samlMetadataCertificate !== signers) return;
  const found = 'read' in look ? refusedName(before, look.read) : look.error;
  if (found !== null || !('read' in look)) {
    const samlMetadataFailures = before.samlMetadataFailures + 1;
    const samlMetadataRefreshAt = nextTry(samlMetadataFailures, new Date());
    tx.update('identity_providers', { id }, { samlMetadataError: found, samlMetadataFailures, samlMetadataRefreshAt });
    return;
  }
  const set = columnsOfMetadata(look.read, new Date());
  tx.update('identity_providers', { id }, set);
  const changed = columns.filter((name) => set[name] !== before[name]).map((name) => DECIDED[name]);
  if (changed.length > 0) await tell(tx, before, set, changed);
}

/** Why metadata is not of this provider; `null` if it is. Whoever is meant by another name is another provider. */
const refusedName = ({ samlEntityId }: ProviderRow, { entityId }: SamlMetadata): string | null =>
  entityId === samlEntityId
    ? null
    : `the metadata is of another entity id, '${entityId}': set the address again if that is right`;

/** Records what has changed, and tells the owners. */
async function tell(
  tx: Tx,
  before: ProviderRow,
  after: Columns<'identity_providers'>,
  changed: readonly string[],
): Promise<void> {
  const { id, orgId, name } = before;
  const [had, has] = [fingerprintsOf(before.samlCertificate), fingerprintsOf(after.samlCertificate ?? null)];
  const certificates = {
    certificates_added: has.filter((one) => !had.includes(one)),
    certificates_removed: had.filter((one) => !has.includes(one)),
  };
  recordChange(tx, 'update', 'identity_provider', { id, orgId }, { fields: ['samlConfig'], changed, ...certificates });
  tx.announce({
    type: 'identity_provider.metadata_changed',
    orgId,
    resourceType: 'identity_provider',
    resourceId: id,
    facts: {
      userIds: await ownersOf(tx, orgId),
      name,
      reason: changed.includes('certificate') ? 'certificates' : 'addresses',
    },
  });
}
