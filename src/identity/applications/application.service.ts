import type { Authentication } from '../../access/authentication.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { type Application as ApplicationRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, InputError, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { redirectProblem } from './redirect-uris.ts';

/** An application as everybody sees it: without the hash of its secret. */
export type Application = Omit<ApplicationRow, 'secretHash'>;

const applications = {
  kind: 'application',
  from: 'applications',
  columns: columnsOf(Object.values(Prisma.ApplicationScalarFieldEnum).filter((name) => name !== 'secretHash')),
  below: ['orgId'],
} as const;

interface ApplicationFields {
  description?: string | null;
  isFirstParty?: boolean | null;
  idTokenSignedResponseAlg?: string | null;
}

export interface NewApplication extends ApplicationFields {
  name: string;
  applicationType: string;
  redirectUris: readonly string[];
}

export interface ChangedApplication extends ApplicationFields {
  name?: string | null;
  redirectUris?: readonly string[] | null;
}

/** An application and its secret: the only time that it is shown. */
export interface IssuedApplication {
  application: Application;
  /** `null` for a public one. */
  secret: string | null;
}

/** Applications of an organization: the clients of the authorization server. */
export class ApplicationService {
  readonly reads: Reads<Application, OrganizationPlace>;
  readonly #deps: ServiceDeps & { authentication: Authentication };

  constructor(deps: ServiceDeps & { authentication: Authentication }) {
    this.#deps = deps;
    this.reads = new Reads(deps, applications);
  }

  /** @throws InputError for addresses that no answer may go to */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    { redirectUris, ...input }: NewApplication,
  ): Promise<IssuedApplication> {
    checkRedirectUris(redirectUris);
    const secret = input.applicationType === 'confidential' ? newSecret() : null;
    const row = await createRow(this.#deps, caller, applications, {
      ...input,
      redirectUris: [...redirectUris],
      ...secretColumns(secret),
      id: newId('application'),
      ...place,
    });
    return { application: row, secret };
  }

  /**
   * Changes the given fields; omitted ones stay.
   * @throws RESOURCE_NOT_FOUND, InputError, RESOURCE_CONFLICT for a program of all organizations
   */
  async update(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    input: ChangedApplication,
  ): Promise<Application> {
    const { redirectUris, ...rest } = input;
    if (redirectUris) checkRedirectUris(redirectUris);
    const set = { ...rest, ...(redirectUris && { redirectUris: [...redirectUris] }) };
    return updateRow(this.#deps, caller, applications, { id, ...place }, input, async (tx) => {
      const known = await kindOf(tx, place, id);
      if (known?.metadataUrl)
        throw conflict(
          'application',
          id,
          'invalid_status',
          'The organization has not registered this application, and cannot change it.',
        );
      return set;
    });
  }

  /**
   * Gives a confidential application a new secret. The old one ends at once.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT for a public one
   */
  async rotateSecret(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<IssuedApplication> {
    const secret = newSecret();
    const application = await updateRow(this.#deps, caller, applications, { id, ...place }, { secret }, async (tx) => {
      const known = await kindOf(tx, place, id);
      if (known?.applicationType === 'public')
        throw conflict('application', id, 'invalid_status', 'A public application has no secret.');
      return secretColumns(secret);
    });
    return { application, secret };
  }

  /** Deletes it, and ends what was granted to it. @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return deleteRow(
      this.#deps,
      caller,
      applications,
      { id, ...place },
      {
        rules: (tx) => tx.afterCommit(() => this.#deps.authentication.grantsChanged()),
      },
    );
  }
}

/** What of an application never changes. */
async function kindOf(tx: Tx, { orgId }: OrganizationPlace, id: string) {
  const [known] = await tx.query<{ applicationType: string; metadataUrl: string | null }>({
    text: `select application_type as "applicationType", metadata_url as "metadataUrl"
      from applications where org_id = $1 and id = $2`,
    values: [orgId, id],
  });
  return known;
}

const newSecret = (): string => `aps_${randomToken()}`;

const secretColumns = (secret: string | null) => ({
  secretHash: secret === null ? null : tokenHash(secret),
  secretChangedAt: secret === null ? null : new Date(),
});

function checkRedirectUris(uris: readonly string[]): void {
  const issues = uris.flatMap((uri, index) => {
    const problem = redirectProblem(uri);
    return problem ? [valueIssue(['input', 'redirectUris', index], problem)] : [];
  });
  if (issues.length > 0) throw new InputError(issues);
}
