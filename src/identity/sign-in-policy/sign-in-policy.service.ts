import { domainToUnicode } from 'node:url';
import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { demandsSso, isVouchedFor } from '../../access/sso-demand.ts';
import { type StepUp, stepUps } from '../../access/step-up.ts';
import { findRow, type QueryRunner } from '../../data/find-row.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Organization } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, InputError, notFound, valueIssue } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';
import type { FactorProofs } from '../factors/factor-proofs.ts';
import { demandFreshFactor } from '../factors/fresh-factor.ts';
import { domainKey } from '../identity-providers/domain-name.ts';

/** How members of an organization have to sign in. */
export interface SignInPolicy {
  orgId: string;
  ssoRequired: boolean;
  /** As domains are compared. */
  ssoRequiredDomains: string[];
  breakGlass: boolean;
  /** Members whom it shuts out, because no provider knows them. */
  membersWithoutIdentity: number;
  requireFactor: boolean;
  /** Since when. */
  factorRequiredAt: Date | null;
  factorGraceDays: number;
  stepUp: StepUp[];
  requireRevealReason: boolean;
}

export interface UpdateSignInPolicy {
  ssoRequired?: boolean | null | undefined;
  ssoRequiredDomains?: readonly string[] | null | undefined;
  breakGlass?: boolean | null | undefined;
  requireFactor?: boolean | null | undefined;
  factorGraceDays?: number | null | undefined;
  stepUp?: readonly StepUp[] | null | undefined;
  requireRevealReason?: boolean | null | undefined;
}

type Rules = Pick<SignInPolicy, 'ssoRequired' | 'ssoRequiredDomains' | 'breakGlass'>;
type FactorRules = Pick<SignInPolicy, 'factorRequiredAt' | 'factorGraceDays' | 'stepUp'>;

const DAY_MS = 86_400_000;

const POLICY = `select o.id as "orgId", o.sso_required as "ssoRequired",
    o.sso_required_domains as "ssoRequiredDomains", o.sso_break_glass as "breakGlass",
    o.factor_required_at is not null as "requireFactor", o.factor_required_at as "factorRequiredAt",
    o.factor_grace_days as "factorGraceDays", o.step_up as "stepUp",
    o.reveal_reason_required as "requireRevealReason",
    (select count(*) from organization_members m join users u on u.id = m.user_id and u.is_active
      where m.org_id = o.id and ${demandsSso('o', 'm.user_id')}
        and not ${isVouchedFor('o.id', 'm.user_id')})::int as "membersWithoutIdentity"
  from organizations o where o.id = $1 and o.deleted_at is null`;

/** Owners who can sign in at a provider, which signs in nobody above whoever configured it. */
const OWNER_AT_PROVIDER = `select 1 from organization_members m join users u on u.id = m.user_id and u.is_active
  join identity_links l on l.org_id = m.org_id and l.user_id = m.user_id and l.ended_at is null
  join identity_providers p on p.id = l.identity_provider_id and p.is_active and p.authority = 'owner'
    and coalesce(p.saml_entity_id, p.oidc_client_id) is not null
  where m.org_id = $1 and m.role = 'owner' and u.deactivated_at is null and not u.is_platform_admin limit 1`;
const OWNER_WITH_PASSWORD = `select 1 from organization_members m join users u on u.id = m.user_id and u.is_active
  where m.org_id = $1 and m.role = 'owner' and u.deactivated_at is null and u.password_hash is not null limit 1`;
const OWNER_NOT_ASKED = `select 1 from organization_members m join users u on u.id = m.user_id and u.is_active
  join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.role = 'owner' and u.deactivated_at is null and u.password_hash is not null
    and not ${demandsSso('o', 'm.user_id')} limit 1`;

/** Members who administer the platform: no provider signs them in, so breaking the glass is their only way. */
const PLATFORM_ADMINS_OUT = `select count(*)::int as count from organization_members m
  join users u on u.id = m.user_id and u.is_active and u.is_platform_admin and u.deactivated_at is null
  join organizations o on o.id = m.org_id
  where m.org_id = $1 and ${demandsSso('o', 'm.user_id')}
    and not (o.sso_break_glass and m.role = 'owner' and u.password_hash is not null)`;

interface SignInPolicyDeps extends ServiceDeps {
  authentication: Authentication;
  proofs: FactorProofs;
}

/** Whether an organization demands single sign-on or a second factor of its members (docs/decisions/0066, 0072). */
export class SignInPolicies {
  readonly #deps: SignInPolicyDeps;

  constructor(deps: SignInPolicyDeps) {
    this.#deps = deps;
  }

