import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import type { StepLength } from '../../kernel/time-zone.ts';
import { SeriesPoint, timezone } from './analytics.graph.ts';
import type { LatencyMetric } from './latencies.ts';
import { MAX_POINTS } from './points.ts';
import { MAX_CUT_HOURS, type SeriesMetric as Metric, type Series as SeriesRow } from './series.service.ts';

const percentile = <Name extends LatencyMetric>(value: Name, part: string) => ({
  value,
  description:
    `How long ${part} of the operations took at most, in milliseconds, with an error of at most 5 %: of an ` +
    'organization, a workspace or an app.',
});

const SeriesMetric = builder.enumType('SeriesMetric', {
  description: 'What a series counts.',
  values: {
    REQUESTS: { value: 'requests' satisfies Metric, description: 'Number of operations.' },
    ERRORS: { value: 'errors' satisfies Metric, description: 'Number of failed operations.' },
    LATENCY: { value: 'latency' satisfies Metric, description: 'Average duration of an operation in milliseconds.' },
    LATENCY_P50: percentile('latency_p50', 'half'),
    LATENCY_P95: percentile('latency_p95', '95 %'),
    LATENCY_P99: percentile('latency_p99', '99 %'),
    EXECUTIONS: { value: 'executions' satisfies Metric, description: 'Number of runs that began.' },
    TOKENS: {
      value: 'tokens' satisfies Metric,
      description: 'Model tokens that runs used, counted at the time when the run began.',
    },
    STORAGE: {
      value: 'storage' satisfies Metric,
      description:
        'Bytes that the artifacts of an organization or a workspace hold at the end of each span, looked at every 15 ' +
        'minutes; in the current one, now.',
    },
  } as const,
});

/** The spans of a series. */
export const SeriesStep = builder.enumType('SeriesStep', {
  description: 'The spans of a series, in its time zone.',
  values: {
    HOUR: { value: 'hour' satisfies StepLength, description: 'Hours.' },
    DAY: { value: 'day' satisfies StepLength, description: 'Days.' },
    MONTH: { value: 'month' satisfies StepLength, description: 'Months.' },
  } as const,
});

/**
 * What a series covers, as arguments of its field.
 * @param step the default
 * @param most how many points it may have, as a sentence
 */
export const spanArgs = (step: StepLength, most: string) =>
  builder.args((of) => ({
    from: of.field({
      type: 'DateTime',
      description: 'The series starts with the span that contains this time. Default: 24 spans before the end.',
    }),
    to: of.field({
      type: 'DateTime',
      description: 'End of the series, exclusive. Default: the end of the current span.',
    }),
    step: of.field({
      type: SeriesStep,
      required: true,
      defaultValue: step,
      description: `The length of its spans. ${most}`,
    }),
    tz: of.string({
      required: true,
      defaultValue: 'UTC',
      constraints: timezone,
      description: 'IANA time zone of its spans. A day on which the clocks change has 23 or 25 hours.',
    }),
  }));

const Series = builder.objectRef<SeriesRow>('Series').implement({
  description: 'Values by hours, days or months.',
  fields: (t) => ({
    metric: t.expose('metric', { type: SeriesMetric, description: 'What the series counts.' }),
    step: t.expose('step', { type: SeriesStep, description: 'Its spans.' }),
    from: t.expose('from', { type: 'DateTime', description: 'The start of the first span.' }),
    to: t.expose('to', { type: 'DateTime', description: 'The end of the last span.' }),
    points: t.field({
      type: [SeriesPoint],
      authorize: 'inherited',
      extensions: { atMost: MAX_POINTS / 10 }, // ten points cost as much as an object
      description: 'One point for each span, oldest first.',
      resolve: ({ points }) => [...points],
    }),
  }),
});

builder.queryField('series', (t) =>
  t.field({
    type: Series,
    description:
      'A series of an organization, or of a workspace, an app, a token or a user in it. A series of the ' +
      "organization, or of a token or user other than the caller's own, is for administrators. Activity and " +
      'executions are kept for 90 days, storage for 400: older points are 0. Refused to tokens that are restricted ' +
      'to a part.',
    authorize: { organization: 'organization:access', service: 'analytics:read' },
    args: {
      ...organizationArgs(),
      ...builder.args((of) => ({
        workspaceId: of.id({ constraints: bounds.id, description: 'Only this workspace. With an app, its workspace.' }),
        appId: of.id({ constraints: bounds.id, description: 'Only this app.' }),
        tokenId: of.id({ constraints: bounds.id, description: 'Only this token.' }),
        userId: of.id({ constraints: bounds.id, description: 'Only this user.' }),
        metric: of.field({ type: SeriesMetric, required: true, description: 'What the series counts.' }),
      })),
      ...spanArgs(
        'hour',
        `A series has at most ${MAX_POINTS} points; one of the activity by hours, in a zone that is not whole hours ` +
          `from UTC, at most ${MAX_CUT_HOURS}.`,
      ),
    },
    resolve: (_root, { orgId, workspaceId, appId, tokenId, userId, ...range }, { caller, services }) =>
      services.series.of(caller, { orgId, workspaceId, appId, tokenId, userId }, range),
  }),
);
