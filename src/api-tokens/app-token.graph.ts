import { App } from '../apps/app.graph.ts';
import { builder } from '../graphql/builder.ts';
import { inputArg } from '../graphql/inputs.ts';
import { pageArgs } from '../graphql/page-type.ts';
import { idArg, organizationArgs } from '../graphql/place-args.ts';
import { inside } from '../graphql/row-places.ts';
import { versionArg } from '../graphql/versions.ts';
import { ApiTokenConnection, CreateApiTokenInput, IssuedApiToken } from './api-token.graph.ts';

builder.objectField(App, 'tokens', (t) =>
  t.field({
    type: ApiTokenConnection,
    nullable: true,
    description: 'Its tokens, newest first; null, with an error, for those who may not read them.',
    authorize: { workspace: 'app_token:read' },
    args: pageArgs(),
    resolve: (app, args, context) => context.services.apiTokens.ofApp.list(context, inside.app(app), args),
  }),
);

const appArgs = () => ({
  ...organizationArgs('The organization of the app.'),
  ...builder.args((t) => ({ appId: t.id({ required: true, description: 'The app.' }) })),
});

builder.queryFields((t) => ({
  appTokens: t.field({
    type: ApiTokenConnection,
    description: 'The tokens of an app, newest first; revoked ones for 90 days, the newest 5,000 of them.',
    authorize: { organization: 'organization:access', service: 'app_token:read' },
    args: { ...appArgs(), ...pageArgs({ min: 1, max: 10_000 }) },
    resolve: async ({ organization }, { appId, ...args }, context) => {
      const { apiTokens } = context.services;
      const app = await apiTokens.app(context.actor, organization, appId, 'app_token:read');
      return apiTokens.ofApp.list(context, inside.app(app), args);
    },
  }),
}));

builder.mutationFields((t) => ({
  createAppToken: t.field({
    type: IssuedApiToken,
    description: 'Issues a token of an app: with it a program acts for the caller, in this app and its workspace only.',
    authorize: { organization: 'organization:access', service: 'app_token:create' },
    args: { ...appArgs(), ...inputArg(CreateApiTokenInput, 'The token.') },
    resolve: ({ organization }, { appId, input }, { actor, services }) =>
      services.apiTokens.createForApp(actor, organization, appId, input),
  }),
  revokeAppToken: t.boolean({
    description: 'Revokes a token of an app at once, with what it was refreshed from and to, and what they made.',
    authorize: { organization: 'organization:access', service: 'app_token:revoke' },
    args: { ...appArgs(), ...idArg('The token.'), ...versionArg() },
    resolve: ({ organization }, { appId, id }, { actor, services }) =>
      services.apiTokens.revokeOfApp(actor, organization, appId, id),
  }),
}));
