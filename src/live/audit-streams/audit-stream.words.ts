import { isAction } from '../../kernel/actions.ts';
import { isResourceWord } from '../../kernel/resources.ts';

/** Audit streams of an organization. */
export const MAX_STREAMS = 10;
/** Actions, or types of resources, of one stream. */
export const MAX_WORDS = 50;
/** Tests of one stream that wait. */
export const MAX_TESTS = 10;
/** Days that the log of deliveries goes back. */
export const LOG_DAYS = 7;
/** Deliveries that wait: the next one is ready when one is over, and all others are still only records. */
export const MAX_WAITING = 4;

export const targetTypes = ['http', 'splunk', 's3'] as const;
export type TargetType = (typeof targetTypes)[number];

export const auditDeliveryStatuses = ['pending', 'delivered', 'failed', 'replaced'] as const;

interface BatchLimits {
  /** Records that are looked at. */
  records: number;
  /** Of their lines, and what is around them. */
  bytes: number;
  /** What is around each line, at most. */
  wrapper: number;
}

/** How much is sent together. Common collectors take 1 MiB, and some half of it. */
export const BATCH: Readonly<Record<TargetType, BatchLimits>> = {
  http: { records: 1_000, bytes: 512 * 1024, wrapper: 0 },
  splunk: { records: 1_000, bytes: 512 * 1024, wrapper: 96 },
  s3: { records: 5_000, bytes: 8 * 1024 * 1024, wrapper: 0 },
};

/** SQL: what is older than this may have been removed: records go by whole months, after 90 days. */
export const KEPT_SINCE = `date_trunc('month', (now() - interval '90 days') at time zone 'UTC') at time zone 'UTC'`;

/** What is wrong with an action; `null` for nothing. */
export const actionProblem = (word: string): string | null =>
  isAction(word) ? null : `there is no action called ${JSON.stringify(word)}`;

/** What is wrong with a type of resources; `null` for nothing. */
export const resourceProblem = (word: string): string | null =>
  isResourceWord(word) ? null : `there is no type of resource called ${JSON.stringify(word)}`;
