import { columnsOf, type PageSource } from '../data/pages.ts';
import type { ProviderAccount as AccountRow } from '../generated/prisma/client.ts';
import { Prisma } from '../generated/prisma/client.ts';

/** How requests to an account are to be paced. It is told to whoever sends them; the service itself sends none. */
export interface RateLimitPolicy {
  requestsPerSecond: number;
  requestsPerMinute: number;
  inputTokensPerMinute: number;
  outputTokensPerMinute: number;
  maxConcurrency: number;
  burstSize: number;
  queuePolicy: string;
  queueTimeoutSeconds: number;
}

/** The numbers that the spec shows. */
export const defaultRateLimits: RateLimitPolicy = {
  requestsPerSecond: 1,
  requestsPerMinute: 1,
  inputTokensPerMinute: 1,
  outputTokensPerMinute: 1,
  maxConcurrency: 10,
  burstSize: 10,
  queuePolicy: 'wait',
  queueTimeoutSeconds: 300,
};

type Hidden =
  | 'consecutiveFailures'
  | 'authFailures'
  | 'tags'
  | 'rateLimitPolicy'
  | 'maxTokensPerMonth'
  | 'maxRequestsPerMonth'
  | 'currentMonthTokens'
  | 'currentMonthRequests';

/** What an account may use in a month (UTC), and what it used of it in the running one. */
export interface QuotaPolicy {
  maxTokensPerMonth: number | null;
  maxRequestsPerMonth: number | null;
  currentMonthTokens: number;
  currentMonthRequests: number;
  /** The running month, `2026-11`. */
  usagePeriod: string;
}

/** An account as it is shown: `disabled` while it is not enabled, its counters those of the running month. */
export interface ProviderAccount extends Omit<AccountRow, Hidden>, QuotaPolicy {
  tags: Record<string, string>;
  rateLimitPolicy: RateLimitPolicy;
}

/** The running month in UTC, as the counters name it; by the clock of the statement, not of its transaction. */
export const MONTH = `to_char(statement_timestamp() at time zone 'utc', 'YYYY-MM')`;

/** A counter of the month: what an earlier month left behind counts as nothing. */
export const ofThisMonth = (alias: string, counter: string) =>
  `(case when ${alias}.usage_period = ${MONTH} then ${alias}.${counter} else 0 end)::float8`;

export const SHOWN_STATUS = `case when t.enabled then t.status else 'disabled' end`;

const {
  consecutiveFailures: _failures,
  authFailures: _auth,
  ...columns
} = columnsOf(Object.values(Prisma.ProviderAccountScalarFieldEnum));

/** The accounts of an organization, newest first. */
export const accountsSource: PageSource<ProviderAccount> = {
  from: 'provider_accounts t',
  columns: {
    ...columns,
    status: SHOWN_STATUS,
    statusReason: `case when t.enabled then t.status_reason else 'Disabled by an administrator.' end`,
    maxTokensPerMonth: 't.max_tokens_per_month::float8',
    maxRequestsPerMonth: 't.max_requests_per_month::float8',
    currentMonthTokens: ofThisMonth('t', 'current_month_tokens'),
    currentMonthRequests: ofThisMonth('t', 'current_month_requests'),
    usagePeriod: MONTH,
  },
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1'],
};
