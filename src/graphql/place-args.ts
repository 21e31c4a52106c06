import { builder } from './builder.ts';

/** Arguments that name the organization of an operation. */
export const organizationArgs = (description = 'The organization.') =>
  builder.args((t) => ({ orgId: t.id({ required: true, description }) }));

/** Arguments that name the workspace of an operation. */
export const workspaceArgs = () => ({
  ...organizationArgs('The organization of the workspace.'),
  ...builder.args((t) => ({ workspaceId: t.id({ required: true, description: 'The workspace.' }) })),
});

/** Arguments that name the namespace of an operation. */
export const namespaceArgs = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ namespaceId: t.id({ required: true, description: 'The namespace, or `default`.' }) })),
});

/** Arguments that name the app of an operation. */
export const appArgs = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ appId: t.id({ required: true, description: 'The app.' }) })),
});

/** Arguments that name an app and a namespace of one workspace. */
export const appNamespaceArgs = () => ({
  ...appArgs(),
  ...builder.args((t) => ({ namespaceId: t.id({ required: true, description: 'The namespace, or `default`.' }) })),
});

/** Arguments that name the environment of an operation. */
export const environmentArgs = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ environmentId: t.id({ required: true, description: 'The environment.' }) })),
});

/** The `id` argument of an operation, next to the arguments of its place. */
export const idArg = (description: string) => builder.args((t) => ({ id: t.id({ required: true, description }) }));
