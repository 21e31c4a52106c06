import type { OAuthService } from '../tools/tool-shapes.ts';

/**
 * Why a code that came back with a browser is not of the authorization server that was asked; `null` if nothing says
 * so. Otherwise one server could have a code of another sent to itself (RFC 9207).
 * @param iss who sent the code, as it says
 * @param isOwnClient whether the client is that of the own document: then both sides must say who it is
 */
export function issuerFault(
  { issuer, authorization_response_iss_parameter_supported: isNamed }: OAuthService,
  iss: string | null,
  isOwnClient: boolean,
): string | null {
  if (isOwnClient && (!issuer || !iss))
    return "a client by the document of this service needs the 'issuer' of the tool, and an answer that names it";
  if (!issuer) return null;
  if (iss === null) return isNamed ? 'the provider always says who it is, and this answer does not: start again' : null;
  return iss === issuer ? null : 'the answer is of another provider than the one that was asked: start again';
}
