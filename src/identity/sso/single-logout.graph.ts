import { builder } from '../../graphql/builder.ts';
import type { LogoutWay } from './single-logout.ts';

const SingleLogout = builder.objectRef<LogoutWay>('SingleLogout').implement({
  description: 'The result of signing out: where the session at the identity provider ends.',
  fields: (t) => ({
    redirectUrl: t.exposeString('redirectUrl', {
      nullable: true,
      description:
        'The page of the identity provider, to open in a browser within five minutes: it ends the session there, and ' +
        'comes back if it is of SAML. `null` for a session that no provider with such a page has made.',
    }),
  }),
});

builder.mutationField('beginSingleLogout', (t) =>
  t.field({
    type: SingleLogout,
    description:
      "Ends the caller's session, as `logout` does. The result says where the browser must go to end the session " +
      'at the identity provider, too: the `slo_url` of SAML, or the `end_session_endpoint` of an OpenID provider.',
    authorize: { session: 'user:update' },
    activity: { action: 'logout', resourceType: 'user' },
    resolve: (_root, _args, { caller, services }) => services.singleLogout.begin(caller),
  }),
);
