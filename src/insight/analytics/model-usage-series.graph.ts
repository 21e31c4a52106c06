import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { modelIdBounds } from '../../models/models/logical-model.inputs.ts';
import type {
  ModelUsagePoint as ModelUsagePointRow,
  ModelUsageSeries as ModelUsageSeriesRow,
} from './model-usage-series.service.ts';
import { MAX_POINTS } from './points.ts';
import { SeriesStep, spanArgs } from './series.graph.ts';

const ModelUsagePoint = builder.objectRef<ModelUsagePointRow>('ModelUsagePoint').implement({
  description: 'What a workspace used of models in an hour, a day or a month.',
  fields: (t) => ({
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When it begins.' }),
    requests: t.expose('requests', { type: 'Int53', description: 'Number of reported requests.' }),
    errors: t.expose('errors', {
      type: 'Int53',
      description: 'Requests among them that ended with another outcome than `SUCCESS`.',
    }),
    inputTokens: t.expose('inputTokens', { type: 'Int53', description: 'Tokens of the requests.' }),
    outputTokens: t.expose('outputTokens', { type: 'Int53', description: 'Tokens of the answers.' }),
    cost: t.exposeString('cost', {
      description:
        'The sum of the reported costs, a decimal number. Requests that were reported without a cost, or by others ' +
        'than editors of the workspace and above, add nothing to it.',
    }),
  }),
});

const ModelUsageSeries = builder.objectRef<ModelUsageSeriesRow>('ModelUsageSeries').implement({
  description: 'What a workspace used of models by hours, days or months.',
  fields: (t) => ({
    step: t.expose('step', { type: SeriesStep, description: 'Its spans.' }),
    from: t.expose('from', { type: 'DateTime', description: 'The start of the first span.' }),
    to: t.expose('to', { type: 'DateTime', description: 'The end of the last span.' }),
    points: t.field({
      type: [ModelUsagePoint],
      authorize: 'inherited',
      extensions: { atMost: MAX_POINTS / 10 }, // ten points cost as much as an object
      description: 'One point for each span, oldest first.',
      resolve: ({ points }) => [...points],
    }),
  }),
});

builder.queryField('modelUsage', (t) =>
  t.field({
    type: ModelUsageSeries,
    description:
      'What a workspace used of models over time, as `reportModelUsage` reported it: of all models, of one, or of a ' +
      'target. A report counts at the time at which it arrives. Usage is kept for 90 days, the current one included, ' +
      'also after the entitlement, the model or the target is gone; older points are 0, and a month that began ' +
      'before has only its last days. Refused to tokens that are restricted to a part of the workspace.',
    authorize: { workspace: 'model_entitlement:read' },
    extensions: { cost: 500 }, // it adds up a hundred thousand sums of a busy workspace
    args: {
      ...workspaceArgs(),
      ...builder.args((of) => ({
        logicalModelId: of.string({ constraints: modelIdBounds, description: 'Only this model.' }),
        providerAccountId: of.id({ constraints: bounds.id, description: 'Only targets at this account.' }),
        modelName: of.string({
          constraints: { minLength: 1, maxLength: 255 },
          description:
            'Only targets of this name at the provider. Usage of what was not a target of the model has neither an ' +
            'account nor a name.',
        }),
      })),
      ...spanArgs('day', `A series has at most ${MAX_POINTS} points.`),
    },
    resolve: ({ workspace }, { orgId: _orgId, workspaceId: _workspaceId, ...asked }, { caller, services }) =>
      services.modelUsageHistory.of(caller, workspace, asked),
  }),
);
