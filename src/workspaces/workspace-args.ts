import { builder } from '../graphql/builder.ts';

/** Arguments that name the workspace of an operation. */
export const workspaceArgs = () =>
  builder.args((t) => ({
    orgId: t.id({ required: true, description: 'The organization of the workspace.' }),
    workspaceId: t.id({ required: true, description: 'The workspace.' }),
  }));
