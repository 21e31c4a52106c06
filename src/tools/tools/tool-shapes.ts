import type { ConstraintIssue, Constraints, JsonShape } from '../../kernel/constraints.ts';
import { customRest, name, parameterDefs, parameters } from './custom-action-schemas.ts';
import { shapeCheck, type ToolJsonSchema } from './json-shape.ts';
import { entryNames } from './placeholders.ts';

/** A field of a tool's configuration or credentials (spec, Config field descriptor). Only `name` is always there. */
export interface ConfigField {
  name: string;
  display_name?: string | null;
  /** `string`, `integer`, `number`, `boolean`, `array`, `object`, `file`, `secret` or another word. */
  type?: string | null;
  description?: string | null;
  placeholder?: string | null;
  /** What a form shows: `text`, `textarea`, `password`, `select` or another word. */
  widget?: string | null;
  required?: boolean | null;
  default?: unknown;
  options?: Record<string, string>[] | null;
  /** `min_length`, `max_length`, `pattern`, `min_value`, `max_value`, `enum`. */
  validation?: Record<string, unknown> | null;
  widget_options?: Record<string, unknown> | null;
  /** Whether its value belongs in the vault. */
  sensitive?: boolean | null;
}

/** Whether the value of a field belongs in the vault and is never shown. */
export const isSensitive = ({ type, widget, sensitive }: ConfigField): boolean =>
  type === 'secret' || widget === 'password' || sensitive === true;

/** An OAuth service: the entry of type `oauth2` in a tool's credential schema. */
export interface OAuthService {
  type: 'oauth2';
  name: string;
  authorization_url: string;
  token_url: string;
  /** Where tokens are revoked (RFC 7009); absent if the provider has no such endpoint. */
  revocation_url?: string | null;
  /** Where the account of an access token is asked for (a GET with the token); absent if nothing needs to be asked. */
  userinfo_url?: string | null;
  /** Where that answer has the name of the account: `$.user.email`. Default: the usual claims. */
  account_label_path?: string | null;
  /** The scopes that are asked for unless an instance overrides them. */
  scopes?: string[] | null;
  /** What separates scopes in a request; a space unless the provider differs. */
  scope_separator?: string | null;
  /** Whether the provider accepts PKCE with S256. Default true. */
  pkce?: boolean | null;
  /** How the client authenticates at the token endpoint. Default `client_secret_post`. */
  token_endpoint_auth_method?: 'client_secret_basic' | 'client_secret_post' | 'none' | null;
  /** More parameters of the authorization request. */
  authorization_parameters?: Record<string, string> | null;
  /** Of the bodies that the token and revocation endpoints take. Default `form`, as RFC 6749 has it. */
  token_request_format?: 'form' | 'json' | null;
  /** More headers of requests to these endpoints, such as the version of an API. */
  token_request_headers?: Record<string, string> | null;
  /** What tokens are asked for (RFC 8707), in requests for an authorization and for tokens. */
  resource?: string | null;
  /** Who the authorization server is. What it sends back with a browser must not name another (RFC 9207). */
  issuer?: string | null;
  /** Whether what it sends back names it each time. */
  authorization_response_iss_parameter_supported?: boolean | null;
}

/** How an API key goes into requests: the entry of a credential schema that has a `placement`. */
export interface KeyPlacement {
  in: 'header' | 'query';
  name: string;
  /** Before the key: `Bearer `. */
  prefix?: string | null;
}

const MAX_TEXT = 4_000;
const line = { type: 'string', maxLength: 255 } as const;
const text = { type: 'string', maxLength: MAX_TEXT } as const;
const url = { type: 'string', minLength: 1, maxLength: 2_048, pattern: '^https?://[^\\s]+$' } as const;
const flag = { type: 'boolean' } as const;
const stringMap = { type: 'object', maxProperties: 100, additionalProperties: text } as const;
const fieldName = name('Name', 'The key of its value.');

const field = {
  name: fieldName,
  display_name: line,
  type: { type: 'string', pattern: '^[a-z][a-z0-9_.:-]{0,63}$', maxLength: 64 },
  description: text,
  placeholder: line,
  widget: line,
  required: flag,
  sensitive: flag,
  default: {},
  options: { type: 'array', maxItems: 200, items: stringMap },
  validation: { type: 'object', maxProperties: 50 },
  widget_options: { type: 'object', maxProperties: 50 },
} as const satisfies Record<string, ToolJsonSchema>;

/**
 * The descriptors of a tool have no other properties than these, because a misspelled one would be ignored and break
 * the tool (docs/decisions/0032). Properties that begin with `x-` are whoever's who writes them.
 */
const closed = (schema: ToolJsonSchema): ToolJsonSchema => ({
  ...schema,
  patternProperties: { '^x-': {} },
  additionalProperties: false,
});

const configField = closed({ type: 'object', required: ['name'], properties: field });

