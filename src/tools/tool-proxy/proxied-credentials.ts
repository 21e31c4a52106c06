import type { UsableCredential } from '../connections/connection-credentials.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';
import { BEARER, placedSecrets, placementOf } from '../tool-instances/sent-credential.ts';
import type { ProxiedInstance } from './proxied-instance.ts';
import { namedKeyField, namedSecrets, type PlacedTexts, type ToolBase } from './tool-base.ts';

/** What a call sends of the credentials: what the actions of the tool name, and what has a place in every request. */
export function sentTexts(
  base: ToolBase,
  instance: ProxiedInstance,
  credential: Pick<UsableCredential, 'authType' | 'secret'> | null,
): PlacedTexts {
  const { tool, secrets } = instance;
  const keyField = credential?.authType === 'api_key' ? namedKeyField(base, tool.credentialSchema) : null;
  const named = namedSecrets(base, instance, keyField === null ? {} : { [keyField]: credential!.secret });
  const hasKey = keyField !== null && (named.headers.size > 0 || named.query.size > 0);
  const placed: PlacedCredential[] = placedSecrets(tool, secrets);
  if (credential && !hasKey)
    placed.push({
      value: credential.secret,
      placement: credential.authType === 'oauth2' ? BEARER : placementOf(tool),
    });
  for (const { placement, value } of placed) {
    const text = `${placement.prefix ?? ''}${value}`;
    if (placement.in === 'query') named.query.set(placement.name, text);
    else named.headers.set(placement.name.toLowerCase(), text);
  }
  return named;
}

/** Whether an instance keeps itself what every request needs: then no connection is used. */
export const keepsCredentials = ({ tool, secrets }: ProxiedInstance): boolean =>
  placedSecrets(tool, secrets).length > 0;
