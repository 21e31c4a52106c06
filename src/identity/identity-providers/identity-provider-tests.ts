import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import type { IdentityProviderTest, IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { VerifiedIdentity } from '../sso/verified-identity.ts';
import type { Evaluation } from './federated-sign-in.ts';

/** How long the result of a test stays. */
const DAY_MS = 86_400_000;

/** What the result of a test has. */
export interface ProviderTestResult {
  identity: Omit<VerifiedIdentity, 'claims'>;
  claims: Record<string, unknown>;
  evaluation: Evaluation;
}

/** Sign-ins that administrators try. They show what would happen, and change nothing. */
export class IdentityProviderTests {
  readonly #deps: { sql: Sql };

  constructor(deps: { sql: Sql }) {
    this.#deps = deps;
  }

  /** The provider that is to be tried. @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT `not_configured` */
  async provider({ orgId }: Checked<OrganizationPlace>, id: string): Promise<ProviderRow> {
    const found = await findRow(this.#deps.sql, 'identity_providers', { id, orgId });
    if (!found) throw notFound('identity_provider', id);
    if (found.samlEntityId === null && found.oidcClientId === null)
      throw conflict(
        'identity_provider',
        id,
        'not_configured',
        `The identity provider '${id}' has no configuration yet: set its '${found.protocol}_config'.`,
      );
    return found;
  }

  /**
   * Starts a test, in the transaction that begins its sign-in. Whoever finishes that writes its result, a
   * {@link ProviderTestResult}, or its failure.
   * @returns the id of the test
   * @throws RESOURCE_NOT_FOUND
   */
  async begin(tx: Tx, caller: Caller, { id, orgId }: ProviderRow): Promise<string> {
    const testId = newId('identity_provider_test');
    await tx.lock('identity_providers', { id, orgId }, 'share', () => notFound('identity_provider', id));
    tx.insert('identity_provider_tests', {
      id: testId,
      orgId,
      identityProviderId: id,
      startedBy: caller.principal.userId,
      expiresAt: new Date(Date.now() + DAY_MS),
    });
    tx.audit({
      action: 'execute',
      resourceType: 'identity_provider',
      resourceId: id,
      orgId,
      metadata: { test: testId },
    });
    return testId;
  }

  /** A test of a provider. @throws RESOURCE_NOT_FOUND */
  async get({ orgId }: Checked<OrganizationPlace>, id: string, testId: string): Promise<IdentityProviderTest> {
    const found = await findRow(this.#deps.sql, 'identity_provider_tests', {
      id: testId,
      identityProviderId: id,
      orgId,
    });
    if (!found || found.expiresAt.getTime() <= Date.now()) throw notFound('identity_provider_test', testId);
    return found;
  }
}
