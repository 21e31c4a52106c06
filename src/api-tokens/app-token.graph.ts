import { App } from '../apps/app.graph.ts';
import { builder } from '../graphql/builder.ts';
import { pageArgs } from '../graphql/page-type.ts';
import { versionArg } from '../graphql/versions.ts';
import { ApiTokenConnection, CreateApiTokenInput, IssuedApiToken } from './api-token.graph.ts';

builder.prismaObjectField(App, 'tokens', (t) =>
  t.field({
    type: ApiTokenConnection,
    nullable: true,
    description: 'Its tokens, newest first; null, with an error, for those who may not read them.',
    authorize: { workspace: 'app_token:read' },
    args: pageArgs(),
    resolve: (app, args, context) => context.services.apiTokens.nestedOfApp(context, app, args),
  }),
);

const appArgs = () =>
  builder.args((t) => ({
    orgId: t.id({ required: true, description: 'The organization of the app.' }),
    appId: t.id({ required: true, description: 'The app.' }),
  }));

builder.queryFields((t) => ({
  appTokens: t.field({
    type: ApiTokenConnection,
    description: 'The tokens of an app, newest first; revoked ones for 90 days, the newest 5,000 of them.',
    authorize: { organization: 'organization:access', service: 'app_token:read' },
    args: { ...appArgs(), ...pageArgs({ min: 1, max: 10_000 }) },
    resolve: (_root, args, { actor, services }) => services.apiTokens.listOfApp(actor, args),
  }),
}));

builder.mutationFields((t) => ({
  createAppToken: t.field({
    type: IssuedApiToken,
    description: 'Issues a token of an app: with it a program acts for the caller, in this app and its workspace only.',
    authorize: { organization: 'organization:access', service: 'app_token:create' },
    args: { ...appArgs(), input: t.arg({ type: CreateApiTokenInput, required: true, description: 'The token.' }) },
    resolve: (_root, { orgId, appId, input }, { actor, services }) =>
      services.apiTokens.createForApp(actor, orgId, appId, input),
  }),
  revokeAppToken: t.boolean({
    description: 'Revokes a token of an app at once, with what it was refreshed from and to, and what they made.',
    authorize: { organization: 'organization:access', service: 'app_token:revoke' },
    args: { ...appArgs(), id: t.arg.id({ required: true, description: 'The token.' }), ...versionArg() },
    resolve: async (_root, args, { actor, services }) => {
      await services.apiTokens.revokeOfApp(actor, args);
      return true;
    },
  }),
}));