  /** The policy of an organization. @throws RESOURCE_NOT_FOUND */
  async get({ orgId }: Checked<OrganizationPlace>): Promise<SignInPolicy> {
    const [row] = await this.#deps.sql.read<SignInPolicy>(POLICY, [orgId]);
    if (!row) throw notFound('organization', orgId);
    return { ...row, ssoRequiredDomains: row.ssoRequiredDomains.filter(isKey) };
  }

  /**
   * Changes the given rules. No token may: a copied one would open the organization to passwords.
   * @throws FORBIDDEN for tokens; InputError for a domain that is not proven; RESOURCE_CONFLICT `nobody_left` if no
   * owner, or not each administrator of the platform, could still sign in; RESOURCE_CONFLICT `no_factor` and FORBIDDEN
   * `fresh_factor` for who changes what is demanded of factors without having proven one
   */
  async update(caller: Caller, place: Checked<OrganizationPlace>, input: UpdateSignInPolicy): Promise<SignInPolicy> {
    sessionOf(caller, 'identity_provider:update');
    const { orgId } = place;
    const { changes, access, authentication } = this.#deps;
    const ssoRequiredDomains = input.ssoRequiredDomains ? domainsOf(input.ssoRequiredDomains) : undefined;
    await changes.run(caller, async (tx) => {
      await lockOrganization(tx, orgId, 'no key update');
      const before = await findRow(tx, 'organizations', { id: orgId });
      if (!before) throw notFound('organization', orgId);
      const knownDomains = before.ssoRequiredDomains.filter(isKey);
      const known = new Set(knownDomains);
      if (ssoRequiredDomains) await demandProven(tx, orgId, { given: ssoRequiredDomains, known });
      const rules: Rules = {
        ssoRequired: input.ssoRequired ?? before.ssoRequired,
        ssoRequiredDomains: ssoRequiredDomains ?? knownDomains,
        breakGlass: input.breakGlass ?? before.ssoBreakGlass,
      };
      const factorRules = factorRulesOf(before, input);
      if (isOtherwise(before, factorRules)) await this.#demandOwnFactor(tx, caller);
      const revealReasonRequired = input.requireRevealReason ?? before.revealReasonRequired;
      tx.update('organizations', { id: orgId }, { ...columnsOf(rules), ...factorRules, revealReasonRequired });
      await demandWayIn(tx, orgId, rules);
      await demandPlatformAdmins(tx, orgId);
      if (!rules.breakGlass) closeGlass(tx, orgId);
      recordChange(
        tx,
        'update',
        'organization',
        { id: orgId, orgId },
        {
          fields: Object.keys(input),
          sso_required: rules.ssoRequired,
          sso_required_domains: rules.ssoRequiredDomains,
          factor_required: factorRules.factorRequiredAt !== null,
          factor_grace_days: factorRules.factorGraceDays,
          step_up: factorRules.stepUp,
          reveal_reason_required: revealReasonRequired,
        },
      );
      if (before.factorRequiredAt === null) announceFactor(tx, orgId, factorRules);
      tx.afterCommit(() => {
        access.facts.demandsChanged(orgId);
        authentication.sessionsChanged();
      });
    });
    return this.get(place);
  }

