import type { AnyCaller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import { atLeast, type Role } from '../../kernel/roles.ts';
import { ScimError } from './scim-error.ts';
import type { LivingScimToken } from './scim-token.service.ts';

/** The directory of an organization that sends a request, with its token. */
export interface Directory {
  caller: AnyCaller;
  token: LivingScimToken;
}

/** A directory does nothing that the maker of its token could not do. @throws FORBIDDEN */
export function demandAuthority({ token: { authority } }: Directory, role: Role | null): void {
  if (role !== null && !atLeast(authority, role))
    throw forbidden(
      'organization_member:update',
      `The token was made by somebody with the role '${authority}': it neither grants nor ends the role '${role}'.`,
    );
}

/** The version of a resource, as `meta.version` and `ETag` have it. */
export const versionOf = ({ resourceVersion, active }: { resourceVersion: number; active?: boolean }): string =>
  `W/"${resourceVersion}${active === undefined ? '' : active ? 'a' : 'i'}"`;

const MAX_TAGS = 2_000;

/** @throws ScimError 412 for another version than the header `If-Match` expects */
export function demandVersion(ifMatch: string | undefined, version: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  if (!tagsOf(ifMatch).includes(tagOf(version)))
    throw new ScimError(412, 'The resource was changed since you read it: read it again.');
}

/** Whether a header `If-None-Match` names a version. */
export const hasVersion = (ifNoneMatch: string | undefined, version: string): boolean =>
  ifNoneMatch !== undefined && (ifNoneMatch.trim() === '*' || tagsOf(ifNoneMatch).includes(tagOf(version)));

const tagOf = (text: string): string => text.trim().replace(/^W\//, '');
const tagsOf = (header: string): string[] => header.slice(0, MAX_TAGS).split(',').map(tagOf);
