import { builder } from './builder.ts';
import { EXPECTED_VERSION } from './plugins/versions-plugin.ts';

/** The interface of resources that can change. Their mutations take {@link versionArg}. */
export const Versioned = builder.interfaceRef<{ resourceVersion: number }>('Versioned').implement({
  description: 'A resource with a version. Its changes can be made conditional on that version.',
  fields: (t) => ({
    resourceVersion: t.exposeInt('resourceVersion', {
      description:
        'Rises with every change of the resource. Counters and values that the service records by itself do not ' +
        'raise it. REST sends it as `ETag`.',
    }),
  }),
});

/**
 * The version that the resource must have for the mutation to run. `what` names the resource, if it is not the obvious
 * one.
 */
export const versionArg = (what = 'the resource') =>
  builder.args((t) => ({
    [EXPECTED_VERSION]: t.int({
      constraints: { min: 1 },
      description: `The operation fails with PRECONDITION_FAILED unless this is the \`resourceVersion\` of ${what}.`,
    }),
  }));