  /**
   * A change of what is demanded of factors takes one of the caller that was just proven in this session: nobody locks
   * themselves out by a click, and a stolen session takes nothing back.
   * @throws RESOURCE_CONFLICT `no_factor`, FORBIDDEN `fresh_factor`
   */
  async #demandOwnFactor(tx: QueryRunner, caller: Caller): Promise<void> {
    const { userId } = caller.principal;
    if ((await this.#deps.proofs.methodsOf(tx, userId)).length === 0)
      throw conflict('user', userId, 'no_factor', 'Add a second factor to your own account first.');
    await demandFreshFactor(tx, caller);
  }
}

/** What is kept of a change: a demand that stands goes on, and its grace with it. */
function factorRulesOf(before: Organization, input: UpdateSignInPolicy): FactorRules {
  const isRequired = input.requireFactor ?? before.factorRequiredAt !== null;
  const asked = input.stepUp ?? before.stepUp;
  return {
    factorRequiredAt: isRequired ? (before.factorRequiredAt ?? new Date()) : null,
    factorGraceDays: input.factorGraceDays ?? before.factorGraceDays,
    stepUp: stepUps.filter((word) => asked.includes(word)),
  };
}

/**
 * Whether something else is demanded than before. Less of it counts too: it would be the way around what it protects.
 * The grace of nothing is nothing.
 */
function isOtherwise(before: Organization, { factorRequiredAt, factorGraceDays, stepUp }: FactorRules): boolean {
  const wasRequired = before.factorRequiredAt !== null;
  const isRequired = factorRequiredAt !== null;
  return (
    wasRequired !== isRequired ||
    (isRequired && factorGraceDays !== before.factorGraceDays) ||
    stepUp.length !== before.stepUp.length ||
    stepUp.some((word) => !before.stepUp.includes(word))
  );
}

/** Tells the members who have no factor until when they need one. */
function announceFactor(tx: Tx, orgId: string, { factorRequiredAt, factorGraceDays }: FactorRules): void {
  if (factorRequiredAt === null) return;
  const expiresAt = new Date(factorRequiredAt.getTime() + factorGraceDays * DAY_MS);
  tx.announce({
    type: 'organization.factor_required',
    orgId,
    resourceType: 'organization',
    resourceId: orgId,
    facts: { expiresAt, daysLeft: factorGraceDays },
  });
}

const columnsOf = ({ ssoRequired, ssoRequiredDomains, breakGlass }: Rules) => ({
  ssoRequired,
  // addresses are stored as they were given: an international domain has two spellings
  ssoRequiredDomains: [...new Set(ssoRequiredDomains.flatMap((domain) => [domain, domainToUnicode(domain)]))],
  ssoBreakGlass: breakGlass,
});

/** Whether a stored domain is the spelling that is shown. */
const isKey = (domain: string): boolean => domain === domainKey(domain);

const at = (index: number): (string | number)[] => ['input', 'ssoRequiredDomains', index];

/** Domains as they are compared, each once. @throws InputError at each that is none */
function domainsOf(given: readonly string[]): string[] {
  const keys = given.map(domainKey);
  const issues = keys.flatMap((key, index) =>
    key === null ? [valueIssue(at(index), 'it is not a domain: write it like example.com')] : [],
  );
  if (issues.length > 0) throw new InputError(issues);
  return [...new Set(keys as string[])];
}

/** A domain that was in the list before may stay, also without its proof: leaving it out is a decision. */
async function demandProven(
  tx: Tx,
  orgId: string,
  { given, known }: { given: readonly string[]; known: ReadonlySet<string> },
): Promise<void> {
  const proven = new Set(
    (
      await tx.query<{ domain: string }>(statement`select domain from identity_provider_domains
        where org_id = ${orgId} and state = 'proven' and domain = any(${given}::text[])`)
    ).map(({ domain }) => domain),
  );
  const issues = given.flatMap((domain, index) =>
    proven.has(domain) || known.has(domain)
      ? []
      : [valueIssue(at(index), `the organization has not proven the domain '${domain}'`)],
  );
  if (issues.length > 0) throw new InputError(issues);
}

/**
 * Demands that an owner can get in under rules that are in force: at a provider, with the password where that is
 * allowed, or because nothing is demanded of them. @throws RESOURCE_CONFLICT `nobody_left`
 */
async function demandWayIn(tx: QueryRunner, orgId: string, rules: Rules): Promise<void> {
  if (!rules.ssoRequired && rules.ssoRequiredDomains.length === 0) return;
  const ways = [OWNER_AT_PROVIDER, OWNER_NOT_ASKED, ...(rules.breakGlass ? [OWNER_WITH_PASSWORD] : [])];
  for (const text of ways) if ((await tx.query({ text, values: [orgId] })).length > 0) return;
  throw conflict(
    'organization',
    orgId,
    'nobody_left',
    'No owner could still sign in: let an owner sign in at an identity provider that an owner has configured, or ' +
      'allow `breakGlass` for an owner with a password.',
  );
}

/** Demands that nobody who administers the platform is shut out for good. @throws RESOURCE_CONFLICT `nobody_left` */
async function demandPlatformAdmins(tx: QueryRunner, orgId: string): Promise<void> {
  const [out] = await tx.query<{ count: number }>({ text: PLATFORM_ADMINS_OUT, values: [orgId] });
  if (!out || out.count === 0) return;
  throw conflict(
    'organization',
    orgId,
    'nobody_left',
    `${out.count} platform administrator${out.count === 1 ? '' : 's'} would be shut out, because no identity ` +
      'provider signs them in: make them owners with a password and allow `breakGlass`, or remove them first.',
  );
}

/** What owners have opened with the password is closed. */
const closeGlass = (tx: Tx, orgId: string): void =>
  tx.write(statement`update sessions set break_glass_org_id = null, break_glass_until = null
    where break_glass_org_id = ${orgId}`);
