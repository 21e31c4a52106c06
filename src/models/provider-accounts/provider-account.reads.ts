import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import type { ProviderAccount as AccountRow } from '../../generated/prisma/client.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';

/** Default pace of requests to an account: the numbers that the spec shows. */
export const defaultRateLimits = {
  requestsPerSecond: 1,
  requestsPerMinute: 1,
  inputTokensPerMinute: 1,
  outputTokensPerMinute: 1,
  maxConcurrency: 10,
  burstSize: 10,
  queuePolicy: 'wait',
  queueTimeoutSeconds: 300,
};

/** How clients should pace requests to an account. The service passes this on to them. */
export type RateLimitPolicy = typeof defaultRateLimits;

/** Monthly limits of an account (UTC), and its usage in the current month. */
export interface QuotaPolicy {
  maxTokensPerMonth: number | null;
  maxRequestsPerMonth: number | null;
  currentMonthTokens: number;
  currentMonthRequests: number;
  /** The current month, for example `2026-11`. */
  usagePeriod: string;
}

const plain = columnsOf(
  words(
    'id orgId name description providerType region dataResidency credentialsRef baseUrl routingMode bridgeId',
    'bridgeEndpointName enabled lastHealthCheck tags rateLimitPolicy createdBy createdAt updatedAt resourceVersion',
  ),
);

/** An account as callers see it: `disabled` while it is not enabled, with the counters of the current month. */
export interface ProviderAccount extends Pick<AccountRow, keyof typeof plain>, QuotaPolicy {
  status: string;
  statusReason: string | null;
  tags: Record<string, string>;
  rateLimitPolicy: RateLimitPolicy;
}

export interface AccountFilters {
  providerType?: string | null;
  /** The status that is shown. */
  status?: string | null;
  /** Only enabled accounts, whatever their health (defaults §8). */
  enabledOnly?: boolean | null;
}

/** The current month in UTC, as the counters name it. Uses the clock of the statement, not of its transaction. */
export const MONTH = `to_char(statement_timestamp() at time zone 'utc', 'YYYY-MM')`;

/** A counter of the current month. A count left from an earlier month is 0. */
export const ofThisMonth = (alias: string, counter: string) =>
  `(case when ${alias}.usage_period = ${MONTH} then ${alias}.${counter} else 0 end)::float8`;

const SHOWN_STATUS = `case when t.enabled then t.status else 'disabled' end`;

/** The accounts of an organization. */
export const accounts: ReadsOptions<ProviderAccount, OrganizationPlace, PageArgs & AccountFilters> = {
  kind: 'provider_account',
  from: 'provider_accounts',
  below: ['orgId'],
  columns: {
    ...plain,
    status: SHOWN_STATUS,
    statusReason: `case when t.enabled then t.status_reason else 'Disabled by an administrator.' end`,
    maxTokensPerMonth: 't.max_tokens_per_month::float8',
    maxRequestsPerMonth: 't.max_requests_per_month::float8',
    currentMonthTokens: ofThisMonth('t', 'current_month_tokens'),
    currentMonthRequests: ofThisMonth('t', 'current_month_requests'),
    usagePeriod: MONTH,
  },
  filters: ({ providerType, status, enabledOnly }) => ({
    't.provider_type = ?': providerType,
    [`${SHOWN_STATUS} = ?`]: status,
    't.enabled = ?': enabledOnly || undefined,
  }),
};
