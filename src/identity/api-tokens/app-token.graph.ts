import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { inside } from '../../graphql/row-places.ts';
import { versionArg } from '../../graphql/versions.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { ApiToken, ApiTokenConnection, CreateApiTokenInput, IssuedApiToken } from './api-token.graph.ts';

builder.objectField(App, 'tokens', (t) =>
  t.field({
    type: ApiTokenConnection,
    nullable: true,
    description: 'The tokens of the app, newest first. `null` with an error if the caller may not read them.',
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
    description:
      'The tokens of an app, newest first. Revoked tokens stay listed for 90 days, at most the newest 5,000.',
    authorize: { organization: 'organization:access', service: 'app_token:read' },
    args: { ...appArgs(), ...pageArgs({ min: 1, max: 10_000 }) },
    resolve: async ({ organization }, { appId, ...args }, context) => {
      const { apiTokens } = context.services;
      const app = await apiTokens.app(context.caller, organization, appId, 'app_token:read');
      return apiTokens.ofApp.list(context, inside.app(app), args);
    },
  }),
}));

builder.mutationFields((t) => ({
  createAppToken: t.field({
    type: IssuedApiToken,
    description: 'Issues an app token. A program that uses it acts for the caller, only in this app and its workspace.',
    authorize: { organization: 'organization:access', service: 'app_token:create' },
    emits: ['app_token.created'],
    args: { ...appArgs(), ...inputArg(CreateApiTokenInput, 'The token.') },
    resolve: ({ organization }, { appId, input }, { caller, services }) =>
      services.apiTokens.createForApp(caller, organization, appId, input),
  }),
  revokeAppToken: t.field({
    type: ApiToken,
    description:
      'Revokes a token of an app immediately, together with the tokens it was refreshed from and to and all ' +
      'tokens that these created.',
    authorize: { organization: 'organization:access', service: 'app_token:revoke' },
    emits: ['app_token.revoked'],
    args: { ...appArgs(), ...idArg('The token.'), ...versionArg() },
    resolve: ({ organization }, { appId, id }, { caller, services }) =>
      services.apiTokens.revokeOfApp(caller, organization, appId, id),
  }),
}));
