import { decodeJwt } from 'jose';

const LABEL_LENGTH = 255;

type JsonObject = Record<string, unknown>;
const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null;

/** The name of the connected account in what a provider answered, with the token. */
export type LabelSink = (label: string) => void;

/**
 * The answer of a token endpoint as RFC 6749 has it. Some providers send errors with status 200 or in words of their
 * own, a token type of their own for what is a bearer token, or scopes between commas. An ID token is taken out: it is
 * not asked for, and checking it would need the keys of its issuer.
 * @param onLabel gets the name of the account, if the answer has one
 */
export async function standardAnswer(answer: Response, onLabel: LabelSink): Promise<Response> {
  const body = await answer.text();
  const given = parsed(body);
  if (!isObject(given)) return rebuilt(answer.status, body, answer.headers.get('content-type') ?? 'text/plain');
  const isError = typeof given.access_token !== 'string' && wordOf(given, answer.status) !== null;
  const status = answer.status === 200 && isError ? 400 : answer.status;
  const label = labelOf(given);
  if (label) onLabel(label);
  const { id_token: _idToken, ...rest } = given;
  const json = { ...rest, ...typeOf(given), ...scopeOf(given), ...(isError ? errorOf(given, answer.status) : {}) };
  return rebuilt(status, JSON.stringify(json), 'application/json');
}

/** Without further headers: a challenge beside an error in the body would hide the error. */
const rebuilt = (status: number, body: string, type: string): Response =>
  new Response([204, 205, 304].includes(status) ? null : body, { status, headers: { 'content-type': type } });

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null; // a proxy's own error page
  }
}

/**
 * What GitHub and Slack say instead of `invalid_grant`
 * (docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors,
 * docs.slack.dev/reference/methods/oauth.v2.access).
 */
const INVALID_GRANT = new Set(['bad_verification_code', 'bad_refresh_token', 'invalid_code', 'invalid_refresh_token']);

/** The word of an error. Notion has it as `code` (developers.notion.com/reference/create-a-token). */
const wordOf = ({ error, code }: JsonObject, status: number): string | null =>
  [error, ...(status >= 400 ? [code] : [])].find((word) => typeof word === 'string') ?? null;

/** An error in the words of RFC 6749. The provider's own word is kept if nothing else describes the error. */
function errorOf(json: JsonObject, status: number): JsonObject {
  const word = wordOf(json, status) ?? '';
  const described = [json.error_description, json.message].find((text) => typeof text === 'string');
  const isInvalid = INVALID_GRANT.has(word);
  const error_description = described ?? (isInvalid ? word : undefined);
  return {
    error: isInvalid ? 'invalid_grant' : word,
    ...(error_description === undefined ? {} : { error_description }),
  };
}

const STANDARD_TYPE = /^(bearer|dpop)$/i;
const typeOf = ({ access_token, token_type }: JsonObject): JsonObject =>
  typeof access_token === 'string' && (typeof token_type !== 'string' || !STANDARD_TYPE.test(token_type))
    ? { token_type: 'bearer' }
    : {};

const scopeOf = ({ scope }: JsonObject): JsonObject =>
  typeof scope === 'string' ? { scope: scope.replaceAll(',', ' ') } : {};

/** Names that providers give the account: of the workspace, of the team, or in the ID token. */
function labelOf(json: JsonObject): string | null {
  const team = isObject(json.team) ? json.team.name : undefined;
  const claims = claimsOf(json.id_token);
  return firstLabel([json.workspace_name, team, ...namesOf(claims)]);
}

const namesOf = ({ email, preferred_username, name }: JsonObject): unknown[] => [email, preferred_username, name];

function firstLabel(texts: readonly unknown[]): string | null {
  const found = texts.find((text) => typeof text === 'string' && text.trim() !== '');
  return (typeof found === 'string' && plainLine(found, LABEL_LENGTH)) || null;
}

/**
 * The name of the account in what a provider says about it. @param path where it is: `$.user.email`; `null` for the
 * usual claims
 */
export function labelIn(answer: unknown, path: string | null): string | null {
  if (path === null) return isObject(answer) ? firstLabel([...namesOf(answer), answer.login]) : null;
  let found = answer;
  for (const key of path.split('.').slice(1))
    found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return firstLabel([found]);
}

/** Read and not verified: it came from the provider itself, and only names the account. */
function claimsOf(idToken: unknown): JsonObject {
  if (typeof idToken !== 'string') return {};
  try {
    return decodeJwt(idToken);
  } catch {
    return {};
  }
}

/** Text of a stranger as one line that can be stored. */
export const plainLine = (text: string, length: number): string =>
  text
    .toWellFormed()
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, length)
    .toWellFormed();
