import type { Execution } from '../../generated/prisma/client.ts';
import { conflict, InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';

/** Model tokens of a run so far. */
export interface TokenUsage {
  input: number;
  output: number;
  total: number;
}

/** A runner's report of a run. All fields but the ids are optional. */
export interface ExecutionReport {
  executionId: string;
  appId: string;
  augmentationId: string;
  endpointId?: string | null;
  actionId?: string | null;
  /** `running`, `completed` or `failed`. */
  status?: string | null;
  stagesCompleted?: number | null;
  totalStages?: number | null;
  tokenUsage?: { input?: number | null; output?: number | null; total?: number | null } | null;
  error?: string | null;
  startedAt?: Date | null;
  endedAt?: Date | null;
}

/** What changes in the course of a run. */
export interface Progress
  extends Pick<Execution, 'status' | 'stagesCompleted' | 'totalStages' | 'error' | 'endedAt' | 'isTimedOut'> {
  tokenUsage: TokenUsage;
}

/** The times of the clocks of runners that are not ours. */
const CLOCKS_DIFFER_MS = 5 * 60_000;

const NO_TOKENS: TokenUsage = { input: 0, output: 0, total: 0 };

/** The state before the first report. */
export const begun = (totalStages: number): Progress => ({
  status: 'running',
  stagesCompleted: 0,
  totalStages,
  tokenUsage: NO_TOKENS,
  error: null,
  endedAt: null,
  isTimedOut: false,
});

/** The stored state. */
export const progressOf = ({
  status,
  stagesCompleted,
  totalStages,
  tokenUsage,
  error,
  endedAt,
  isTimedOut,
}: Execution): Progress => ({
  status,
  stagesCompleted,
  totalStages,
  tokenUsage: { ...NO_TOKENS, ...(tokenUsage as Partial<TokenUsage>) },
  error,
  endedAt,
  isTimedOut,
});

/** The state of a run that is closed because no report came for some hours. */
export const timedOut = (before: Progress, hours: number, now: Date): Progress => ({
  ...before,
  status: 'failed',
  error: `No report came for ${hours === 1 ? 'an hour' : `${hours} hours`}: the service closed the execution.`,
  endedAt: now,
  isTimedOut: true,
});

/** The state that a report advances: the runner knows better than the service, which closed the run. */
export const reopened = (before: Progress): Progress =>
  before.isTimedOut ? { ...before, status: 'running', error: null, endedAt: null, isTimedOut: false } : before;

/** Whether a run has ended. */
export const isOver = ({ status }: Pick<Progress, 'status'>): boolean => status !== 'running';

/** @throws InputError for a report that contradicts itself */
export function checkReport(report: ExecutionReport, now: Date): void {
  const { status = null, error = null, startedAt = null, endedAt = null } = report;
  const latest = now.getTime() + CLOCKS_DIFFER_MS;
  const isLate = (time: Date | null) => time !== null && time.getTime() > latest;
  const issues = [
    ...wrongIf(error !== null && status !== 'failed', 'error', 'only a failed execution may have it'),
    ...wrongIf(endedAt !== null && (status ?? 'running') === 'running', 'endedAt', 'a running execution has no end'),
    ...wrongIf(isLate(startedAt), 'startedAt', 'it is in the future'),
    ...wrongIf(isLate(endedAt), 'endedAt', 'it is in the future'),
  ];
  if (issues.length > 0) throw new InputError(issues);
}

const wrongIf = (isWrong: boolean, field: string, error: string): InputIssue[] =>
  isWrong ? [valueIssue(['input', field], error)] : [];

/**
 * The state after a report. Numbers only grow: what is less than what is known was reported late, and changes nothing.
 * Nor does a report about a run that has ended, unless it contradicts how it ended.
 * @throws RESOURCE_CONFLICT `conflicting_report` with the fields that contradict what is known; InputError for more
 * stages than there are, and for an end before the start
 */
export function progressAfter(
  before: Progress,
  report: ExecutionReport,
  { startedAt, now }: { startedAt: Date; now: Date },
): Progress {
  const status = report.status ?? before.status;
  if (isOver(before)) {
    if (report.status && report.status !== 'running') refuseOtherEnd(before, report);
    return before;
  }
  const { endedAt } = report;
  const totalStages = report.totalStages ?? before.totalStages;
  const after = {
    status,
    totalStages,
    stagesCompleted: Math.max(before.stagesCompleted, report.stagesCompleted ?? 0),
    tokenUsage: usageAfter(before.tokenUsage, report.tokenUsage),
    error: report.error ?? null,
    endedAt: isOver({ status }) ? (endedAt ?? new Date(Math.max(now.getTime(), startedAt.getTime()))) : null,
    isTimedOut: false,
  };
  const issues = [
    ...wrongIf(after.stagesCompleted > totalStages, 'stagesCompleted', `there are ${totalStages} stages`),
    ...wrongIf(endedAt !== null && endedAt !== undefined && endedAt < startedAt, 'endedAt', 'it is before the start'),
  ];
  if (issues.length > 0) throw new InputError(issues);
  return after;
}

function usageAfter(before: TokenUsage, given: ExecutionReport['tokenUsage']): TokenUsage {
  const input = Math.max(before.input, given?.input ?? 0);
  const output = Math.max(before.output, given?.output ?? 0);
  return { input, output, total: Math.max(before.total, given?.total ?? 0, input + output) };
}

/** What a run has used since another state. */
export const usedSince = (before: TokenUsage, after: TokenUsage): TokenUsage => ({
  input: after.input - before.input,
  output: after.output - before.output,
  total: after.total - before.total,
});

function refuseOtherEnd(before: Progress, report: ExecutionReport): void {
  const { tokenUsage: used, stagesCompleted } = report;
  const isOther = {
    status: report.status !== before.status,
    stages_completed: isGiven(stagesCompleted) && stagesCompleted !== before.stagesCompleted,
    token_usage: (['input', 'output', 'total'] as const).some(
      (name) => isGiven(used?.[name]) && used[name] !== before.tokenUsage[name],
    ),
    error: isGiven(report.error) && report.error !== before.error,
    ended_at: isGiven(report.endedAt) && report.endedAt.getTime() !== before.endedAt?.getTime(),
  };
  refuseConflicts(report.executionId, isOther);
}

/** What a run is, which no report changes. @throws RESOURCE_CONFLICT `conflicting_report` */
export function checkSameRun(known: Execution, report: ExecutionReport): void {
  const isOther = (name: 'endpointId' | 'actionId') => isGiven(report[name]) && report[name] !== known[name];
  refuseConflicts(report.executionId, {
    app_id: report.appId !== known.appId,
    augmentation_id: report.augmentationId !== known.augmentationId,
    endpoint_id: isOther('endpointId'),
    action_id: isOther('actionId'),
    total_stages: isGiven(report.totalStages) && report.totalStages !== known.totalStages,
    started_at: isGiven(report.startedAt) && report.startedAt.getTime() !== known.startedAt.getTime(),
  });
}

const isGiven = <Value>(value: Value | null | undefined): value is Value => value !== null && value !== undefined;

function refuseConflicts(executionId: string, isOther: Readonly<Record<string, boolean>>): void {
  const fields = Object.keys(isOther).filter((field) => isOther[field]);
  if (fields.length === 0) return;
  throw conflict(
    'execution',
    executionId,
    'conflicting_report',
    `An earlier report of the execution has other values of these fields: ${fields.join(', ')}.`,
    { fields },
  );
}
