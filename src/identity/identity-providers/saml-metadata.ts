import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { ApiError, conflict, type InputIssue, invalidInput, valueIssue } from '../../kernel/errors.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { SamlMetadata } from '../sso/saml/metadata-check.ts';
import type { MetadataSource } from '../sso/saml/metadata-source.ts';
import { nextRead } from '../sso/saml/metadata-times.ts';
import { SsoRefusal } from '../sso/sso-refusal.ts';
import { certificateBlocks, endOfCertificates, readCertificates } from './certificates.ts';
import { EMAIL_NAME_ID, endOf, type ProviderConfig, type SamlConfig } from './provider-config.ts';
import { addressFault } from './secure-address.ts';

type ProviderColumns = Columns<'identity_providers'>;

const AT = ['input', 'samlMetadata'];

/** Providers of an organization whose metadata is read: each costs calls for ever. */
const MOST = 20;

/** What a configuration is while none is read. */
const NO_METADATA = {
  samlMetadataUrl: null,
  samlMetadataCertificate: null,
  samlMetadataFetchedAt: null,
  samlMetadataError: null,
  samlMetadataFailures: 0,
  samlMetadataRefreshAt: null,
} as const satisfies ProviderColumns;

/** What metadata says of a provider, and when it was read. */
export const columnsOfMetadata = (read: SamlMetadata, now: Date) =>
  ({
    samlEntityId: read.entityId,
    samlSsoUrl: read.ssoUrl,
    samlSloUrl: read.sloUrl,
    samlCertificate: read.certificates.join('\n'),
    certificateEndsAt: endOfCertificates(read.certificates.flatMap(readCertificates)),
    samlMetadataFetchedAt: now,
    samlMetadataError: null,
    samlMetadataFailures: 0,
    samlMetadataRefreshAt: nextRead(read, now),
  }) satisfies ProviderColumns;

/**
 * Reads the metadata that an input names; `null` if it names none.
 * @param mayRead fails when the organization has had metadata read too often
 * @throws InputError for an address that is not secure, a certificate that is none, a document that is not the metadata
 * of one provider; UPSTREAM_ERROR, UPSTREAM_TIMEOUT without an answer; SERVICE_UNAVAILABLE, RATE_LIMIT_EXCEEDED
 */
export async function readInput(
  { source, mayRead }: { source: MetadataSource; mayRead: () => Promise<void> },
  orgId: string,
  { samlMetadata: input, samlConfig }: ProviderConfig,
): Promise<SamlMetadata | null> {
  if (!input) return null;
  if (samlConfig) throw invalidInput(AT, 'give either this or `samlConfig`: it takes the place of it');
  const fault = addressFault(input.url);
  if (fault !== null) throw invalidInput([...AT, 'url'], fault);
  const signers = input.certificate ?? null;
  if (signers !== null) endOf(signers, [...AT, 'certificate']);
  await mayRead();
  try {
    return await source.read({ orgId, url: input.url, signers });
  } catch (error) {
    throw answerTo(error);
  }
}

/**
 * Demands room for one more provider whose metadata is read. Those of an organization are added one after the other.
 * @throws RESOURCE_CONFLICT `limit_reached`
 */
export async function demandRoom(tx: Tx, orgId: string): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`metadata of ${orgId}`}, 0))`);
  const [found] = await tx.query<{ count: number }>(
    statement`select count(*)::int as count from identity_providers
      where org_id = ${orgId} and saml_metadata_url is not null`,
  );
  if (found!.count < MOST) return;
  const message = `The metadata of at most ${MOST} providers is read in an organization.`;
  throw conflict('organization', orgId, 'limit_reached', message, { limit: MOST });
}

function answerTo(error: unknown): unknown {
  if (error instanceof SsoRefusal) return invalidInput([...AT, 'url'], `it cannot be used: ${error.message}`);
  if (!(error instanceof OutboundError)) return error;
  if (error.isRefusal) return invalidInput([...AT, 'url'], error.message);
  const upstream = { upstream: 'SAML metadata' };
  return error.code === 'timeout'
    ? new ApiError('UPSTREAM_TIMEOUT', upstream, 'The address of the metadata did not answer in time.')
    : new ApiError('UPSTREAM_ERROR', upstream, `The metadata could not be read. ${error.message}`);
}

/**
 * The columns of where a configuration is read, and of what was read there. Without a configuration there is nothing
 * to read it for.
 * @param read of the same input
 */
export function columnsOfSource(
  { samlMetadata, samlConfig }: ProviderConfig,
  read: SamlMetadata | null,
  before: Pick<ProviderRow, 'samlNameIdFormat' | 'samlSignAuthnRequests'> | null,
): ProviderColumns {
  if (read === null || !samlMetadata)
    return samlMetadata === null || (samlConfig === null && samlMetadata === undefined) ? NO_METADATA : {};
  return {
    samlMetadataUrl: samlMetadata.url,
    samlMetadataCertificate: samlMetadata.certificate ?? null,
    samlNameIdFormat: before?.samlNameIdFormat ?? EMAIL_NAME_ID,
    samlSignAuthnRequests: read.wantsSignedRequests || (before?.samlSignAuthnRequests ?? false),
    ...columnsOfMetadata(read, new Date()),
  };
}

/** What is written by hand although it is read: it would be overwritten by the next look. */
export function overwritten(
  { samlMetadata, samlConfig }: ProviderConfig,
  before: Pick<ProviderRow, 'samlMetadataUrl' | 'samlEntityId' | 'samlSsoUrl' | 'samlSloUrl' | 'samlCertificate'>,
): InputIssue[] {
  if (!samlConfig || samlMetadata === null || before.samlMetadataUrl === null) return [];
  const read: Pick<SamlConfig, 'entityId' | 'ssoUrl' | 'sloUrl' | 'certificate'> = {
    entityId: before.samlEntityId ?? '',
    ssoUrl: before.samlSsoUrl ?? '',
    sloUrl: before.samlSloUrl,
    certificate: before.samlCertificate ?? '',
  };
  return (['entityId', 'ssoUrl', 'sloUrl', 'certificate'] as const).flatMap((name) =>
    (samlConfig[name] ?? null) === read[name]
      ? []
      : [valueIssue(['input', 'samlConfig', name], 'it is read from the metadata: set `samlMetadata` to null first')],
  );
}

/** The SHA-256 of the certificates of a text, as administrators compare them. */
export const fingerprintsOf = (certificates: string | null): string[] =>
  certificateBlocks(certificates ?? '').flatMap((block) =>
    readCertificates(block).map(({ fingerprint256 }) => fingerprint256),
  );
