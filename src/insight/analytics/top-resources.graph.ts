import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { isNodeKind } from '../../graphql/node.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { kindOfId } from '../../kernel/ids.ts';
import { type TopMetric as Metric, MOST_TOP, type UsedResource as UsedResourceRow } from './top-resources.ts';

const TopMetric = wordEnum('TopMetric', 'What resources are compared by.', {
  requests: 'Number of operations.',
  errors: 'Number of failed operations.',
  executions: 'Number of runs that began: of apps alone.',
} satisfies Record<Metric, string>);

const UsedResource = builder.objectRef<UsedResourceRow>('UsedResource').implement({
  description: 'A resource, and how often it was used.',
  fields: (t) => ({
    resourceType: t.exposeString('resourceType', {
      description: 'The resource word, the same as in permissions: `secret`, `tool_instance`, … or another word.',
    }),
    resourceId: t.exposeString('resourceId', { description: 'The identifier of the resource.' }),
    uses: t.exposeFloat('uses', { description: 'How often.' }),
  }),
});
refersTo(UsedResource, {
  resourceId: {
    kind: 'node',
    name: 'resource',
    idOf: ({ resourceId }) => {
      const kind = kindOfId(resourceId);
      return kind && isNodeKind(kind) ? resourceId : null;
    },
  },
});

builder.queryField('topResources', (t) =>
  t.field({
    type: [UsedResource],
    description:
      'What of a workspace is used most in some days of UTC, of the last 90 days: the resources that most activity ' +
      'records name, or the apps with most executions. Records are in it within about a minute. Refused to tokens ' +
      'that are restricted to a part of it.',
    authorize: { workspace: 'activity:read' },
    extensions: { atMost: MOST_TOP },
    args: {
      ...workspaceArgs(),
      ...builder.args((of) => ({
        metric: of.field({
          type: TopMetric,
          required: true,
          defaultValue: 'requests',
          description: 'What they are compared by.',
        }),
        resourceType: of.string({ constraints: bounds.open, description: 'Only resources of this kind.' }),
        from: of.field({
          type: 'DateTime',
          description: 'The days start with the one that contains this time. Default: 30 days before the end.',
        }),
        to: of.field({ type: 'DateTime', description: 'The end, exclusive, up to a whole day. Default: now.' }),
        first: of.int({
          required: true,
          defaultValue: 10,
          constraints: { min: 1, max: MOST_TOP },
          description: 'How many, at most.',
        }),
      })),
    },
    resolve: ({ workspace }, { metric, resourceType, from, to, first }, { caller, services }) =>
      services.topResources.of(caller, workspace, { metric, resourceType, from, to, first }),
  }),
);
