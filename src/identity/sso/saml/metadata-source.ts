import type { Outbound } from '../../../platform/outbound/outbound.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { MessageChecks } from './message-checks.ts';
import type { SamlMetadata } from './metadata-check.ts';

const ACCEPT = 'application/samlmetadata+xml, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.1';

/** Where metadata is, and who must have signed it. */
export interface MetadataAddress {
  /** The organization, whose share of the calls it uses. */
  orgId: string;
  url: string;
  /** Certificates (PEM), by one of which it must be signed; `null`: it need not be. */
  signers: string | null;
  /** How long the call may take; as long as any by default. */
  timeoutMs?: number;
}

/** Reads what SAML identity providers publish of themselves. */
export class MetadataSource {
  readonly #deps: { outbound: Outbound; checks: MessageChecks };

  constructor(deps: { outbound: Outbound; checks: MessageChecks }) {
    this.#deps = deps;
  }

  /**
   * @throws OutboundError if there is no answer; SsoRefusal for one that is not the metadata of one provider;
   * SERVICE_UNAVAILABLE while too many messages are checked
   */
  async read({ orgId, url, signers, timeoutMs }: MetadataAddress): Promise<SamlMetadata> {
    const { outbound, checks } = this.#deps;
    const { status, body } = await outbound.request({
      owner: orgId,
      url,
      headers: { accept: ACCEPT },
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
    if (status !== 200) throw new SsoRefusal(`the address answered with status ${status}`);
    return checks.run('metadata', { document: new Uint8Array(body), signers, now: Date.now() });
  }
}