const oauthProperties = {
  authorization_url: url,
  token_url: url,
  revocation_url: url,
  userinfo_url: url,
  account_label_path: { type: 'string', pattern: '^\\$(?:\\.[A-Za-z_][A-Za-z0-9_-]*)+$', maxLength: 255 },
  scopes: { type: 'array', maxItems: 100, items: line },
  scope_separator: { type: 'string', enum: [' ', ','] },
  pkce: flag,
  token_endpoint_auth_method: { type: 'string', enum: ['client_secret_basic', 'client_secret_post', 'none'] },
  authorization_parameters: stringMap,
  token_request_format: { type: 'string', enum: ['form', 'json'] },
  token_request_headers: stringMap,
  resource: url,
  issuer: url,
  authorization_response_iss_parameter_supported: flag,
} as const satisfies Record<string, ToolJsonSchema>;

const credentialField = closed({
  type: 'object',
  required: ['name'],
  properties: {
    ...field,
    ...oauthProperties,
    placement: closed({
      type: 'object',
      required: ['in', 'name'],
      properties: { in: { type: 'string', enum: ['header', 'query'] }, name: { ...line, minLength: 1 }, prefix: line },
    }),
  },
});

const { pagination } = customRest.properties!;
const { parameter, part } = parameterDefs;

const actionSchema = closed({
  type: 'object',
  required: ['name'],
  // the request of an action is written like that of a custom action
  properties: {
    ...customRest.properties,
    parameters,
    pagination: closed(pagination!),
    // of an action that calls a tool of an MCP server (docs/decisions/0086)
    protocol: { type: 'string', enum: ['http', 'mcp'] },
    is_idempotent: flag,
  },
  $defs: { parameter: closed(parameter), part: closed(part) },
});

const mcpFunction: ToolJsonSchema = {
  type: 'object',
  required: ['name'],
  properties: { name: fieldName, description: text, input_schema: { type: 'object' } },
};

const isOAuth = (entry: object): entry is OAuthService => 'type' in entry && entry.type === 'oauth2';

const shapeOf = (shapeName: string, schema: ToolJsonSchema): JsonShape => ({
  name: shapeName,
  schema,
  check: shapeCheck(schema),
});

const checkOAuth = shapeCheck({ ...credentialField, required: ['name', 'authorization_url', 'token_url'] });
const credentialShape = shapeOf('ToolCredentialField', credentialField);

/** What people write in place of the property that is meant, beside mere typing errors. */
const MEANT: Readonly<Record<string, string>> = {
  header: 'placement',
  headers: 'placement',
  query: 'placement',
  in: 'placement',
  prefix: 'placement',
  location: 'placement',
  auth_url: 'authorization_url',
  authorize_url: 'authorization_url',
  revoke_url: 'revocation_url',
  userinfo_endpoint: 'userinfo_url',
  label: 'display_name',
  title: 'display_name',
};

function checkCredential(entry: object): ConstraintIssue[] {
  return (isOAuth(entry) ? checkOAuth : credentialShape.check)(entry).map((issue) => {
    const meant = issue.type === 'extra_forbidden' && issue.path.length === 1 ? MEANT[String(issue.path[0])] : null;
    return meant ? misplaced(issue.path, `did you mean '${meant}'?`) : issue;
  });
}

const misplaced = (path: (string | number)[], why: string, input?: unknown): ConstraintIssue => ({
  path,
  type: 'extra_forbidden',
  msg: `Extra inputs are not permitted: ${why}`,
  input,
});

/** Properties of an OAuth service at a key, and the other way round: they would be ignored. */
export const misplacedIn = (credentialSchema: readonly object[]): ConstraintIssue[] =>
  credentialSchema.flatMap((entry, index) => {
    const others = isOAuth(entry) ? ['placement'] : Object.keys(oauthProperties);
    const why = isOAuth(entry)
      ? 'tokens go into the header Authorization'
      : "only an entry of the type 'oauth2' may have it";
    const strange = Object.entries(entry).filter(([key, value]) => others.includes(key) && value !== null);
    return strange.map(([key, value]: [string, unknown]) => misplaced([index, key], why, value));
  });

/** The forms of the entries of a tool's lists. */
export const entryShapes = {
  configSchema: shapeOf('ToolConfigField', configField),
  credentialSchema: { ...credentialShape, check: checkCredential },
  actionSchemas: shapeOf('ToolAction', actionSchema),
  mcpFunctions: shapeOf('ToolMcpFunction', mcpFunction),
} as const satisfies Record<string, JsonShape>;

/** Most entries of one list of a tool. */
export const MAX_ENTRIES = 100;

/** The bounds of a list of a tool. */
export const entriesOf = (shape: JsonShape) =>
  ({ maxItems: MAX_ENTRIES, item: { maxBytes: 32 * 1024, shape } }) as const satisfies Constraints;

/** The OAuth service that a credential schema describes; `null` if it has none. */
export const oauthServiceOf = (credentialSchema: readonly object[]): OAuthService | null =>
  credentialSchema.find(isOAuth) ?? null;

/** The fields of a credential schema that are typed in, such as an API key. */
export const keyFieldsOf = (credentialSchema: readonly object[]): (ConfigField & { placement?: KeyPlacement })[] =>
  credentialSchema.filter((entry) => !isOAuth(entry)) as ConfigField[];

/** The names that actions of a tool may use beside their parameters: its fields, and credentials that are typed in. */
export const toolNames = (tool: { configSchema: unknown; credentialSchema: unknown }): Set<string> =>
  new Set([...entryNames(tool.configSchema), ...entryNames(keyFieldsOf(tool.credentialSchema as object[]))]);
