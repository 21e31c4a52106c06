import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { UsableCredential } from '../connections/connection-credentials.ts';
import { foreignNames } from '../tools/placeholders.ts';
import { type KeyPlacement, keyFieldsOf } from '../tools/tool-shapes.ts';
import { type PlacedCredential, UnusableAction } from './action-request.ts';
import type { ToolAction } from './effective-actions.ts';
import type { ToolInstance } from './tool-instance.reads.ts';

/** What goes into a request beside what the instance keeps itself. */
export interface SentCredential {
  credentials: readonly PlacedCredential[];
  secrets?: Readonly<Record<string, string>>;
}

/** Where a token goes, and a key of which nobody says where. */
export const BEARER: KeyPlacement = { in: 'header', name: 'Authorization', prefix: 'Bearer ' };

/** A tool, as far as it says where credentials go. */
interface OfTool {
  credentialSchema: unknown;
}

/** The stored credentials that go into every request. */
export const placedSecrets = (tool: OfTool, secrets: Readonly<Record<string, unknown>>): PlacedCredential[] =>
  keyFieldsOf(tool.credentialSchema as object[]).flatMap(({ name, placement }) => {
    const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
    return placement && typeof value === 'string' ? [{ placement, value }] : [];
  });

/** What an instance keeps, without what it signs in with itself. */
export function withoutKeys(tool: OfTool, secrets: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const keys = new Set(keyFieldsOf(tool.credentialSchema as object[]).map(({ name }) => name));
  return Object.fromEntries(Object.entries(secrets).filter(([name]) => !keys.has(name)));
}

/** The key of a connection where the action names it, in place of a header; `null` if it does not. */
export function asPlaceholder({ credentialSchema }: ToolRow, action: ToolAction, key: string): SentCredential | null {
  const used = foreignNames(action);
  const field = keyFieldsOf(credentialSchema as object[]).find(({ name, placement }) => !placement && used.has(name));
  return field ? { credentials: [], secrets: { [field.name]: key } } : null;
}

/** What a connection sends: an access token in the header, a key where the action or the tool says. */
export function sentBy(
  tool: ToolRow,
  action: ToolAction,
  { authType, secret }: Pick<UsableCredential, 'authType' | 'secret'>,
): SentCredential {
  if (authType === 'oauth2') return { credentials: [{ value: secret, placement: BEARER }] };
  return asPlaceholder(tool, action, secret) ?? { credentials: [{ value: secret, placement: placementOf(tool) }] };
}

/** Where the key of a connection goes. */
export const placementOf = (tool: OfTool): KeyPlacement =>
  keyFieldsOf(tool.credentialSchema as object[]).find(({ placement }) => placement)?.placement ?? BEARER;

/** @throws UnusableAction for a tool that needs credentials, of which the instance has none */
export function demandCredentials(
  tool: OfTool & { name: string },
  { authMode, hasCredentials }: Pick<ToolInstance, 'authMode' | 'hasCredentials'>,
): void {
  const fields = tool.credentialSchema as { required?: boolean | null }[];
  const isNeeded = authMode !== 'none' && fields.some(({ required }) => required !== false);
  if (isNeeded && !hasCredentials)
    throw new UnusableAction('no_credentials', `${tool.name} needs credentials, and the instance has none.`);
}

/** What a status of a provider means, as the end of a sentence. */
export function meaningOf(status: number): string {
  if (status === 401) return 'it does not accept the credentials';
  if (status === 403) return 'the credentials do not allow this';
  if (status === 404) return 'it does not have this address';
  if (status === 429) return 'it received too many requests';
  if (status >= 500) return 'its server failed';
  return status >= 300 && status < 400 ? 'it redirects elsewhere' : 'it does not accept the request';
}
