import type { Owner } from '../core/owner.ts';

/** Started authorizations at providers. Each may be finished once within ten minutes. */
export const oauthStates: Owner = {
  retention: [`delete from oauth_states where expires_at < now() - interval '1 day'`],
};
