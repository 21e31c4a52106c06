import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import { Prisma, type IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';
import type { Role } from '../../kernel/roles.ts';

export const protocols = ['saml', 'oidc'] as const;
export type Protocol = (typeof protocols)[number];

/** The role of whoever is in a group at the provider, in the organization or in one workspace. */
export interface GroupMapping {
  group: string;
  roleId: Role;
  workspaceId: string | null;
}

/** Columns that only sign-ins, notices and the look at metadata know. */
type Hidden = 'authority' | 'certificateNoticedAt' | 'samlMetadataFailures';
const hidden: readonly string[] = ['authority', 'certificateNoticedAt', 'samlMetadataFailures'] satisfies Hidden[];

/** A provider as its administrators see it. */
export interface IdentityProvider extends Omit<ProviderRow, Hidden | 'groupMappings'> {
  groupMappings: readonly GroupMapping[];
  workspaceId: string;
  namespaceId: string;
  environmentId: string;
}

/** What signs people in to the whole organization is in none of the places that a token may be restricted to. */
const NOWHERE = `''`;

/** The providers of an organization. A token that is restricted to some places sees none of them. */
export const providers: ReadsOptions<IdentityProvider, OrganizationPlace, PageArgs> = {
  kind: 'identity_provider',
  from: 'identity_providers',
  below: ['orgId'],
  columns: {
    ...columnsOf(
      Object.values(Prisma.IdentityProviderScalarFieldEnum).filter((name) => !hidden.includes(name)) as Exclude<
        Prisma.IdentityProviderScalarFieldEnum,
        Hidden
      >[],
    ),
    workspaceId: NOWHERE,
    namespaceId: NOWHERE,
    environmentId: NOWHERE,
  },
};

/** The group mappings of a row. */
export const mappingsOf = ({ groupMappings }: Pick<ProviderRow, 'groupMappings'>): readonly GroupMapping[] =>
  groupMappings as unknown as readonly GroupMapping[];
