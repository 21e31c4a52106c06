import type { ApiTokenFragment } from '../../rest/generated/documents.ts';
import type { TestApp } from './app.ts';
import { callsOf } from './calls.ts';
import type { Person } from './person.ts';
import type { RestBody } from './rest-body.ts';

/** A token's record as REST shows it. */
export type TokenRecord = RestBody<ApiTokenFragment>;

/** What issuing and refreshing answer. */
export interface IssueResult {
  token: TokenRecord;
  plaintext_token: string;
  refresh_token_plaintext: string;
}

/** A token and what to send with it. */
export interface TestToken extends IssueResult {
  id: string;
  headers: { authorization: string };
}

/** Issues an API token, or with `app_id` one of that app, through the front door. */
export async function issueToken(
  app: TestApp,
  maker: Pick<Person, 'orgId' | 'headers'>,
  { app_id, ...body }: { app_id?: string; [field: string]: unknown } = {},
): Promise<TestToken> {
  const path = app_id ? `apps/${app_id}/tokens` : 'api-tokens';
  const answer = await callsOf(app).post(
    `/v1/orgs/${maker.orgId}/${path}`,
    { name: 'a token', ...body },
    maker.headers,
  );
  if (answer.statusCode !== 201) throw new Error(`issuing a token: ${answer.statusCode} ${answer.body}`);
  const result = answer.json<IssueResult>();
  return {
    ...result,
    id: result.token.token_id,
    headers: { authorization: `Bearer ${result.plaintext_token}` },
  };
}
